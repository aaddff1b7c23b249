//! One file against a server that misbehaves: the bytes end up right, or the error says why not. Waits are counted, never slept.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use samara::hub::{Download, Hub, HubError, Outcome, RemoteFile, RepoRef, Watch};
use sha2::{Digest, Sha256};
use support::server::{Reply, Request, Server};

const BODY: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// What a download came to.
struct Run {
    result: Result<Outcome, HubError>,
    waits_s: Vec<u64>,
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl Run {
    fn is_whole(&self) -> bool {
        fs::read(&self.path).is_ok_and(|bytes| bytes == BODY)
    }

    fn leftovers(&self) -> Vec<String> {
        let names = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(".part")).collect()
    }

    fn error(&self) -> String {
        self.result.as_ref().unwrap_err().to_string()
    }
}

/// Counts what it is told; stops once this many bytes are here.
struct StopAt(u64, RefCell<u64>);

impl Watch for StopAt {
    fn progress(&mut self, here: u64, _total: Option<u64>) {
        *self.1.borrow_mut() = here;
    }

    fn is_cancelled(&self) -> bool {
        *self.1.borrow() >= self.0
    }
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn whole() -> RemoteFile {
    RemoteFile { path: "m.gguf".to_owned(), size_bytes: Some(BODY.len() as u64), sha256: Some(sha256(BODY)) }
}

/// Nothing known but the name.
fn unlisted() -> RemoteFile {
    RemoteFile { size_bytes: None, sha256: None, ..whole() }
}

/// Downloads `file` from `server` into a folder prepared by `prepare`.
fn check_download(server: &Server, file: &RemoteFile, prepare: impl Fn(&Path), stop_at: u64) -> Run {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let hub = Hub::new(&server.url(), Some("secret".to_owned())).unwrap();
    let repo: RepoRef = "owner/repo".parse().unwrap();
    let path = folder.path().join("m.gguf");
    let mut waits_s = Vec::new();
    let mut pause = |delay: Duration| {
        waits_s.push(delay.as_secs());
        true
    };
    let download = Download { hub: &hub, url: hub.file_url(&repo, "main", &file.path), file, path: path.clone() };
    let result = download.run(&mut StopAt(stop_at, RefCell::new(0)), &mut pause);
    Run { result, waits_s, path, folder }
}

fn fetch(server: &Server, file: &RemoteFile) -> Run {
    check_download(server, file, |_| {}, u64::MAX)
}

/// A part of `n_bytes` bytes of content that had the entity tag `etag`.
fn part(n_bytes: usize, etag: &'static str) -> impl Fn(&Path) {
    move |folder| {
        fs::write(folder.join("m.gguf.part"), &BODY[..n_bytes]).unwrap();
        fs::write(folder.join("m.gguf.part.etag"), etag).unwrap();
    }
}

fn tagged(request: &Request) -> Reply {
    Reply::rest_of(BODY, request).header("etag", "\"v1\"")
}

#[test]
fn a_file_arrives_and_leaves_nothing_behind() {
    let server = Server::start(|request, _| tagged(request));
    let run = fetch(&server, &whole());
    assert_eq!(run.result.as_ref().unwrap(), &Outcome::Downloaded);
    assert!(run.is_whole() && run.leftovers().is_empty());
    assert_eq!(server.requests()[0].path, "/owner/repo/resolve/main/m.gguf");
}

#[test]
fn a_whole_file_is_not_fetched_again() {
    let server = Server::start(|_, _| Reply::status(500));
    let run = check_download(&server, &whole(), |folder| fs::write(folder.join("m.gguf"), BODY).unwrap(), u64::MAX);
    assert_eq!(run.result.as_ref().unwrap(), &Outcome::Present);
    assert!(server.requests().is_empty());
}

#[test]
fn a_transfer_that_breaks_off_is_resumed() {
    let server = Server::start(|request, n| if n < 2 { tagged(request).breaks_off_after(10) } else { tagged(request) });
    let run = fetch(&server, &whole());
    assert!(run.is_whole(), "{:?}", run.result);
    let starts: Vec<_> = server.requests().iter().map(Request::range_start).collect();
    assert_eq!(starts, [None, Some(10), Some(20)]);
    assert_eq!(run.waits_s, [1, 1], "progress forgets earlier failures");
}

#[test]
fn a_server_that_ignores_ranges_sends_everything_again() {
    let server = Server::start(|_, n| {
        let reply = Reply::ok(BODY).header("etag", "\"v1\"");
        if n == 0 { reply.breaks_off_after(10) } else { reply }
    });
    let run = fetch(&server, &whole());
    assert!(run.is_whole(), "{:?}", run.result);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_that_always_breaks_off_at_the_same_place_is_given_up() {
    let server = Server::start(|_, _| Reply::ok(BODY).header("etag", "\"v1\"").breaks_off_after(10));
    let run = fetch(&server, &whole());
    assert!(run.result.is_err() && !run.path.exists());
    assert_eq!(run.waits_s, [1, 2, 4, 8, 16]);
}

#[test]
fn a_part_of_other_content_is_thrown_away() {
    let server = Server::start(|request, _| tagged(request));
    let run = check_download(&server, &unlisted(), part(5, "v0"), u64::MAX);
    assert!(run.is_whole(), "{:?}", run.result);
    let starts: Vec<_> = server.requests().iter().map(Request::range_start).collect();
    assert_eq!(starts, [Some(5), None]);
}

#[test]
fn a_part_of_the_same_content_is_kept() {
    let server = Server::start(|request, _| tagged(request));
    let run = check_download(&server, &unlisted(), part(5, "v1"), u64::MAX);
    assert!(run.is_whole(), "{:?}", run.result);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_part_that_is_longer_than_the_file_is_thrown_away() {
    let server = Server::start(|request, _| match request.range_start() {
        Some(_) => Reply::status(416),
        None => tagged(request),
    });
    let run = check_download(
        &server,
        &unlisted(),
        |folder| fs::write(folder.join("m.gguf.part"), [0; 99]).unwrap(),
        u64::MAX,
    );
    assert!(run.is_whole(), "{:?}", run.result);
}

#[test]
fn a_range_that_starts_elsewhere_is_not_appended() {
    let server = Server::start(|request, _| match request.range_start() {
        Some(_) => Reply { status: 206, ..Reply::ok(&BODY[7..]) }
            .header("content-range", "bytes 7-35/36")
            .header("etag", "\"v1\""),
        None => tagged(request),
    });
    let run = check_download(&server, &unlisted(), part(5, "v1"), u64::MAX);
    assert!(run.is_whole(), "{:?}", run.result);
}

#[test]
fn redirects_are_followed_and_the_token_stays_at_home() {
    let store = Server::start(|request, _| Reply::rest_of(BODY, request).header("etag", "\"other\""));
    let target = format!("{}/blob?signature=s3cret", store.url());
    let hub = Server::start(move |_, _| {
        Reply::status(302)
            .header("location", target.clone())
            .header("x-linked-etag", format!("\"{}\"", sha256(BODY)))
            .header("x-linked-size", "36")
    });
    let run = fetch(&hub, &unlisted());
    assert!(run.is_whole(), "{:?}", run.result);
    assert_eq!(hub.requests()[0].headers["authorization"], "Bearer secret");
    assert!(!store.requests()[0].headers.contains_key("authorization"));
}

#[test]
fn relative_redirects_lead_to_the_same_server() {
    let server =
        Server::start(
            |request, n| if n == 0 { Reply::status(307).header("location", "/moved/m.gguf") } else { tagged(request) },
        );
    let run = fetch(&server, &whole());
    assert!(run.is_whole(), "{:?}", run.result);
    let second = &server.requests()[1];
    assert_eq!((second.path.as_str(), second.headers["authorization"].as_str()), ("/moved/m.gguf", "Bearer secret"));
}

#[test]
fn redirects_in_a_circle_end() {
    let server = Server::start(|_, _| Reply::status(302).header("location", "/again"));
    assert!(fetch(&server, &whole()).error().contains("redirects"));
}

#[test]
fn redirects_to_files_are_refused() {
    let server = Server::start(|_, _| Reply::status(302).header("location", "file:///etc/passwd"));
    assert!(fetch(&server, &whole()).error().contains("redirect"));
}

#[test]
fn a_digest_promised_on_the_way_is_checked() {
    let server = Server::start(|request, n| match n {
        0 => {
            Reply::status(302).header("location", "/blob").header("x-linked-etag", format!("\"{}\"", sha256(b"other")))
        }
        _ => tagged(request),
    });
    let run = fetch(&server, &unlisted());
    assert!(run.error().contains("SHA-256"), "{}", run.error());
    assert!(!run.path.exists());
}

#[test]
fn wrong_bytes_never_get_the_final_name() {
    let mut wrong = BODY.to_vec();
    wrong[3] = b'!';
    let server = Server::start(move |_, _| Reply::ok(wrong.clone()));
    let run = fetch(&server, &whole());
    assert!(matches!(run.result, Err(HubError::WrongDigest { .. })) && !run.path.exists());
    assert_eq!(fs::metadata(run.folder.path().join("m.gguf.part")).unwrap().len(), 0);
}

#[test]
fn a_file_of_another_size_is_refused() {
    let server = Server::start(|_, _| Reply::ok(&BODY[..20]));
    let run = fetch(&server, &RemoteFile { sha256: None, ..whole() });
    assert!(run.result.is_err() && !run.path.exists());
    let longer = Server::start(|_, _| Reply::ok([BODY, BODY].concat()));
    let run = fetch(&longer, &RemoteFile { sha256: None, ..whole() });
    assert!(matches!(run.result, Err(HubError::WrongSize { .. })) && !run.path.exists(), "{:?}", run.result);
}

#[test]
fn a_busy_server_is_asked_again_later() {
    let server = Server::start(|request, n| match n {
        0 => Reply::status(503),
        1 => Reply::status(429).header("retry-after", "7"),
        2 => Reply::status(502),
        _ => tagged(request),
    });
    let run = fetch(&server, &whole());
    assert!(run.is_whole(), "{:?}", run.result);
    assert_eq!(run.waits_s, [1, 7, 4]);
}

#[test]
fn a_server_that_stays_down_is_given_up() {
    let server = Server::start(|_, _| Reply::status(503));
    let run = fetch(&server, &whole());
    assert!(run.error().contains("503"), "{}", run.error());
    assert_eq!(run.waits_s, [1, 2, 4, 8, 16]);
}

#[test]
fn refusals_say_what_to_do_and_are_not_repeated() {
    for (status, word) in [(401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, "spelling")] {
        let server = Server::start(move |_, _| Reply::status(status));
        let run = fetch(&server, &whole());
        assert!(run.error().contains(word) && run.waits_s.is_empty(), "{}", run.error());
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_cancelled_download_keeps_its_part() {
    let server = Server::start(|request, _| tagged(request).breaks_off_after(10));
    let run = check_download(&server, &whole(), |_| {}, 10);
    assert!(matches!(run.result, Err(HubError::Cancelled)));
    assert_eq!(fs::read(run.folder.path().join("m.gguf.part")).unwrap(), &BODY[..10]);
}

#[test]
fn two_downloads_of_one_file_do_not_mix() {
    let server = Server::start(|request, _| tagged(request));
    let folder = tempfile::tempdir().unwrap();
    let held = fs::File::create(folder.path().join("m.gguf.part")).unwrap();
    held.lock().unwrap();
    let hub = Hub::new(&server.url(), None).unwrap();
    let file = whole();
    let url = hub.file_url(&"a/b".parse().unwrap(), "main", &file.path);
    let download = Download { hub: &hub, url, file: &file, path: folder.path().join("m.gguf") };
    let result = download.run(&mut StopAt(u64::MAX, RefCell::new(0)), &mut |_| true);
    assert!(matches!(result, Err(HubError::Busy { .. })), "{result:?}");
}
