//! The HTTP client: requests to the hub, and redirects followed one by one.
//!
//! Redirects are followed by hand for two reasons: the hub tells size and digest on the first answer, not on the last, and the access token must
//! never reach another host than the one it was given for.

use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::{Agent, Body};
use url::Url;

use super::listing::{self, RemoteFile};
use super::retry::{Backoff, Pause, with_retry};
use super::{HubError, RepoRef};

const MAX_REDIRECTS: usize = 10;
const MAX_FAILURES: u32 = 5;
/// A listing of ten thousand files has about this many bytes.
const MAX_LISTING_BYTES: u64 = 16 << 20;

/// A hub: its address, and the access token for it.
pub struct Hub {
    agent: Agent,
    endpoint: Url,
    token: Option<String>,
}

/// The last answer of a chain of redirects, and what the hub said about the file on the way.
pub(super) struct Answer {
    pub(super) response: Response<Body>,
    /// The content's identity, without quotes: the digest that the hub links to, else the entity tag.
    pub(super) etag: Option<String>,
    /// The whole file's size as the hub gives it before it redirects.
    pub(super) linked_size_bytes: Option<u64>,
}

impl Hub {
    /// A client for the hub at `endpoint`, an `http` or `https` address.
    ///
    /// # Errors
    /// When the address is not one.
    pub fn new(endpoint: &str, token: Option<String>) -> Result<Self, HubError> {
        let bad = |what: &str| HubError::Answer { url: endpoint.to_owned(), what: what.to_owned() };
        let parsed = Url::parse(endpoint).map_err(|error| bad(&format!("not an address: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.cannot_be_a_base() {
            return Err(bad("an address starts with https:// or http://"));
        }
        Ok(Self { agent: agent(), endpoint: parsed, token: token.filter(|token| !token.is_empty()) })
    }

    /// Every file of a repository at `revision` (a branch, tag or commit), with sizes and digests.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, or the network's error after several tries.
    pub fn list(&self, repo: &RepoRef, revision: &str, pause: &mut Pause) -> Result<Vec<RemoteFile>, HubError> {
        let mut files = Vec::new();
        let mut next = Some(self.listing_url(repo, revision));
        while let Some(url) = next {
            let (page, following) = with_retry(Backoff::new(MAX_FAILURES), pause, || self.list_page(&url))?;
            files.extend(page);
            next = following;
        }
        Ok(files)
    }

    /// Where one file of a repository is downloaded from.
    pub fn file_url(&self, repo: &RepoRef, revision: &str, path: &str) -> Url {
        let path = path.split('/');
        self.url([repo.owner.as_str(), repo.repo.as_str(), "resolve", revision].into_iter().chain(path))
    }

    /// Requests a file from byte `start` on.
    pub(super) fn get(&self, url: &Url, start: u64) -> Result<Answer, HubError> {
        let (mut url, mut etag, mut linked_size_bytes) = (url.clone(), None, None);
        for _ in 0..=MAX_REDIRECTS {
            let response = self.request(&url, start)?;
            etag = etag.or_else(|| text(response.headers(), "x-linked-etag").map(unquote));
            linked_size_bytes = linked_size_bytes.or_else(|| number(response.headers(), "x-linked-size"));
            if let Some(target) = redirect_target(&url, &response)? {
                url = target;
                continue;
            }
            check_status(&url, &response, self.token.is_some())?;
            let etag = etag.or_else(|| text(response.headers(), "etag").map(unquote));
            return Ok(Answer { response, etag, linked_size_bytes });
        }
        Err(HubError::Answer { url: url.into(), what: format!("more than {MAX_REDIRECTS} redirects") })
    }

    fn listing_url(&self, repo: &RepoRef, revision: &str) -> Url {
        let mut url = self.url(["api", "models", &repo.owner, &repo.repo, "tree", revision]);
        url.set_query(Some("recursive=true"));
        url
    }

    fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    fn list_page(&self, url: &Url) -> Result<(Vec<RemoteFile>, Option<Url>), HubError> {
        let mut answer = self.get(url, 0)?;
        let next =
            text(answer.response.headers(), "link").and_then(listing::next_page).and_then(|link| url.join(link).ok());
        let body = answer.response.body_mut().with_config().limit(MAX_LISTING_BYTES).read_to_vec();
        let body = body.map_err(|source| HubError::Network { url: without_query(url), source })?;
        let files = listing::parse(&body).map_err(|what| HubError::Answer { url: without_query(url), what })?;
        // A page that leads elsewhere or to itself would be followed for ever.
        Ok((files, next.filter(|next| next != url && self.is_own(next))))
    }

    fn request(&self, url: &Url, start: u64) -> Result<Response<Body>, HubError> {
        let mut request = self.agent.get(url.as_str()).header(header::ACCEPT_ENCODING, "identity");
        if let Some(token) = self.token.as_ref().filter(|_| self.is_own(url)) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if start > 0 {
            request = request.header(header::RANGE, format!("bytes={start}-"));
        }
        request.call().map_err(|source| HubError::Network { url: without_query(url), source })
    }

    fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
    }
}

fn agent() -> Agent {
    let seconds = |n| Some(Duration::from_secs(n));
    Agent::config_builder()
        .user_agent(concat!("samara/", env!("CARGO_PKG_VERSION")))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_connect(seconds(20))
        .timeout_per_read(seconds(60))
        .timeout_per_write(seconds(60))
        .build()
        .into()
}

fn redirect_target(url: &Url, response: &Response<Body>) -> Result<Option<Url>, HubError> {
    let bad = |what: &str| HubError::Answer { url: without_query(url), what: what.to_owned() };
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = text(response.headers(), "location").ok_or_else(|| bad("a redirect without a target"))?;
    let target = url.join(location).map_err(|_| bad("a redirect to something that is not an address"))?;
    let goes_insecure = url.scheme() == "https" && target.scheme() != "https";
    if goes_insecure || !matches!(target.scheme(), "http" | "https") {
        return Err(bad("a redirect away from https, which is not followed"));
    }
    Ok(Some(target))
}

fn check_status(url: &Url, response: &Response<Body>, has_token: bool) -> Result<(), HubError> {
    let (status, url) = (response.status(), without_query(url));
    match status {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let advice = match has_token {
                true => {
                    "the token in HF_TOKEN may not read this; accept the model's terms on its page, or check the name"
                }
                false => {
                    "if the name is right, the model is private or gated: accept its terms on its page and set HF_TOKEN to an access token"
                }
            };
            Err(HubError::Denied { url, status: status.as_u16(), advice })
        }
        StatusCode::NOT_FOUND => Err(HubError::NotFound { url }),
        _ => Err(HubError::Status {
            url,
            status: status.as_u16(),
            retry_after_s: number(response.headers(), "retry-after"),
        }),
    }
}

/// Signed addresses carry secrets in their query; messages do not.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.trim().parse().ok()
}

fn unquote(etag: &str) -> String {
    etag.trim().trim_start_matches("W/").trim_matches('"').to_owned()
}
