//! A management API whose answers the test decides.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::Duration;

use adit_interop::TempFolder;
use serde_json::{Value, json};

/// A process that has these sessions, users and groups.
pub(super) struct ScriptedApi {
    folder: TempFolder,
    state: Arc<ApiState>,
}

struct ApiState {
    /// The documents by their paths.
    documents: Mutex<Vec<(&'static str, Value)>>,
    /// The requests that change something.
    changes: Mutex<Vec<String>>,
    /// True while it answers nothing and sends no events.
    is_stalled: AtomicBool,
    /// True once its connections end.
    has_ended: AtomicBool,
}

/// Returns the document of a process in this state, with a session for each of these users.
pub(super) fn sessions(users: &[&str]) -> Value {
    let session = |(at, user): (usize, &&str)| {
        json!({
            "id": at + 1, "kind": "tcp", "user": user, "route": "main", "listen": "127.0.0.1:1080",
            "target": "name:443", "age": 60 + at, "up": 100 * (at + 1), "down": 2048 * (at + 1),
        })
    };
    let all: Vec<Value> = users.iter().enumerate().map(session).collect();
    json!({ "total": all.len(), "sessions": all })
}

fn overview() -> Value {
    json!({
        "version": "9.8.7", "pid": 4711, "started": 1, "uptime": 90_061, "up": 1024, "down": 5_242_880,
        "sessionsOpen": 2, "sessionsTotal": 12_345, "connectionsOpen": 3, "associationsOpen": 1,
        "listeners": [
            {"route": "main", "listen": "127.0.0.1:1080", "transports": ["tcp", "udp"], "up": 1, "down": 2,
                "sessionsOpen": 2, "sessionsTotal": 7, "datagramsLost": 5},
        ],
        "kcp": {"RetransSegs": 17}, "rejects": [{"cause": "wrong key", "count": 4}],
        "upRate": 10, "downRate": 1024,
    })
}

impl ScriptedApi {
    pub(super) fn start(sessions: Value) -> Self {
        let groups = json!({"groups": [
            {"name": "home", "kind": "manual", "members": [
                {"name": "one", "up": true, "selected": true, "usualSeconds": 0.02, "reason": ""},
                {"name": "two", "up": false, "selected": false, "outSeconds": 9, "reason": "no answer"},
            ]},
            {"name": "any", "kind": "failover", "members": [{"name": "three", "up": true, "reason": ""}]},
        ]});
        let accounts = json!({"accounts": [
            {"name": "anna", "state": "active", "quota": 1_048_576, "usedUp": 0, "usedDown": 524_288,
                "totalUp": 1, "totalDown": 2, "sessionsOpen": 1, "devicesOpen": 1},
        ]});
        let state = Arc::new(ApiState {
            documents: Mutex::new(vec![
                ("/overview", overview()),
                // Only whether there is one counts.
                ("/events", Value::Null),
                ("/sessions", sessions),
                ("/groups", groups),
                ("/accounts", accounts),
            ]),
            changes: Mutex::default(),
            is_stalled: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        });
        let folder = TempFolder::new("scripted").unwrap();
        let listener = UnixListener::bind(folder.path().join("api.sock")).unwrap();
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.has_ended() {
                    return;
                }
                let state = shared.clone();
                // A client that goes away in the middle of an answer is no failure.
                thread::spawn(move || state.answer(stream));
            }
        });
        Self { folder, state }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("api.sock")
    }

    pub(super) fn address(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    /// Replaces a document.
    pub(super) fn set(&self, path: &'static str, document: Value) {
        let mut documents = self.state.documents.lock().unwrap();
        documents.retain(|(known, _)| *known != path);
        documents.push((path, document));
    }

    /// Removes a document, as in a process that does not know it.
    pub(super) fn forget(&self, path: &str) {
        let mut documents = self.state.documents.lock().unwrap();
        documents.retain(|(known, _)| *known != path);
    }

    /// Returns the requests that have changed something.
    pub(super) fn changes(&self) -> Vec<String> {
        self.state.changes.lock().unwrap().clone()
    }

    pub(super) fn stall(&self, is_stalled: bool) {
        self.state.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Closes its socket and all connections.
    pub(super) fn end(&self) {
        self.state.has_ended.store(true, Ordering::Relaxed);
        // Wakes the listener, which sees the end.
        let _ = UnixStream::connect(self.path());
        std::fs::remove_file(self.path()).unwrap();
    }
}

impl Drop for ScriptedApi {
    fn drop(&mut self) {
        if !self.state.has_ended() {
            self.end();
        }
    }
}

impl ApiState {
    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Waits while the process is stalled.
    fn wait_if_stalled(&self) {
        while self.is_stalled.load(Ordering::Relaxed) && !self.has_ended() {
            sleep(Duration::from_millis(20));
        }
    }

    fn answer(&self, stream: UnixStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut length = 0;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header)? <= 2 {
                break;
            }
            if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        self.wait_if_stalled();
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let path = path.split('?').next().unwrap_or("");
        match (method, path) {
            ("GET", "/healthz") => respond(&stream, "200 OK", "ok"),
            ("GET", "/events") if self.document(path).is_some() => self.send_events(stream),
            ("GET", path) => match self.document(path) {
                Some(document) => respond(&stream, "200 OK", &document.to_string()),
                None => respond(&stream, "404 Not Found", r#"{"error":"no such path"}"#),
            },
            (method, path) => {
                let body = String::from_utf8_lossy(&body);
                let change = format!("{method} {path} {body}");
                self.changes.lock().unwrap().push(change.trim().to_owned());
                match path {
                    "/sessions/999" => {
                        respond(&stream, "404 Not Found", r#"{"error":"no such session"}"#)
                    }
                    _ if method == "DELETE" => respond(&stream, "204 No Content", ""),
                    _ => respond(&stream, "200 OK", "{}"),
                }
            }
        }
    }

    fn document(&self, path: &str) -> Option<Value> {
        let documents = self.documents.lock().unwrap();
        let found = documents.iter().find(|(known, _)| *known == path);
        found.map(|(_, document)| document.clone())
    }

    /// Sends the totals, more often than a real process, until the client or the process ends.
    fn send_events(&self, mut stream: UnixStream) -> std::io::Result<()> {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        while !self.has_ended() {
            self.wait_if_stalled();
            if let Some(overview) = self.document("/overview") {
                stream.write_all(format!("event: overview\ndata: {overview}\n\n").as_bytes())?;
            }
            sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

fn respond(mut stream: &UnixStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
