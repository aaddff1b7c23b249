//! A small HTTP server for download tests: each request is answered by a closure, and every request is remembered.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a client asked for; header names are in lower case.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    pub headers: HashMap<String, String>,
}

impl Request {
    /// The first byte of a `Range: bytes=N-` header.
    pub fn range_start(&self) -> Option<usize> {
        self.headers.get("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What the server answers.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// Close the connection after this many bytes of the body.
    pub breaks_off_after: Option<usize>,
}

impl Reply {
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, body: body.into(), ..Self::default() }
    }

    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn breaks_off_after(mut self, n_bytes: usize) -> Self {
        self.breaks_off_after = Some(n_bytes);
        self
    }

    /// `body` from where the request's range starts.
    pub fn rest_of(body: &[u8], request: &Request) -> Self {
        match request.range_start() {
            None => Self::ok(body),
            Some(start) => {
                let range = format!("bytes {start}-{}/{}", body.len() - 1, body.len());
                Self { status: 206, ..Self::ok(&body[start..]) }.header("content-range", range)
            }
        }
    }
}

/// Runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers the request number `n` (from 0) with `answer(&request, n)`.
    pub fn start(answer: impl Fn(&Request, usize) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = Arc::clone(&server.requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read_request(&stream) else { break };
                let n = requests.lock().unwrap().len();
                let reply = answer(&request, n);
                requests.lock().unwrap().push(request);
                send(stream, &reply);
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    /// A connection that says nothing ends the thread.
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header =
        |line: String| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let headers = lines.take_while(|line| !line.is_empty()).filter_map(header).collect();
    Some(Request { path, headers })
}

/// Errors are the client's: one that has seen enough closes the connection.
fn send(mut stream: TcpStream, reply: &Reply) {
    let mut head =
        format!("HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let n_bytes = reply.breaks_off_after.unwrap_or(reply.body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&reply.body[..n_bytes]));
}
