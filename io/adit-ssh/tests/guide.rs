//! Tests that the guide's example programs work, and that the guide shows them unchanged. The
//! documentation tests of `adit_ssh` check that its snippets compile with the imports that they show.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

use std::fs;
use std::path::{Path, PathBuf};

use adit_interop::TempFolder;
use adit_interop::openssh::{Sshd, current_user, generate_key};
use adit_ssh::SessionEnd;
use adit_ssh::client::{Client, ClientConfig, Exit, Login, Session};
use adit_ssh::server::{Incoming, Server};
use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};
use adit_ssh_proto::connection::SshChannelRequest;
use adit_ssh_proto::key::{HostName, PrivateKey, PublicKey};
use adit_stream::Tcp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

#[path = "../examples/ssh_client.rs"]
mod ssh_client;
#[path = "../examples/ssh_forward.rs"]
mod ssh_forward;
#[path = "../examples/ssh_login.rs"]
mod ssh_login;
#[path = "../examples/ssh_own.rs"]
mod ssh_own;
#[path = "../examples/ssh_server.rs"]
mod ssh_server;

const GUIDE: &str = include_str!("../../../docs/guides/ssh-library.md");
const EXAMPLES: [(&str, &str); 5] = [
    ("ssh_client", include_str!("../examples/ssh_client.rs")),
    ("ssh_forward", include_str!("../examples/ssh_forward.rs")),
    ("ssh_login", include_str!("../examples/ssh_login.rs")),
    ("ssh_own", include_str!("../examples/ssh_own.rs")),
    ("ssh_server", include_str!("../examples/ssh_server.rs")),
];

/// Returns the lines between `// region: NAME` and `// end`, with the names of file and region.
fn regions() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (file, text) in EXAMPLES {
        let mut open = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("// region: ") {
                assert!(!open, "{file}: {name} begins inside another");
                found.push((format!("{file}: {name}"), String::new()));
                open = true;
            } else if line == "// end" {
                open = false;
            } else if open {
                let region = &mut found.last_mut().unwrap().1;
                region.push_str(line);
                region.push('\n');
            }
        }
        assert!(!open, "{file}: a region has no end");
    }
    found
}

/// Returns each code block of the guide, with the marker in the line before it.
fn blocks() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut mark = String::new();
    let mut lines = GUIDE.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line
            .strip_prefix("<!-- ")
            .and_then(|l| l.strip_suffix(" -->"))
        {
            name.clone_into(&mut mark);
        }
        if line == "```rust" {
            let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push((std::mem::take(&mut mark), code.join("\n") + "\n"));
        }
    }
    found
}

/// Returns a snippet without its imports and error type, which the program has only once.
fn without_head(code: &str) -> &str {
    let mut rest = code;
    while rest.starts_with("use ") || rest.starts_with("type Fallible<T> = ") {
        let (_, behind) = rest.split_once(";\n").unwrap();
        rest = behind.trim_start_matches('\n');
    }
    rest
}

#[test]
fn the_guide_shows_what_is_run() {
    let (mut regions, mut blocks) = (regions(), blocks());
    assert!(regions.len() > 20, "{}", regions.len());
    regions.sort();
    blocks.sort();
    for ((mark, shown), (name, is)) in blocks.iter().zip(&regions) {
        assert_eq!((mark, without_head(shown)), (name, &**is));
        assert!(!shown.contains("\n# "), "{mark}: a line that is hidden");
    }
    assert_eq!(blocks.len(), regions.len());
}

/// An OpenSSH server, and the client's files for it.
struct Host {
    sshd: Sshd,
    known_hosts: PathBuf,
}

impl Host {
    fn start() -> Self {
        let sshd = Sshd::start("AcceptEnv LANG").unwrap();
        let (key, _) = PublicKey::from_line(&sshd.host_key().unwrap())
            .map(|(key, comment)| (key, comment.len()))
            .unwrap();
        let line = ssh_login::known_line("127.0.0.1", sshd.port(), &key).unwrap();
        let known_hosts = sshd.folder().join("known_hosts");
        fs::write(&known_hosts, line).unwrap();
        Self { sshd, known_hosts }
    }

    async fn dial(&self) -> Session {
        let (key, user) = (self.sshd.folder().join("id"), current_user());
        let (port, known) = (self.sshd.port(), &self.known_hosts);
        let dialled = ssh_client::dial("127.0.0.1", port, &user, &key, known);
        dialled.await.unwrap()
    }
}

