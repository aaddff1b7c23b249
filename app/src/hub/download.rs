//! One file: from the hub to its place on disk.
//!
//! Bytes go to `NAME.part`, and the identity of what they belong to goes to `NAME.part.etag`. A later try asks for the rest; if the content behind the
//! address has changed since, or the server knows no ranges, it starts over. Only a whole file with the right size and digest is renamed to `NAME`.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use ureq::http::StatusCode;
use url::Url;

use super::client::{Answer, number, text};
use super::listing::as_sha256;
use super::part::Part;
use super::retry::{Backoff, Pause};
use super::{Hub, HubError, RemoteFile};

const BUFFER_BYTES: usize = 256 << 10;
const MAX_FAILURES: u32 = 6;

/// What is to be fetched and where it goes.
pub struct Download<'a> {
    pub hub: &'a Hub,
    pub url: Url,
    pub file: &'a RemoteFile,
    /// The final name.
    pub path: PathBuf,
}

/// How the file came to be here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was here already, whole.
    Present,
    Downloaded,
}

/// What the caller learns and decides while bytes arrive.
pub trait Watch {
    /// `here` of `total` bytes are on disk; called often.
    fn progress(&mut self, here: u64, total: Option<u64>);
    /// Whether to stop; what has arrived is kept.
    fn is_cancelled(&self) -> bool;
}

impl Download<'_> {
    /// Fetches the file unless it is here already.
    ///
    /// # Errors
    /// See [`HubError`]; transient ones are returned after several tries without progress.
    pub fn run(&self, watch: &mut dyn Watch, pause: &mut Pause) -> Result<Outcome, HubError> {
        if self.is_present() {
            return Ok(Outcome::Present);
        }
        let mut part = Part::open(&self.path)?;
        let digest = self.fill(&mut part, watch, pause)?;
        self.verify(&mut part, digest.as_deref())?;
        part.finish(&self.path)?;
        Ok(Outcome::Downloaded)
    }

    /// Files under their final name were checked before they got it.
    fn is_present(&self) -> bool {
        let size_fits = |found: u64| self.file.size_bytes.is_none_or(|expected| expected == found);
        fs::metadata(&self.path).is_ok_and(|found| found.is_file() && size_fits(found.len()))
    }

    /// Tries until the part is whole; only new bytes count as progress, so a server that always breaks off at the same place is given up.
    fn fill(&self, part: &mut Part, watch: &mut dyn Watch, pause: &mut Pause) -> Result<Option<String>, HubError> {
        let (mut backoff, mut furthest) = (Backoff::new(MAX_FAILURES), part.len);
        loop {
            match self.attempt(part, watch) {
                Ok(digest) => return Ok(digest),
                Err(error) => {
                    if part.len > furthest {
                        furthest = part.len;
                        backoff.reset();
                    }
                    backoff.wait_after(error, pause)?;
                }
            }
        }
    }

    /// One request, for what is missing; gives the digest the file should have, where one is known.
    fn attempt(&self, part: &mut Part, watch: &mut dyn Watch) -> Result<Option<String>, HubError> {
        if self.file.sha256.is_some() && self.file.size_bytes == Some(part.len) {
            return Ok(self.file.sha256.clone());
        }
        let answer = self.request(part)?;
        let digest = self.file.sha256.clone().or_else(|| answer.etag.as_deref().and_then(as_sha256));
        let total = self.file.size_bytes.or(answer.linked_size_bytes).or_else(|| total_bytes(&answer, part.len));
        if part.len == 0 {
            part.set_etag(answer.etag.as_deref())?;
        }
        self.copy(answer, part, total, watch)?;
        Ok(digest)
    }

    /// Asks for the rest, or for everything when what is here does not fit what is there.
    fn request(&self, part: &mut Part) -> Result<Answer, HubError> {
        let answer = self.hub.get(&self.url, part.len)?;
        if part.continues_with(&answer) {
            return Ok(answer);
        }
        let had_bytes = part.len > 0;
        part.clear()?;
        match answer.response.status() {
            StatusCode::OK => Ok(answer),
            _ if had_bytes => self.request(part),
            status => Err(HubError::Answer {
                url: self.url.to_string(),
                what: format!("the server answered {status} to a plain request"),
            }),
        }
    }

    fn copy(&self, answer: Answer, part: &mut Part, total: Option<u64>, watch: &mut dyn Watch) -> Result<(), HubError> {
        let mut reader = answer.response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; BUFFER_BYTES];
        watch.progress(part.len, total);
        loop {
            if watch.is_cancelled() {
                return Err(HubError::Cancelled);
            }
            let n_bytes = match reader.read(&mut buffer) {
                Ok(0) => return self.check_end(part, total),
                Ok(n_bytes) => n_bytes,
                Err(source) => return Err(HubError::Network { url: self.url.to_string(), source: source.into() }),
            };
            part.append(buffer.get(..n_bytes).unwrap_or_default(), total)?;
            watch.progress(part.len, total);
            if total.is_some_and(|total| part.len > total) {
                // More than promised: enough to know that the check will fail.
                return Ok(());
            }
        }
    }

    fn check_end(&self, part: &Part, total: Option<u64>) -> Result<(), HubError> {
        match total.filter(|total| part.len < *total) {
            Some(expected) => Err(HubError::BrokeOff { url: self.url.to_string(), got: part.len, expected }),
            None => Ok(()),
        }
    }

    fn verify(&self, part: &mut Part, digest: Option<&str>) -> Result<(), HubError> {
        if let Some(expected) = self.file.size_bytes.filter(|expected| *expected != part.len) {
            let found = part.len;
            part.clear()?;
            return Err(HubError::WrongSize { path: self.path.clone(), expected, found });
        }
        let Some(expected) = digest else { return Ok(()) };
        let found = part.sha256()?;
        if found != expected {
            part.clear()?;
            return Err(HubError::WrongDigest { path: self.path.clone(), expected: expected.to_owned(), found });
        }
        Ok(())
    }
}

/// The whole file's size, from the headers of an answer that starts at `start`.
fn total_bytes(answer: &Answer, start: u64) -> Option<u64> {
    let headers = answer.response.headers();
    let of_range = text(headers, "content-range").and_then(|range| range.rsplit_once('/')?.1.parse().ok());
    of_range.or_else(|| number(headers, "content-length").map(|rest| start + rest))
}
