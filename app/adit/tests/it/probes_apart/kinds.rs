//! All kinds of keyed listeners, started as users start them. A new kind is a new entry of
//! [`KINDS`].

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::{AditProcess, BytePattern, TEST_TIMEOUT, TempFolder, traffic};

use crate::setup::{ALLOW, start};

const IDENTITY: &str = "ICEiIyQlJicoKSorLC0uLw==";
const OWN: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";
const ALICE: &str = "AAECAwQFBgcICQoLDA0ODw==";
/// A client's clock may be a second behind; one more, because the time stamp has whole seconds.
const BEHIND: Duration = Duration::from_millis(2100);
/// Length of a client's first bytes, longer than the part that the probes change.
const FIRST: usize = 300;

/// A kind of listener.
#[derive(Debug)]
pub(crate) struct ListenerCase {
    pub(crate) name: &'static str,
    /// Number of bytes after which a request can be judged.
    pub(crate) head: usize,
    /// True for the most important kind of its edition: all lengths are tried.
    pub(crate) chief: bool,
    /// Method and key in its URL.
    listen: &'static str,
    /// Further parameters of its URL; `{}` is the folder with its files.
    files: &'static str,
    /// The same for the server behind it, if it is a relay.
    behind: Option<&'static str>,
    /// Method and keys in a client's URL.
    client: &'static str,
    /// True if it recognizes recordings from before a restart.
    pub(crate) remembers: bool,
    /// True if another listener with the same key refuses a recording of this one. The AEAD edition
    /// cannot recognize it.
    pub(crate) refused_elsewhere: bool,
}

/// All kinds.
pub(crate) const KINDS: [ListenerCase; 5] = [
    ListenerCase {
        name: "2022, one key",
        head: 16 + 27,
        chief: true,
        listen: "2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D",
        files: "",
        behind: None,
        client: "2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D",
        remembers: true,
        refused_elsewhere: true,
    },
    ListenerCase {
        name: "2022, users",
        head: 16 + 16 + 27,
        chief: false,
        listen: "2022-blake3-aes-128-gcm:MDEyMzQ1Njc4OTo7PD0%2BPw%3D%3D",
        files: "&users=@{}/users",
        behind: None,
        client: "2022-blake3-aes-128-gcm:MDEyMzQ1Njc4OTo7PD0%2BPw%3D%3D:\
                 AAECAwQFBgcICQoLDA0ODw%3D%3D",
        remembers: true,
        refused_elsewhere: true,
    },
    ListenerCase {
        name: "2022, relay",
        head: 16 + 16 + 27,
        chief: false,
        listen: "2022-blake3-aes-128-gcm:ICEiIyQlJicoKSorLC0uLw%3D%3D",
        files: "&relay=@{}/relay",
        behind: Some("2022-blake3-aes-128-gcm:MDEyMzQ1Njc4OTo7PD0%2BPw%3D%3D"),
        client: "2022-blake3-aes-128-gcm:ICEiIyQlJicoKSorLC0uLw%3D%3D:\
                 MDEyMzQ1Njc4OTo7PD0%2BPw%3D%3D:AAECAwQFBgcICQoLDA0ODw%3D%3D",
        // The server behind it does, and refuses them at its own time.
        remembers: false,
        refused_elsewhere: true,
    },
    ListenerCase {
        name: "AEAD, one password",
        head: 16 + 18,
        chief: true,
        listen: "aes-128-gcm:password",
        files: "&state=@{}/state",
        behind: None,
        client: "aes-128-gcm:password",
        remembers: true,
        refused_elsewhere: false,
    },
    ListenerCase {
        name: "AEAD, users",
        head: 16 + 18,
        chief: false,
        listen: "aes-128-gcm",
        files: "&users=@{}/passwords&state=@{}/state",
        behind: None,
        client: "aes-128-gcm:password-40",
        remembers: true,
        refused_elsewhere: false,
    },
];

/// The target of all clients.
static ORIGIN: LazyLock<OriginServer> = LazyLock::new(|| OriginServer::start().unwrap());

/// The first bytes that a client and its server have exchanged.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub(crate) request: Vec<u8>,
    pub(crate) answer: Vec<u8>,
    at: Instant,
}

/// A listener in use, and the servers behind it.
#[derive(Debug)]
pub(crate) struct Port {
    kind: &'static ListenerCase,
    folder: TempFolder,
    query: String,
    front: Option<AditProcess>,
    back: Option<AditProcess>,
}

