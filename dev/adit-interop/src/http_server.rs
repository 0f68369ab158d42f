//! A small HTTP server that records its requests.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::ports::free_port;
use crate::test_pattern::Checksum;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// Method.
    pub method: String,
    /// Request target, as written.
    pub target: String,
    /// Header lines, with names in lower case.
    pub headers: BTreeMap<String, String>,
}

/// A running server on both loopback addresses. It ends with the process.
#[derive(Debug)]
pub struct HttpServer {
    port: u16,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

type Files = Arc<BTreeMap<String, (String, Vec<u8>)>>;

impl HttpServer {
    /// Serves these files (path, content type, body). Any POST or PUT is answered with the length
    /// and the checksum of its body.
    pub fn start(files: &[(&str, &str, &[u8])]) -> Result<Self> {
        let port = free_port();
        let entry = |(path, kind, body): &(&str, &str, &[u8])| {
            ((*path).to_owned(), ((*kind).to_owned(), body.to_vec()))
        };
        let files: Files = Arc::new(files.iter().map(entry).collect());
        let asked = Arc::default();
        let here: [SocketAddr; 2] = [
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ];
        for addr in here {
            let listener = TcpListener::bind(addr)?;
            let (files, asked) = (Arc::clone(&files), Arc::clone(&asked));
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (files, asked) = (Arc::clone(&files), Arc::clone(&asked));
                    thread::spawn(move || serve_connection(stream, &files, &asked));
                }
            });
        }
        Ok(Self {
            port,
            requests: asked,
        })
    }

    /// Returns its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits for a request with this target. Returns true if there is one.
    #[must_use]
    pub fn wait_for_request(&self, target: &str, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.requests().iter().any(|asked| asked.target == target) {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

/// An error here is a client that disconnected.
fn serve_connection(
    stream: TcpStream,
    files: &Files,
    asked: &Mutex<Vec<ReceivedRequest>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_head(&mut reader)? {
        asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.clone());
        let (status, kind, body) = if matches!(request.method.as_str(), "POST" | "PUT") {
            if request.headers.contains_key("expect") {
                writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            let length = request
                .headers
                .get("content-length")
                .and_then(|n| n.parse().ok());
            let mut sent = Vec::new();
            reader
                .by_ref()
                .take(length.unwrap_or(0))
                .read_to_end(&mut sent)?;
            let summary = format!(
                "{} {:016x}",
                sent.len(),
                Checksum::EMPTY.extend_with(&sent).0
            );
            ("200 OK", "text/plain", summary.into_bytes())
        } else {
            match files.get(&request.target) {
                Some((kind, body)) => ("200 OK", kind.as_str(), body.clone()),
                None => ("404 Not Found", "text/plain", b"nothing here".to_vec()),
            }
        };
        let closing = request
            .headers
            .get("connection")
            .is_some_and(|c| c == "close");
        let connection = if closing { "close" } else { "keep-alive" };
        write!(
            writer,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Connection: {connection}\r\n\r\n",
            body.len()
        )?;
        if request.method != "HEAD" {
            writer.write_all(&body)?;
        }
        if closing {
            break;
        }
    }
    Ok(())
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Option<ReceivedRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(Some(ReceivedRequest {
                method,
                target,
                headers,
            }));
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}