#[tokio::test]
async fn programs_of_the_client() {
    let host = Host::start();
    let session = host.dial().await;
    let said = ssh_client::output(&session, "echo $((6 * 7))").await;
    assert_eq!(said.unwrap(), b"42\n");
    let failed = ssh_client::output(&session, "echo no >&2; exit 3").await;
    assert!(failed.unwrap_err().to_string().contains("no"));
    assert_eq!(ssh_client::run(&session, "exit 5").await.unwrap(), 5);
    let (text, exit) = ssh_client::start(&session, b"b\na\n").await.unwrap();
    assert_eq!((&*text, exit), ("a\nb\n", Some(Exit::Status(0))));
    let shown = ssh_client::shell(&session, b"stty size; exit\n")
        .await
        .unwrap();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains("24 132"), "{shown}");
    let mut sftp = ssh_client::subsystem(&session, "sftp").await.unwrap();
    // INIT, version 3: the server answers with VERSION.
    sftp.write_all(&[0, 0, 0, 5, 1, 0, 0, 0, 3]).await.unwrap();
    sftp.flush().await.unwrap();
    let mut answer = [0; 9];
    sftp.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[4..], [2, 0, 0, 0, 3]);
    let about = ssh_client::about(&session);
    assert!(about.starts_with("SSH-2.0-OpenSSH"), "{about}");
    assert!(matches!(
        ssh_client::close(session).await,
        SessionEnd::Closed
    ));
    sftp.read_to_end(&mut Vec::new()).await.unwrap_err();
}

#[tokio::test]
async fn an_unknown_host_is_refused() {
    let host = Host::start();
    let another = generate_key(host.sshd.folder(), "another").unwrap();
    let line = fs::read_to_string(another.with_extension("pub")).unwrap();
    let (key, _) = PublicKey::from_line(&line).unwrap();
    let name = HostName::new("127.0.0.1", host.sshd.port()).unwrap();
    fs::write(&host.known_hosts, name.known_hosts_line(&key, None)).unwrap();
    let (key, port) = (host.sshd.folder().join("id"), host.sshd.port());
    let dialled = ssh_client::dial("127.0.0.1", port, "me", &key, &host.known_hosts).await;
    let why = dialled.unwrap_err().to_string();
    assert!(why.contains("has changed"), "{why}");
    let missing = ssh_client::dial("127.0.0.1", port, "me", &key, Path::new("none")).await;
    missing.unwrap_err();
}

