//! SSH listeners with OpenSSH's clients: they offer streams, and nothing else.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::http_server::HttpServer;
use adit_interop::openssh::{self, Sshd};
use adit_interop::origin::OriginServer;
use adit_interop::traffic::{self, CloseBehavior};
use adit_interop::{AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, free_port, socks_client};

use crate::setup::{ALLOW, start};
use crate::ssh_hop::Ours;

/// Returns OpenSSH's client of a listener, with its key; it prints why it fails.
fn client(ours: &Ours) -> Command {
    client_with(ours, &ours.path("id"))
}

fn client_with(ours: &Ours, key: &Path) -> Command {
    client_as("ann", ours.adit.addr(), key)
}

fn client_as(user: &str, at: SocketAddr, key: &Path) -> Command {
    let quiet = openssh::ssh_command(at.port(), key);
    let mut ssh = Command::new("ssh");
    // The first occurrence of an option counts.
    ssh.args(["-o", "LogLevel=INFO"]).args(quiet.get_args());
    ssh.args(["-l", user, "-o", "ExitOnForwardFailure=yes"]);
    ssh
}

fn run(mut ssh: Command, more: &[&str]) -> ToolOutput {
    ssh.args(more);
    openssh::run_command(ssh, TEST_TIMEOUT).unwrap()
}

/// Starts a client that stays connected, and waits until it listens on `port`.
fn forwarding(mut ssh: Command, option: &str, port: u16, spec: &str) -> ChildProcess {
    ssh.args(["-N", option, spec, "127.0.0.1"]);
    let process = ChildProcess::spawn(ssh).unwrap();
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", process.output());
        sleep(Duration::from_millis(20));
    }
    process
}

/// The name that a client shows is not a user here, so a certificate for that name proves nothing.
#[test]
fn certificates_need_a_user_or_principals() {
    let folder = TempFolder::new("ssh-authority").unwrap();
    let (authority, id) = (
        openssh::generate_key(folder.path(), "authority").unwrap(),
        openssh::generate_key(folder.path(), "id").unwrap(),
    );
    let mut sign = Command::new("ssh-keygen");
    sign.args(["-q", "-s"]).arg(&authority);
    sign.args(["-I", "test", "-n", "mallory"]);
    sign.arg(id.with_extension("pub"));
    assert!(sign.status().unwrap().success());
    let line = fs::read_to_string(authority.with_extension("pub")).unwrap();
    let keys = |options: &str| {
        let line = format!("cert-authority{options} {line}");
        folder.write_file("keys", line).unwrap()
    };
    let at = folder.path().display();
    let url = |user: &str| {
        format!("ssh://{user}127.0.0.1:0?host_key=@{at}/host&authorized_keys=@{at}/keys&{ALLOW}")
    };
    let origin = OriginServer::start().unwrap();
    let enters = |adit: &AditProcess, name: &str| {
        let mut ssh = client_as(name, adit.addr(), &id);
        ssh.args(["-W", &origin.addr().to_string(), "127.0.0.1"]);
        let done = openssh::run_command(ssh, TEST_TIMEOUT).unwrap();
        !done.output.contains("Permission denied")
    };
    keys("");
    let why = AditProcess::start(&["run", &url("")], 1)
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("keys:1") && why.contains("principals="),
        "{why}"
    );
    keys(r#",principals="ann,mallory""#);
    let open = start(&["run", &url("")]);
    assert!(enters(&open, "mallory"));
    // A line that is added later is checked too.
    keys(r#",principals="ann""#);
    assert!(!enters(&open, "mallory"));
    keys("");
    assert!(!enters(&open, "mallory"));
    let ann = start(&["run", &url("ann@")]);
    assert!(!enters(&ann, "mallory") && !enters(&ann, "ann"));
}

#[test]
fn local_and_dynamic_forwards() {
    let origin = OriginServer::start().unwrap();
    let ours = Ours::start("");
    let (port, target) = (free_port(), origin.addr());
    let _l = forwarding(
        client(&ours),
        "-L",
        port,
        &format!("127.0.0.1:{port}:{target}"),
    );
    let entry = SocketAddr::from(([127, 0, 0, 1], port));
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(entry)
    })
    .unwrap();
    let port = free_port();
    let _d = forwarding(client(&ours), "-D", port, &format!("127.0.0.1:{port}"));
    let entry = SocketAddr::from(([127, 0, 0, 1], port));
    let to = socks_client::Destination::Addr(target);
    traffic::check_streams(CloseBehavior::Independent, || {
        socks_client::connect_through(entry, None, &to)
    })
    .unwrap();
    // A target that does not exist is an error, and the connection continues.
    let dead = socks_client::Destination::Addr(SocketAddr::from(([127, 0, 0, 1], free_port())));
    assert!(socks_client::connect_through(entry, None, &dead).is_err());
    traffic::check_one_byte(socks_client::connect_through(entry, None, &to).unwrap()).unwrap();
}

