//! The embedded model as a JavaScript class.

use js_sys::Function;
use samara_chat::{Generation, OpenDevice, Piece, Prompt, Reload, Session, SessionConfig, Settings, Source};
use samara_ops::device::{DeviceChoice, Limits, open};
use wasm_bindgen::prelude::*;

/// A browser shows a panic only where it is sent to the console.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| web_sys::console::error_1(&panic.to_string().into())));
}

/// The model inside the program, on the device that the browser lends.
#[wasm_bindgen]
pub struct Model {
    session: Session,
    device: OpenDevice,
}

#[wasm_bindgen]
impl Model {
    /// Opens the device and loads the model onto it, within WebGPU's default limits.
    ///
    /// # Errors
    /// No usable device, said in words for the visitor.
    pub async fn load() -> Result<Model, JsError> {
        let device = open(DeviceChoice::Auto, Limits::Default).await?;
        let model = samara_chat::Model::load(&Source::Embedded, &device, &mut |_| {})?;
        let reload = Reload::from_source(Source::Embedded, DeviceChoice::Auto, Limits::Default, device.kernels);
        let session = Session::with_reload(model, SessionConfig::default(), reload)?;
        Ok(Self { session, device })
    }

    /// What computes, for people.
    #[wasm_bindgen(getter)]
    pub fn device(&self) -> String {
        match &self.device.adapter {
            Some(adapter) => format!("WebGPU {}", adapter.name).trim_end().to_owned(),
            None => self.device.name.clone(),
        }
    }

    /// Continues a text greedily by at most `max_tokens` tokens; gives their ids. `show` gets the text as it comes.
    ///
    /// # Errors
    /// A prompt that is empty or too long, or a device that is lost for good.
    pub async fn generate(&mut self, prompt: String, max_tokens: usize, show: Function) -> Result<Vec<u32>, JsError> {
        let settings = Settings { max_tokens: Some(max_tokens), ..Settings::default() };
        pull(self.session.generate(&Prompt::Text(prompt), &settings)?, &show).await
    }
}

async fn pull(mut generation: Generation<'_>, show: &Function) -> Result<Vec<u32>, JsError> {
    let mut ids = Vec::new();
    while let Some(piece) = generation.next().await? {
        match piece {
            Piece::Text { text, .. } => drop(show.call1(&JsValue::NULL, &text.into())),
            Piece::Done(done) => ids = done.written.ids,
            Piece::Progress { .. } | Piece::DeviceLost { .. } => {}
        }
    }
    Ok(ids)
}