#[tokio::test]
async fn connections_both_ways() {
    let host = Host::start();
    let session = host.dial().await;
    // An echo server.
    let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = echo.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = echo.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                tokio::io::copy(&mut reader, &mut writer).await
            });
        }
    });
    let mut channel = ssh_forward::dial(&session, "127.0.0.1", port)
        .await
        .unwrap();
    channel.write_all(b"dial").await.unwrap();
    channel.shutdown().await.unwrap();
    let mut back = String::new();
    channel.read_to_string(&mut back).await.unwrap();
    assert_eq!(back, "dial");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local = listener.local_addr().unwrap();
    let target = ("127.0.0.1".to_owned(), port);
    tokio::spawn(ssh_forward::local(session.clone(), listener, target));
    let remote = ssh_forward::listen(&session, port).await.unwrap();
    for port in [local.port(), remote] {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        socket.write_all(b"round").await.unwrap();
        socket.shutdown().await.unwrap();
        let mut back = String::new();
        socket.read_to_string(&mut back).await.unwrap();
        assert_eq!(back, "round");
    }

    let path = |name: &str| host.sshd.folder().join(name).to_str().unwrap().to_owned();
    let (here, there) = (path("here"), path("there"));
    let unix = UnixListener::bind(&here).unwrap();
    let mut channel = ssh_forward::dial_unix(&session, &here).await.unwrap();
    let (mut socket, _) = unix.accept().await.unwrap();
    channel.write_all(b"unix").await.unwrap();
    channel.shutdown().await.unwrap();
    back.clear();
    socket.read_to_string(&mut back).await.unwrap();
    assert_eq!(back, "unix");
    let knock = async {
        let mut socket = loop {
            // The server listens once it has handled the request.
            match UnixStream::connect(&there).await {
                Ok(socket) => break socket,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        socket.write_all(b"knock").await.unwrap();
    };
    let (got, ()) = tokio::join!(ssh_forward::listen_unix(&session, &there), knock);
    assert_eq!(got.unwrap(), "knock");
}

#[tokio::test]
async fn ways_to_log_in() {
    let folder = TempFolder::new("guide").unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    generate_key(folder.path(), "host").unwrap();
    generate_key(folder.path(), "id").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let users = ssh_server::Users {
        keys: ssh_server::authorized_keys_of(&read("id.pub")).unwrap(),
        password: Some("open sesame".to_owned()),
    };
    let config = ssh_server::config(&read("host")).unwrap();
    tokio::spawn(ssh_server::serve(listener, config, users));

    let pinned = || ssh_login::fixed_host_key(&read("host.pub")).unwrap();
    let key = || PrivateKey::from_text(&read("id"), None).unwrap();
    for (login, good) in [
        (ssh_login::with_password("ann", "open sesame"), true),
        (ssh_login::with_password("ann", "open"), false),
        (
            ssh_login::interactive("ann", |_| "open sesame".to_owned()),
            true,
        ),
        (ssh_login::interactive("ann", |_| String::new()), false),
        (Login::new("ann").with_key(key()), true),
    ] {
        let mut config = ClientConfig::new(pinned(), login);
        ssh_login::choose(&mut config);
        let entered = Client::connect_tcp("127.0.0.1", port, config).await;
        assert_eq!(entered.is_ok(), good);
        if let Ok(session) = entered {
            let negotiated = session.negotiated();
            assert_eq!(negotiated.kex, Kex::Curve25519);
            assert_eq!(negotiated.client_to_server.cipher, Cipher::Aes128Ctr);
            assert_eq!(negotiated.client_to_server.mac, Some(Mac::Umac64Etm));
            let said = ssh_client::output(&session, "there").await.unwrap();
            assert_eq!(said, b"hello ann: there\n");
            // Forwards the server to itself: the connection starts with its version.
            let remote = ssh_forward::listen(&session, port).await.unwrap();
            let mut socket = TcpStream::connect(("127.0.0.1", remote)).await.unwrap();
            let mut greeting = [0; 8];
            socket.read_exact(&mut greeting).await.unwrap();
            assert_eq!(&greeting, b"SSH-2.0-");
        }
    }
    let [line, fingerprint, file] = ssh_login::forms(&key()).unwrap();
    assert!(read("id.pub").starts_with(line.rsplit_once(' ').unwrap().0));
    assert!(PrivateKey::from_text(&file, None).unwrap().public_key() == key().public_key());
    let host = PrivateKey::from_text(&read("host"), None).unwrap();
    let print = host.public_key().fingerprint();
    for (host_key, good) in [
        (ssh_login::host_key_callback(print), true),
        (ssh_login::host_key_callback(fingerprint), false),
        (ssh_login::any_host_key(), true),
    ] {
        let login = Login::new("ann").with_key(key());
        let config = ClientConfig::new(host_key, login);
        let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert_eq!(ssh_client::connect(socket, config).await.is_ok(), good);
    }
}

#[tokio::test]
async fn agents_and_certificates() {
    let agent = Agent::start();
    let host = Host::start();
    let folder = host.sshd.folder();
    agent.add(&folder.join("id"));
    let login = ssh_login::with_agent(&current_user(), &agent.socket())
        .await
        .unwrap();
    let pinned = || ssh_login::fixed_host_key(&host.sshd.host_key().unwrap()).unwrap();
    let config = ClientConfig::new(pinned(), login);
    let session = Client::connect_tcp("127.0.0.1", host.sshd.port(), config)
        .await
        .unwrap();
    assert_eq!(ssh_client::run(&session, "true").await.unwrap(), 0);

    let listed = ssh_forward::with_agent(&session, agent.socket(), "ssh-add -l").await;
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert!(listed.contains("(ED25519)"), "{listed}");

    let authority = generate_key(folder, "ca").unwrap();
    let mut keygen = std::process::Command::new("ssh-keygen");
    keygen
        .args(["-q", "-t", "ed25519", "-N", "hidden", "-f"])
        .arg(folder.join("sealed"));
    assert!(keygen.status().unwrap().success());
    let mut sign = std::process::Command::new("ssh-keygen");
    sign.args(["-q", "-I", "me", "-n", &current_user(), "-s"])
        .arg(&authority);
    sign.arg(folder.join("sealed.pub"));
    assert!(sign.status().unwrap().success());
    let ca = fs::read_to_string(folder.join("ca.pub")).unwrap();
    fs::write(
        folder.join("authorized_keys"),
        format!("cert-authority {ca}"),
    )
    .unwrap();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (key, certificate) = (read("sealed"), read("sealed-cert.pub"));
    assert!(ssh_login::with_certificate("me", &key, "wrong", &certificate).is_err());
    let login =
        ssh_login::with_certificate(&current_user(), &key, "hidden", certificate.trim()).unwrap();
    let config = ClientConfig::new(pinned(), login);
    let session = Client::connect_tcp("127.0.0.1", host.sshd.port(), config)
        .await
        .unwrap();
    assert_eq!(ssh_client::run(&session, "true").await.unwrap(), 0);
}

/// A program that exits by a signal. OpenSSH's server does not deliver signals to the programs of a
/// privileged user.
#[tokio::test]
async fn signals_arrive() {
    let folder = TempFolder::new("guide").unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    generate_key(folder.path(), "host").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = ssh_server::config(&read("host")).unwrap();
    let users = ssh_server::Users {
        keys: Vec::new(),
        password: Some("word".to_owned()),
    };
    let server = async {
        let (socket, _) = listener.accept().await.unwrap();
        let below = Box::new(Tcp::new(socket));
        let mut connection = Server::accept(below, &config, &users).await.unwrap();
        let Some(Incoming::Session(opening)) = connection.accept().await else {
            panic!("no session is wanted");
        };
        let session = opening.accept().unwrap();
        while let Some(next) = session.next_request().await {
            if let SshChannelRequest::Signal(name) = &next.request {
                session.control().send_exit_signal(name.clone(), false, "");
                break;
            }
            next.reply.grant();
        }
    };
    let pinned = ssh_login::fixed_host_key(&read("host.pub")).unwrap();
    let client = async {
        let config = ClientConfig::new(pinned, ssh_login::with_password("me", "word"));
        let session = Client::connect_tcp("127.0.0.1", port, config)
            .await
            .unwrap();
        ssh_client::signal(&session).await.unwrap()
    };
    let ((), exit) = tokio::join!(server, client);
    assert!(matches!(exit, Some(Exit::Signal { name, .. }) if name == "TERM"));
}

#[tokio::test]
async fn channels_and_requests_of_own_types() {
    let (session, connection) = ssh_own::both_ends().await.unwrap();
    let server = connection.handle().clone();
    let served = tokio::spawn(ssh_own::serve(connection));
    assert_eq!(ssh_own::time(&session).await.unwrap(), "noon");
    let shouted = ssh_own::shout(&session, "quiet").await.unwrap();
    assert_eq!(shouted, b"QUIET");
    session
        .open_custom_channel("x@example.com", [])
        .await
        .unwrap_err();
    let handled = tokio::spawn({
        let session = session.clone();
        async move { ssh_own::handle(&session).await }
    });
    let mut news = Err(());
    for _ in 0..10_000 {
        // The client accepts channels once it has registered the type.
        match server
            .open_custom_channel("news@example.com", "today")
            .await
        {
            Ok(opened) => {
                news = Ok(opened);
                break;
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
    let mut news = news.unwrap();
    let mut back = Vec::new();
    news.channel().read_to_end(&mut back).await.unwrap();
    assert_eq!(back, b"read");
    let name = server.send_request("name@example.com", []).await;
    assert_eq!(name.unwrap(), b"a client");
    server
        .send_request("age@example.com", [])
        .await
        .unwrap_err();
    session.disconnect("");
    served.await.unwrap().unwrap();
    handled.await.unwrap().unwrap();
}

/// OpenSSH's agent, stopped with the test.
struct Agent {
    folder: TempFolder,
    process: std::process::Child,
}

impl Agent {
    fn start() -> Self {
        let folder = TempFolder::new("agent").unwrap();
        let mut command = std::process::Command::new("ssh-agent");
        command
            .arg("-D")
            .arg("-a")
            .arg(folder.path().join("socket"));
        command.stdout(std::process::Stdio::null());
        let process = command.spawn().unwrap();
        let agent = Self { folder, process };
        for _ in 0..500 {
            if agent.socket().exists() {
                return agent;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the agent does not come");
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn add(&self, key: &Path) {
        let mut command = std::process::Command::new("ssh-add");
        command
            .arg("-q")
            .arg(key)
            .env("SSH_AUTH_SOCK", self.socket());
        assert!(command.status().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