#[test]
fn standard_input_and_jumps() {
    let web = HttpServer::start(&[("/", "text/plain", b"by -W")]).unwrap();
    let (ours, sshd) = (Ours::start(""), Sshd::start("").unwrap());
    let mut ssh = client(&ours);
    ssh.args(["-W", &format!("localhost:{}", web.port()), "127.0.0.1"]);
    // Without `-n`, which is for commands that read no input.
    let args: Vec<_> = ssh.get_args().filter(|arg| *arg != "-n").collect();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | \"$@\"",
        "sh",
        "ssh",
    ]);
    shell.args(args).stdin(Stdio::null());
    let got = external_tools::run_to_end(shell, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    assert!(got.ends_with("by -W"), "{got}");
    let config = format!(
        "Host *\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  \
         BatchMode yes\n  LogLevel ERROR\nHost jump\n  HostName 127.0.0.1\n  Port {}\n  User ann\n  IdentityFile {}\n\
         Host far\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  IdentityFile {}\n  ProxyJump jump\n",
        ours.adit.addr().port(),
        ours.path("id").display(),
        sshd.port(),
        openssh::current_user(),
        sshd.folder().join("id").display(),
    );
    let config = ours.folder.write_file("config", config).unwrap();
    let mut ssh = Command::new("ssh");
    ssh.arg("-F")
        .arg(config)
        .args(["-n", "far", "echo", "behind", "the", "jump"]);
    let got = openssh::run_command(ssh, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    assert_eq!(got.trim(), "behind the jump");
}

#[test]
fn nothing_but_streams() {
    let ours = Ours::start("");
    for more in [
        &["127.0.0.1", "id"][..],
        &["127.0.0.1"],
        &["-s", "127.0.0.1", "sftp"],
    ] {
        let ended = run(client(&ours), more);
        let told = format!("{ended:?}");
        assert!(
            told.contains("administratively prohibited: this server forwards connections"),
            "{told}"
        );
        assert!(ended.expect_success().is_err(), "{more:?}");
    }
    let back = format!("{}:127.0.0.1:1", free_port());
    let ended = run(client(&ours), &["-N", "-R", &back, "127.0.0.1"]);
    let told = format!("{ended:?}");
    assert!(told.contains("remote port forwarding failed"), "{told}");
    // A Unix socket in the file system.
    let port = free_port();
    let mut local = forwarding(
        client(&ours),
        "-L",
        port,
        &format!("127.0.0.1:{port}:/run/a"),
    );
    let mut stream = traffic::connect_directly(([127, 0, 0, 1], port).into()).unwrap();
    let mut rest = [0; 8];
    assert!(matches!(stream.read(&mut rest), Ok(0) | Err(_)));
    local
        .wait_lines("administratively prohibited", 1, TEST_TIMEOUT)
        .unwrap();
    // No key, and a key that is not accepted.
    let mut other = client_as("ann", ours.adit.addr(), Path::new("/nowhere"));
    other.args(["-N", "127.0.0.1"]);
    let told = format!("{:?}", openssh::run_command(other, TEST_TIMEOUT).unwrap());
    assert!(
        told.contains("Permission denied (publickey,password)"),
        "{told}"
    );
    let strange = openssh::generate_key(ours.folder.path(), "strange").unwrap();
    let told = format!(
        "{:?}",
        run(client_with(&ours, &strange), &["-N", "127.0.0.1"])
    );
    assert!(told.contains("Permission denied"), "{told}");
}

#[test]
fn what_a_key_may_is_in_its_line() {
    let web = HttpServer::start(&[("/", "text/plain", b"allowed")]).unwrap();
    let (ours, port) = (Ours::start(""), web.port());
    let line = fs::read_to_string(ours.path("id.pub")).unwrap();
    let open = |to: &str| {
        let mut ssh = client(&ours);
        ssh.args(["-W", to, "127.0.0.1"]);
        openssh::run_command(ssh, TEST_TIMEOUT).unwrap()
    };
    let with = |options: &str| fs::write(ours.path("id.pub"), format!("{options} {line}")).unwrap();
    // The file is read at each login.
    for (options, to, fine) in [
        (
            format!("permitopen=\"localhost:{port}\""),
            "localhost",
            true,
        ),
        (
            format!("permitopen=\"localhost:{port}\""),
            "127.0.0.1",
            false,
        ),
        ("restrict".to_owned(), "localhost", false),
        ("restrict,port-forwarding".to_owned(), "localhost", true),
        ("no-port-forwarding".to_owned(), "localhost", false),
    ] {
        with(&options);
        let ended = open(&format!("{to}:{port}"));
        let refused = format!("{ended:?}").contains("is not allowed to open this");
        assert_eq!(ended.expect_success().is_ok(), fine, "{options} {to}");
        assert_eq!(refused, !fine, "{options} {to}");
    }
    for options in [
        "from=\"192.0.2.0/24\"",
        "expiry-time=\"20200101\"",
        "nonsense",
    ] {
        with(options);
        let told = format!("{:?}", open(&format!("localhost:{port}")));
        assert!(told.contains("Permission denied"), "{options}: {told}");
    }
}

#[test]
fn what_a_listener_may_reach_is_in_its_url() {
    let origin = OriginServer::start().unwrap();
    let folder = Ours::start("");
    let at = folder.folder.path().display().to_string();
    let keys = format!("host_key=@{at}/host&authorized_keys=@{at}/id.pub");
    let closed = start(&["run", &format!("ssh://127.0.0.1:0?{keys}")]);
    let mut ssh = client_as("any", closed.addr(), &folder.path("id"));
    ssh.arg("-W")
        .arg(origin.addr().to_string())
        .arg("127.0.0.1");
    let told = format!("{:?}", openssh::run_command(ssh, TEST_TIMEOUT).unwrap());
    assert!(
        told.contains("rules do not allow this destination"),
        "{told}"
    );
    assert_eq!(origin.connection_count(), 0);
    closed.stop().unwrap();
}

#[test]
fn a_listener_ends_though_clients_are_there() {
    let origin = OriginServer::start().unwrap();
    let ours = Ours::start("");
    let (port, target) = (free_port(), origin.addr());
    let mut client = forwarding(
        client(&ours),
        "-L",
        port,
        &format!("127.0.0.1:{port}:{target}"),
    );
    let entry = SocketAddr::from(([127, 0, 0, 1], port));
    traffic::check_one_byte(traffic::connect_directly(entry).unwrap()).unwrap();
    // An idle client does not delay the shutdown.
    let since = Instant::now();
    ours.adit.stop().unwrap();
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
    let ended = client.wait(Duration::from_secs(10)).unwrap();
    assert!(!ended.success());
}

#[test]
fn the_host_key_is_made_once_and_kept() {
    let home = TempFolder::new("home").unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut command = Command::new(crate::setup::bin());
        command
            .args(["run", &format!("ssh://ann:secret@127.0.0.1:0?{ALLOW}")])
            .env("HOME", home.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("STATE_DIRECTORY");
        let mut adit = AditProcess::start_command(command, 1).unwrap();
        let lines = adit
            .process()
            .wait_lines("the host key is SHA256:", 1, TEST_TIMEOUT);
        let line = lines.unwrap().remove(0);
        seen.push(line.split("SHA256:").nth(1).unwrap().to_owned());
        adit.stop().unwrap();
    }
    assert_eq!(seen.first(), seen.last());
    let kept = home
        .path()
        .join(".local/state/adit/ssh_host_ed25519_key.pub");
    assert!(kept.is_file());
}
