//! A server with a file, and the clients of its listeners.

use std::fmt::Write as _;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::Signal;

use super::{generate_client_key, read_rest};
use crate::setup::{ALLOW, bin};
use crate::ssh_hop::hop;

const METHOD: &str = "2022-blake3-aes-128-gcm";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
const ANNA: &str = "EBESExQVFhcYGRobHB0eHw==";
/// The keys that another user has in turn.
const BERT: [&str; 2] = ["ICEiIyQlJicoKSorLC0uLw==", "MDEyMzQ1Njc4OTo7PD0+Pw=="];

/// The variable parts of the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    pub(crate) round: usize,
    /// True if there is one more listener.
    pub(crate) extra: bool,
}

impl Settings {
    pub(crate) const fn of_round(round: usize) -> Self {
        Self {
            round,
            extra: round % 2 == 1,
        }
    }
}

/// A server of adit with five listeners.
pub(crate) struct Server {
    pub(crate) adit: AditProcess,
    folder: TempFolder,
    /// Of the proxy, Shadowsocks, ShadowsocksR, SSH, KCP, and the listener that comes and goes.
    ports: [u16; 6],
    reloads: usize,
    failures: usize,
}

impl Server {
    pub(crate) fn start(settings: &Settings) -> Self {
        let folder = TempFolder::new("reload").unwrap();
        generate_client_key(&folder);
        let ports = [(); 6].map(|()| free_port());
        let text = file_text(&folder, &ports, settings);
        let file = folder.write_file("adit.toml", text).unwrap();
        let socket = folder.path().join("admin.sock");
        let args = [
            "run",
            "-c",
            file.to_str().unwrap(),
            "--admin",
            socket.to_str().unwrap(),
        ];
        let adit = AditProcess::start_with(&bin(), &args, 5).unwrap();
        Self {
            adit,
            folder,
            ports,
            reloads: 0,
            failures: 0,
        }
    }

    /// Returns the address of the proxy.
    pub(crate) fn mixed(&self) -> SocketAddr {
        loopback_addr(self.ports[0])
    }

    pub(crate) const fn extra_port(&self) -> u16 {
        self.ports[5]
    }

    /// Starts a client for each of the other listeners, the Shadowsocks server first. Each has a SOCKS5 proxy.
    pub(crate) fn clients(&self) -> Vec<AditProcess> {
        let [_, ss, ssr, ssh, kcp, _] = self.ports.map(loopback_addr);
        let hops = [
            format!("ss://{METHOD}:{}@{ss}", escaped(&format!("{KEY}:{ANNA}"))),
            format!("ssr://aes-128-ctr:word@{ssr}?protocol=auth_aes128_sha1"),
            hop("ann", ssh, self.folder.path()),
            format!("ss+kcp://{METHOD}:{}@{kcp}?mode=fast3", escaped(KEY)),
        ];
        let start = |hop: &String| {
            let args = ["run", "socks5://127.0.0.1:0", hop];
            AditProcess::start_with(&bin(), &args, 1).unwrap()
        };
        hops.iter().map(start).collect()
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self, settings: &Settings) -> String {
        file_text(&self.folder, &self.ports, settings)
    }

    /// Replaces the file.
    pub(crate) fn write(&self, text: &str) {
        let draft = self.folder.write_file("draft", text).unwrap();
        std::fs::rename(draft, self.path("adit.toml")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the file, and waits until it is applied.
    pub(crate) fn reload(&mut self, settings: &Settings) {
        self.write(&self.text(settings));
        self.reloads += 1;
        let process = self.adit.process();
        process.send_signal(Signal::HUP).unwrap();
        // Not the beginning of "was not reloaded, …".
        process
            .wait_lines("reloaded /", self.reloads, TEST_TIMEOUT)
            .unwrap();
    }

    /// Sends SIGHUP, and returns the next log line with this text.
    pub(crate) fn signal_and_wait(&mut self, text: &str) -> String {
        self.failures += 1;
        let process = self.adit.process();
        process.send_signal(Signal::HUP).unwrap();
        let lines = process.wait_lines(text, self.failures, TEST_TIMEOUT);
        lines.unwrap().pop().unwrap()
    }

    /// Sends a request to the API, and returns the response.
    pub(crate) fn request(&self, head: &str) -> String {
        request(&self.path("admin.sock"), head, "")
    }

    /// Requests a reload from the API, and returns the response.
    pub(crate) fn post_reload(&self) -> String {
        self.request(
            "POST /v1/reload HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 0\r\n",
        )
    }

    /// Requests an upgrade from the API, and returns the response.
    pub(crate) fn post_upgrade(&self) -> String {
        self.request(
            "POST /v1/upgrade HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 0\r\n",
        )
    }

    /// Waits until the listener of a route has counted this number of sessions.
    #[track_caller]
    pub(crate) fn wait_for_sessions(&self, route: &str, count: u64) {
        let since = Instant::now();
        let start = format!("adit_sessions_total{{route=\"{route}\"");
        loop {
            let metrics = self.request("GET /metrics HTTP/1.1\r\n");
            let line = metrics.lines().find(|line| line.starts_with(&start));
            let counted = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
            if counted == Some(count) {
                return;
            }
            let late = since.elapsed() > Duration::from_secs(5);
            assert!(!late, "{counted:?} sessions, not {count}");
            sleep(Duration::from_millis(50));
        }
    }
}

/// Sends a request to the API at a socket, and returns the response.
pub(crate) fn request(admin: &Path, head: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(admin).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let text = format!("{head}Host: localhost\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).unwrap();
    read_rest(&mut stream)
}

/// Escapes a key for a URL.
fn escaped(key: &str) -> String {
    key.replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D")
}

fn file_text(folder: &TempFolder, ports: &[u16; 6], settings: &Settings) -> String {
    let [mixed, ss, ssr, ssh, kcp, extra] = ports;
    let round = settings.round;
    let at = folder.path().display();
    let key = escaped(KEY);
    let idle = 60 + round;
    let bert = BERT[round % 2];
    let mut text = format!(
        "[route.front]\n\
         listen = \"mixed://127.0.0.1:{mixed}?{ALLOW}&udp_idle=5m\"\n\
         via = \"direct://\"\n\
         rules = [{{ match = [\"round-{round}.test\"], via = \"reject://\" }}]\n\
         \n\
         [route.ss]\n\
         listen = \"ss://{METHOD}:{key}@127.0.0.1:{ss}?{ALLOW}&idle={idle}m\"\n\
         users = {{ anna = \"{ANNA}\", bert = \"{bert}\" }}\n\
         \n\
         [route.ssr]\n\
         listen = \"ssr://aes-128-ctr:word@127.0.0.1:{ssr}?protocol=auth_aes128_sha1&{ALLOW}&idle={idle}m\"\n\
         \n\
         [route.ssh]\n\
         listen = \"ssh://ann:secret@127.0.0.1:{ssh}?host_key=@{at}/host&authorized_keys=@{at}/id.pub&{ALLOW}&idle={idle}m\"\n\
         \n\
         [route.kcp]\n\
         listen = \"ss+kcp://{METHOD}:{key}@127.0.0.1:{kcp}?{ALLOW}&mode=fast3&idle={idle}m\"\n\
         \n\
         [run]\n\
         drain = \"2m\"\n"
    );
    if settings.extra {
        let _ = write!(
            text,
            "\n[route.extra]\nlisten = \"mixed://127.0.0.1:{extra}?{ALLOW}\"\n"
        );
    }
    text
}
