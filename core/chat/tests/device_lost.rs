//! A conversation whose device is lost again and again goes on as if nothing had happened.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use samara_chat::{
    ChatError, Config, Conversation, Decoder, FinishReason, KvFormat, KvFormats, Model, Piece, Prompt, Reload,
    Sampling, ScaledAdapter, Session, SessionConfig, Settings, Source, Written,
};
use samara_formats::peft::{AdapterConfig, LoraAdapter, LoraModule, TargetModules};
use samara_ops::device::{DeviceChoice, Limits, OpenDevice, open};

/// The device that a session computes on at the moment.
type Current = Rc<RefCell<OpenDevice>>;

/// The first adapter; `None`, aloud, where there is none.
fn gpu() -> Option<OpenDevice> {
    match pollster::block_on(open(DeviceChoice::Gpu(0), Limits::Default)) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but {error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn model(device: &OpenDevice) -> Model {
    Model::load(&Source::Embedded, device, &mut |_| ()).unwrap()
}

const CONFIG: SessionConfig = SessionConfig {
    context_tokens: Some(384),
    prefill_chunk_tokens: 32,
    kv: KvFormats { keys: KvFormat::F16, values: KvFormat::F16 },
};

/// A session on a device of its own, which is opened anew when it is lost. `prepare` sees each new device.
fn session(prepare: impl Fn(&OpenDevice) + Copy + 'static) -> Option<(Session, Current)> {
    let current: Current = Rc::new(RefCell::new(gpu()?));
    let model = model(&current.borrow());
    let renewed = Rc::clone(&current);
    let reload = Reload::new(move || {
        let renewed = Rc::clone(&renewed);
        async move {
            let device = open(DeviceChoice::Gpu(0), Limits::Default).await?;
            let decoder = Decoder::load(&Source::Embedded.open()?, &device, &mut |_| ())?;
            prepare(&device);
            *renewed.borrow_mut() = device;
            Ok(decoder)
        }
    });
    Some((Session::with_reload(model, CONFIG, reload).unwrap(), current))
}

fn settings(seed: u64) -> Settings {
    let sampling = Sampling { temperature: 0.8, top_p: 0.95, seed, ..Sampling::default() };
    Settings { max_tokens: Some(12), sampling, ..Settings::default() }
}

/// One answer, and how often it was interrupted. Before the `n`-th call for a piece `disturb(n)` may lose the device.
fn answer(session: &mut Session, talk: &Conversation, seed: u64, disturb: impl Fn(usize)) -> (Written, usize) {
    let mut generation = session.generate(&talk.prompt(), &settings(seed)).unwrap();
    let mut n_losses = 0;
    for n_pieces in 0.. {
        disturb(n_pieces);
        match pollster::block_on(generation.next()).unwrap() {
            Some(Piece::Done(done)) => return (done.written, n_losses),
            Some(Piece::DeviceLost { .. }) => n_losses += 1,
            Some(_) => {}
            None => panic!("a generation ends with Done"),
        }
    }
    unreachable!("pieces come to an end")
}

/// The ids of five answers, and how often the device was lost.
fn talk(session: &mut Session, disturb: impl Fn(usize)) -> (Vec<Vec<u32>>, usize) {
    let mut talk = Conversation::new(None);
    let mut losses = 0;
    let mut turn = |seed| {
        talk.say("Tell me a story about a red ball.");
        let (written, n_losses) = answer(session, &talk, seed, &disturb);
        talk.answered(&written);
        losses += n_losses;
        written.ids
    };
    let ids = (0..5).map(&mut turn).collect();
    (ids, losses)
}

/// One that adds to the last product of the first layer.
fn adapter() -> ScaledAdapter {
    let config = Config::from_checkpoint(&Source::Embedded.open().unwrap()).unwrap();
    let (d_in, d_out) = (config.d_ff, config.d_model);
    let wave = |n: usize| (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
    let module = LoraModule {
        path: "model.layers.0.mlp.down_proj".to_owned(),
        d_in,
        d_out,
        a: wave(2 * d_in),
        b: wave(2 * d_out),
        magnitude: None,
    };
    let config = AdapterConfig {
        rank: 2,
        alpha: 40.0,
        dropout: 0.0,
        use_rslora: false,
        use_dora: false,
        target_modules: TargetModules::AllLinear,
        base_model: None,
    };
    let adapter = Arc::new(LoraAdapter { config, modules: vec![module] });
    ScaledAdapter { name: "a wave".to_owned(), adapter, strength: 1.0 }
}

fn asked() -> Conversation {
    let mut talk = Conversation::new(None);
    talk.say("Tell me a story about a red ball.");
    talk
}

#[test]
fn ten_losses_in_one_conversation_change_no_token() {
    let Some((mut session, current)) = session(|_| ()) else { return };
    let (expected, none) = talk(&mut session, |_| ());
    // In the middle of each prompt or before it, and in the middle of each answer.
    let (ids, losses) = talk(&mut session, |n_pieces| {
        if n_pieces == 1 || n_pieces == 8 {
            current.borrow().lose();
        }
    });
    assert_eq!((none, losses), (0, 10));
    assert_eq!(ids, expected);
}

#[test]
fn a_source_is_opened_again_on_the_same_adapter() {
    let Some(device) = gpu() else { return };
    let reload = Reload::from_source(Source::Embedded, DeviceChoice::Gpu(0), Limits::Default, device.kernels);
    let mut session = Session::with_reload(model(&device), CONFIG, reload).unwrap();
    let (expected, _) = answer(&mut session, &asked(), 1, |_| ());
    let (written, n_losses) = answer(&mut session, &asked(), 1, |n_pieces| {
        if n_pieces == 3 {
            device.lose();
        }
    });
    assert_eq!((written, n_losses), (expected, 1));
}

#[test]
fn a_lost_device_brings_its_adapters_back() {
    let Some(device) = gpu() else { return };
    let adapters = vec![adapter()];
    let session = |adapters: Vec<ScaledAdapter>| {
        let reload = Reload::from_source(Source::Embedded, DeviceChoice::Gpu(0), Limits::Default, device.kernels);
        let model = model(&device).with_adapters(&adapters).unwrap();
        Session::with_reload(model, CONFIG, reload.with_adapters(adapters)).unwrap()
    };
    let (without, _) = answer(&mut session(Vec::new()), &asked(), 1, |_| ());
    let mut session = session(adapters);
    let (expected, _) = answer(&mut session, &asked(), 1, |_| ());
    assert_ne!(expected, without);
    let bytes = session.adapters_bytes();
    let (written, n_losses) = answer(&mut session, &asked(), 1, |n_pieces| {
        if n_pieces == 3 {
            device.lose();
        }
    });
    assert_eq!((written, n_losses, session.adapters_bytes()), (expected, 1, bytes));
}

#[test]
fn cancelling_after_a_loss_does_not_wait_for_a_new_device() {
    let Some(device) = gpu() else { return };
    let reload = Reload::new(|| async { panic!("nobody needs the model") });
    let mut session = Session::with_reload(model(&device), CONFIG, reload).unwrap();
    device.lose();
    let mut generation = session.generate(&asked().prompt(), &settings(0)).unwrap();
    assert!(matches!(pollster::block_on(generation.next()), Ok(Some(Piece::DeviceLost { .. }))));
    generation.cancel();
    let Ok(Some(Piece::Done(done))) = pollster::block_on(generation.next()) else { panic!("it was cancelled") };
    assert_eq!(done.reason, FinishReason::Cancelled);
}

#[test]
fn a_device_that_is_lost_at_once_each_time_is_an_error() {
    let Some((mut session, current)) = session(OpenDevice::lose) else { return };
    current.borrow().lose();
    let mut generation = session.generate(&Prompt::Text("Once".to_owned()), &settings(0)).unwrap();
    for _ in 0..2 {
        assert!(matches!(pollster::block_on(generation.next()), Ok(Some(Piece::DeviceLost { .. }))));
    }
    let error = pollster::block_on(generation.next()).unwrap_err();
    assert!(matches!(error, ChatError::DeviceKeepsFailing { n_losses: 3, .. }), "{error}");
    assert_eq!(pollster::block_on(generation.next()).unwrap(), None);
}

#[test]
fn without_a_way_to_reload_the_loss_is_the_error() {
    let Some(device) = gpu() else { return };
    let mut session = Session::new(model(&device), CONFIG).unwrap();
    device.lose();
    let mut generation = session.generate(&Prompt::Text("Once".to_owned()), &settings(0)).unwrap();
    let error = pollster::block_on(generation.next()).unwrap_err();
    assert!(error.to_string().starts_with("the device was lost"), "{error}");
}
