//! Chromium, headless, driven by its DevTools protocol over pipes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use adit_interop::TempFolder;
use serde_json::{Value, json};

/// Time limit of everything that a page does: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The descriptors 3 and 4 are the protocol's. `exec` keeps the process, so that it can be ended.
const SCRIPT: &str = r#"exec chromium "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// Chromium with one page.
pub(super) struct Browser {
    process: Child,
    requests: Option<ChildStdin>,
    messages: Receiver<Value>,
    session: String,
    last_id: u64,
    /// Errors that the page has reported.
    errors: Vec<String>,
    _profile: TempFolder,
}

/// A window, and what its user prefers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) width: u32,
    pub(super) language: &'static str,
    pub(super) theme: &'static str,
}

impl Look {
    pub(super) const WIDE: Self = Self {
        width: 1280,
        language: "en-GB",
        theme: "light",
    };
}

impl Browser {
    pub(super) fn start() -> Self {
        let profile = TempFolder::new("chromium").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "chromium", "--headless=new", "--no-sandbox"]);
        command.args(["--remote-debugging-pipe", "--no-first-run", "--disable-gpu"]);
        command.args(["--disable-background-networking", "--disable-sync"]);
        command.args(["--disable-component-update", "--disable-dev-shm-usage"]);
        // Nothing but this machine.
        command.arg("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg("about:blank");
        command.env("HOME", profile.path()).env_remove("DISPLAY");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let requests = process.stdin.take();
        let mut replies = BufReader::new(process.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while replies.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(parsed) = serde_json::from_slice(&message) else {
                    return;
                };
                if sender.send(parsed).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            process,
            requests,
            messages,
            session: String::new(),
            last_id: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for part in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(part, json!({}));
        }
        browser
    }

    /// Sends a command, and returns its result.
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut request = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            request["sessionId"] = self.session.as_str().into();
        }
        let mut bytes = request.to_string().into_bytes();
        bytes.push(0);
        self.requests.as_mut().unwrap().write_all(&bytes).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = match self.messages.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("{method} was not answered"),
                Err(RecvTimeoutError::Disconnected) => panic!("Chromium ended before {method}"),
            };
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        let about = &message["params"];
        let is_error = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            // The page asks for things that this adit may not have.
            Some("Log.entryAdded") => {
                about["entry"]["level"] == "error" && about["entry"]["source"] != "network"
            }
            _ => false,
        };
        if is_error {
            self.errors.push(about.to_string());
        }
    }

    /// Returns the errors that the page has reported since the last call.
    pub(super) fn take_errors(&mut self) -> Vec<String> {
        std::mem::take(&mut self.errors)
    }

    pub(super) fn look(&mut self, look: Look) {
        let size = json!({"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": look.width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let agent = json!({"userAgent": "Mozilla/5.0 (test)", "acceptLanguage": look.language});
        self.call("Emulation.setUserAgentOverride", agent);
        let theme = json!({"features": [{"name": "prefers-color-scheme", "value": look.theme}]});
        self.call("Emulation.setEmulatedMedia", theme);
    }

    pub(super) fn open(&mut self, url: &str) {
        // A change of the fragment alone loads nothing.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": url}));
        self.wait_until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Returns the value of an expression in the page.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let request =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", request);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    pub(super) fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!(
            "document.querySelector('{selector}')?.textContent"
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub(super) fn wait_until(&mut self, expression: &str) {
        self.wait_until_within(expression, PATIENCE);
    }

    /// Waits until an expression is true, for this time at most.
    pub(super) fn wait_until_within(&mut self, expression: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.value(&format!("Boolean({expression})")) != true {
            if Instant::now() > deadline {
                let page = self.value("document.body.innerText");
                panic!("not true: {expression}\n{page}\n{:?}", self.errors);
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Clicks at the middle of an element, as a person would.
    pub(super) fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{block: 'center'}}); \
             const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        );
        let place = self.settled_value(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Returns the value of an expression once it has stayed the same for a moment: a table that is being renewed moves its
    /// buttons.
    fn settled_value(&mut self, expression: &str) -> Value {
        let mut last = self.value(expression);
        for _ in 0..50 {
            sleep(Duration::from_millis(150));
            let now = self.value(expression);
            if now == last {
                break;
            }
            last = now;
        }
        last
    }

    pub(super) fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowRight" => 39,
            _ => panic!("{key} has no code here"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if key == "Enter" && kind == "keyDown" {
                event["text"] = "\r".into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    pub(super) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Writes a picture of the whole page to `target/dashboard`.
    pub(super) fn take_picture(&mut self, name: &str) {
        let picture = self.call(
            "Page.captureScreenshot",
            json!({"captureBeyondViewport": true}),
        );
        let bytes = decode_base64(picture["data"].as_str().unwrap());
        assert!(bytes.len() > 5000, "the picture is empty");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("dashboard");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Writes a picture of an element.
    pub(super) fn take_picture_of(&mut self, selector: &str, path: &Path) {
        let place = self.value(&format!(
            "(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect(); \
             return {{x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height, scale: 2}}; }})()"
        ));
        let picture = self.call("Page.captureScreenshot", json!({"clip": place}));
        fs::write(path, decode_base64(picture["data"].as_str().unwrap())).unwrap();
    }

    /// Returns the serious faults that axe-core finds.
    pub(super) fn accessibility_faults(&mut self) -> Vec<String> {
        if self.value("typeof axe") == "undefined" {
            let axe = fs::read_to_string(axe_path()).unwrap();
            // The policy of the page forbids scripts of others; the protocol's are not subject to it.
            self.value(&format!("{axe}; true"));
        }
        let found = self.value(
            "axe.run().then(({violations}) => violations.filter(({impact}) => ['serious', 'critical'].includes(impact)) \
             .map(({id, nodes}) => id + ': ' + nodes.map((node) => node.html + ' ' + node.failureSummary).join(' | ')))",
        );
        let found = found.as_array().unwrap().iter();
        found
            .map(|fault| fault.as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends with its pipe, and its helpers with it.
        self.requests = None;
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn axe_path() -> PathBuf {
    let path = adit_interop::external_tools::peer_path("axe-core/node_modules/axe-core/axe.min.js");
    assert!(
        path.is_file(),
        "{} is missing: cargo xtask install",
        path.display()
    );
    path
}

fn decode_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group
            .iter()
            .fold(0u32, |bits, byte| bits << 6 | u32::from(value(*byte)));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
