//! Downloads of published models from a Hugging Face hub or a mirror of one.
//!
//! A [`RepoRef`] says what is wanted, [`Hub`] asks the server which files that is, and [`Download`] brings each file here: resumable, checked, and
//! renamed to its final name only when it is whole. The one idea: a file under its final name is always complete. Reading models is not done here.

mod catalogue;
mod client;
mod download;
mod error;
mod listing;
mod part;
mod reference;
mod retry;

pub use catalogue::{Catalogue, CatalogueEntry};
pub use client::Hub;
pub use download::{Download, Outcome, Watch};
pub use error::HubError;
pub use listing::{RemoteFile, choose_files};
pub use reference::RepoRef;
pub use retry::{Backoff, Pause};
