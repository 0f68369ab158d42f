//! A receiver of OTLP/HTTP that answers 400 to what is not a valid request, and remembers that.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::documents::{check_metrics, check_traces};

/// The received documents.
#[derive(Default)]
struct Received {
    text: String,
    /// The headers of all requests.
    headers: String,
    spans: Vec<Value>,
    metrics: Vec<Value>,
    faults: Vec<String>,
}

pub(crate) struct Collector {
    addr: SocketAddr,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into())
    }

    pub(crate) fn start_at(addr: SocketAddr) -> Self {
        let listener = TcpListener::bind(addr).unwrap();
        let addr = listener.local_addr().unwrap();
        let received: Arc<Mutex<Received>> = Arc::default();
        let shared = received.clone();
        // Ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { addr, received }
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns all spans so far, of valid requests.
    pub(crate) fn spans(&self) -> Vec<Value> {
        self.look(|received| received.spans.clone())
    }

    /// Returns all metrics so far, of valid requests.
    pub(crate) fn metrics(&self) -> Vec<Value> {
        self.look(|received| received.metrics.clone())
    }

    /// Returns the text of all requests.
    pub(crate) fn text(&self) -> String {
        self.look(|received| received.text.clone())
    }

    /// Returns the headers of all requests, with lower-case names.
    pub(crate) fn headers(&self) -> String {
        self.look(|received| received.headers.clone())
    }

    fn look<T>(&self, at: impl FnOnce(&Received) -> T) -> T {
        let received = self.received.lock().unwrap();
        assert!(received.faults.is_empty(), "{:?}", received.faults);
        at(&received)
    }
}

fn serve(stream: TcpStream, shared: &Mutex<Received>) {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut stream = BufReader::new(stream);
    let answer = match receive(&mut stream, shared) {
        Ok(()) => "200 OK",
        Err(fault) => {
            shared.lock().unwrap().faults.push(fault);
            "400 Bad Request"
        }
    };
    let body = "{\"partialSuccess\":{}}";
    // The other side may have ended.
    let _ = write!(
        stream.get_mut(),
        "HTTP/1.1 {answer}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Reads one request.
fn receive(stream: &mut BufReader<TcpStream>, shared: &Mutex<Received>) -> Result<(), String> {
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).map_err(|why| why.to_string())?;
        Ok::<_, String>(line.trim_end().to_owned())
    };
    let request = line()?;
    if request.is_empty() {
        // Nothing was sent.
        return Ok(());
    }
    let mut length = None;
    let mut is_json = false;
    let mut headers = String::new();
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(": ") else {
            break;
        };
        let name = name.to_ascii_lowercase();
        match &*name {
            "content-length" => length = value.parse::<usize>().ok(),
            "content-type" => is_json = value == "application/json",
            _ => {}
        }
        headers += &format!("{name}: {value}\n");
    }
    if !is_json {
        return Err("the content is not application/json".to_owned());
    }
    let mut body = vec![0; length.ok_or("no length")?];
    stream
        .read_exact(&mut body)
        .map_err(|why| why.to_string())?;
    let text = String::from_utf8(body).map_err(|why| why.to_string())?;
    let document: Value = serde_json::from_str(&text).map_err(|why| why.to_string())?;
    let (mut spans, mut metrics) = (Vec::new(), Vec::new());
    match request.as_str() {
        "POST /v1/traces HTTP/1.1" => spans = check_traces(&document)?,
        "POST /v1/metrics HTTP/1.1" => metrics = check_metrics(&document)?,
        other => return Err(format!("`{other}`")),
    }
    let mut received = shared.lock().unwrap();
    received.text.push_str(&text);
    received.headers.push_str(&headers);
    received.spans.extend(spans);
    received.metrics.extend(metrics);
    drop(received);
    Ok(())
}