impl ListenerCase {
    /// Starts a listener with further parameters.
    pub(crate) fn start(&'static self, more: &str) -> Port {
        let folder = TempFolder::new("probes").unwrap();
        let users = format!("alice:{ALICE}\nbob:{IDENTITY}\n");
        let users = folder.write_file("users", users).unwrap();
        let many = (0..60).map(|n| format!("user-{n}:password-{n}\n"));
        folder
            .write_file("passwords", many.collect::<String>())
            .unwrap();
        let query = format!("{ALLOW}&{more}");
        let back = self.behind.map(|listen| {
            let users = users.display();
            let url = format!("ss://{listen}@127.0.0.1:0?{query}&users=@{users}");
            start(&["run", &url])
        });
        if let Some(back) = &back {
            let port = back.addr().port();
            let relay = format!(r#"[{{"server": "127.0.0.1", "port": {port}, "psk": "{OWN}"}}]"#);
            folder.write_file("relay", relay).unwrap();
        }
        let mut port = Port {
            kind: self,
            folder,
            query,
            front: None,
            back,
        };
        port.front = Some(port.run());
        port
    }
}

impl Port {
    fn run(&self) -> AditProcess {
        let (listen, query) = (self.kind.listen, &self.query);
        let folder = self.folder.path().display().to_string();
        let files = self.kind.files.replace("{}", &folder);
        start(&["run", &format!("ss://{listen}@127.0.0.1:0?{query}{files}")])
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.front.as_ref().unwrap().addr()
    }

    /// Returns the first bytes of an accepted client, and those of the server, which show that the
    /// listener still serves.
    pub(crate) fn record(&self) -> Recording {
        let tap = RecordingRelay::start(self.addr()).unwrap();
        let entry = format!("tcp://127.0.0.1:0/{}", ORIGIN.addr());
        let client = start(&["run", &entry, &self.hop(tap.addr())]);
        let mut stream = traffic::connect_directly(client.addr()).unwrap();
        let said = BytePattern::new(77).next_bytes(FIRST);
        stream.write_all(&[b"ECHO\n", &said[..]].concat()).unwrap();
        let mut back = vec![0; FIRST];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, said);
        let first = |all: Vec<Vec<u8>>| all.into_iter().next().unwrap();
        let recording = Recording {
            request: first(tap.requests()),
            answer: first(tap.answers()),
            at: Instant::now(),
        };
        assert!(recording.request.len() > FIRST && recording.answer.len() > FIRST);
        // The client would wait briefly for an open session to end.
        drop(stream);
        client.stop().unwrap();
        recording
    }

    /// Returns a packet that was answered, and its answer. It was sent from another socket than the probes
    /// are.
    pub(crate) fn record_packet(&self) -> (Vec<u8>, Vec<u8>) {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            socket
        };
        let (tap, user, far) = (socket(), socket(), socket());
        let entry = format!("udp://127.0.0.1:0/{}", ORIGIN.addr());
        let client = start(&["run", &entry, &self.hop(tap.local_addr().unwrap())]);
        let said = BytePattern::new(5).next_bytes(100);
        user.send_to(&said, client.addr()).unwrap();
        let mut buf = [0; 2048];
        let len = tap.recv(&mut buf).unwrap();
        let request = buf[..len].to_vec();
        far.send_to(&request, self.addr()).unwrap();
        let len = far.recv(&mut buf).unwrap();
        client.stop().unwrap();
        (request, buf[..len].to_vec())
    }

    fn hop(&self, server: SocketAddr) -> String {
        format!("ss://{}@{server}", self.kind.client)
    }

    /// Restarts the listener at another address, late enough after `seen` that time stamps show which was
    /// first.
    pub(crate) fn restart(&mut self, seen: &Recording) {
        self.front.take().unwrap().stop().unwrap();
        wait_until(seen.at + BEHIND);
        self.front = Some(self.run());
    }

    /// Starts another listener with the same keys after `seen`; it only shares the servers
    /// behind it.
    pub(crate) fn another(&self, seen: &Recording) -> AditProcess {
        wait_until(seen.at + BEHIND);
        self.run()
    }

    /// Stops all processes, which must exit successfully.
    pub(crate) fn stop(self) {
        self.front.unwrap().stop().unwrap();
        if let Some(back) = self.back {
            back.stop().unwrap();
        }
    }
}

fn wait_until(then: Instant) {
    thread::sleep(then.saturating_duration_since(Instant::now()));
}
