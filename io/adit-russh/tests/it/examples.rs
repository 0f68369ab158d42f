//! russh's own examples from the registry, built on adit-russh and run with OpenSSH at the other end.
//!
//! In the package that builds them (`dev/adit-interop/peers/russhexamples`) adit-russh is named
//! `russh`; their source is unchanged. `sftp_client` is only built: it needs port 22 and a root
//! password.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, fs};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::openssh::{self, Sshd, current_user, generate_key, ssh_command};
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder, Transport, free_port, wait_port};

/// The version of the examples.
const VERSION: &str = "0.65.1";
const EXAMPLES: [&str; 7] = [
    "client_exec_interactive",
    "client_exec_simple",
    "client_open_direct_tcpip",
    "echoserver",
    "echoserver_certificates",
    "sftp_client",
    "sftp_server",
];
/// Maximum time of the first build on a busy machine.
const BUILD: Duration = Duration::from_secs(1200);

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn cargo(words: &[&str], manifest: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(words).arg("--manifest-path").arg(manifest);
    command.args(["--offline", "--locked"]);
    command
}

/// Returns the folder of russh's source, which `cargo xtask install` fetches.
fn russh() -> PathBuf {
    let manifest = Path::new(ROOT).join("dev/adit-interop/peers/russhpeer/Cargo.toml");
    let output = cargo(&["metadata", "--format-version=1"], &manifest).output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}\nhint: `cargo xtask install` fetches the source of russh",
        String::from_utf8_lossy(&output.stderr)
    );
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = all["packages"].as_array().unwrap().iter();
    let russh = packages.find(|package| package["name"] == "russh").unwrap();
    assert_eq!(russh["version"], VERSION, "another version is pinned");
    let manifest = Path::new(russh["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

/// Writes a file unless it is unchanged: unchanged files are not rebuilt.
fn put(path: &Path, text: &str) {
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Returns the folder of the built examples.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let folder = target.join("russhexamples");
        let package = Path::new(ROOT).join("dev/adit-interop/peers/russhexamples");
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        for name in ["Cargo.lock", "src/lib.rs"] {
            put(&folder.join(name), &read(package.join(name)));
        }
        let manifest = read(package.join("Cargo.toml"));
        let here = fs::canonicalize(env!("CARGO_MANIFEST_DIR")).unwrap();
        let moved = manifest.replace("../../../../io/adit-russh", here.to_str().unwrap());
        assert_ne!(moved, manifest);
        put(&folder.join("Cargo.toml"), &moved);
        let examples = russh().join("examples");
        for name in EXAMPLES {
            let text = read(examples.join(format!("{name}.rs")));
            put(&folder.join(format!("examples/{name}.rs")), &text);
        }
        let mut command = cargo(&["build", "--examples"], &folder.join("Cargo.toml"));
        command.env("CARGO_TARGET_DIR", target);
        let ended = external_tools::run_to_end(command, BUILD).unwrap();
        ended
            .expect_success()
            .expect("hint: `cargo xtask install` fetches what the examples need");
        target.join("debug/examples")
    })
}

fn example(name: &str) -> Command {
    Command::new(built().join(name))
}

/// Adds the arguments of a client that logs in to an OpenSSH server.
fn at(command: &mut Command, sshd: &Sshd) {
    with_key(command, sshd, sshd.folder());
}

/// The same with the key of another folder.
fn with_key(command: &mut Command, sshd: &Sshd, folder: &Path) {
    command.args(["-k", folder.join("id").to_str().unwrap()]);
    command.args(["-p", &sshd.port().to_string(), "-u", &current_user()]);
}

fn run(command: Command) -> ToolOutput {
    external_tools::run_to_end(command, 3 * TEST_TIMEOUT).unwrap()
}

#[test]
fn client_exec_simple() {
    let sshd = Sshd::start("").unwrap();
    let mut command = example("client_exec_simple");
    at(&mut command, &sshd);
    command.args(["127.0.0.1", "sh", "-c", "seq 3; exit 5"]);
    let output = run(command).expect_success().unwrap();
    assert!(output.contains("1\n2\n3\nExitcode: 5"), "{output}");
    // Another user's key is refused.
    let other = Sshd::start("").unwrap();
    let mut command = example("client_exec_simple");
    with_key(&mut command, &other, sshd.folder());
    command.args(["127.0.0.1", "true"]);
    let ended = run(command);
    assert_eq!(ended.code, Some(1), "{}", ended.output);
}

#[test]
fn client_exec_simple_with_a_certificate() {
    let folder = TempFolder::new("certified").unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["ca", "id"] {
        generate_key(folder.path(), name).unwrap();
    }
    certify(&folder, &["-n", &current_user(), &file("id.pub")]);
    let authority = file("ca.pub");
    let more = format!("TrustedUserCAKeys {authority}\nAuthorizedKeysFile none");
    let sshd = Sshd::start(&more).unwrap();
    for (certificate, code) in [(true, 0), (false, 1)] {
        let mut command = example("client_exec_simple");
        with_key(&mut command, &sshd, folder.path());
        if certificate {
            command.args(["-o", &file("id-cert.pub")]);
        }
        command.args(["127.0.0.1", "echo", "certified"]);
        let ended = run(command);
        assert_eq!(ended.code, Some(code), "{}", ended.output);
        assert_eq!(ended.output.contains("certified\nExitcode: 0"), certificate);
    }
}

/// Signs a key with the folder's authority.
fn certify(folder: &TempFolder, words: &[&str]) {
    let mut command = Command::new("ssh-keygen");
    command.arg("-q").arg("-s").arg(folder.path().join("ca"));
    command.args(["-I", "test"]).args(words);
    run(command).expect_success().unwrap();
}

#[test]
fn client_exec_interactive() {
    let sshd = Sshd::start("").unwrap();
    let mut command = example("client_exec_interactive");
    at(&mut command, &sshd);
    command.args(["127.0.0.1", "sh", "-c"]);
    let words = command
        .get_args()
        .map(|word| word.to_str().unwrap().to_owned());
    let words: Vec<String> = words.collect();
    let program = command.get_program().to_str().unwrap().to_owned();
    // The example ends with the exit status, which OpenSSH sends as soon as the program has exited,
    // even if output waits in its terminal.
    let line = format!(
        "{program} {} 'tty; stty size; sleep 1; exit 6'",
        words.join(" ")
    );
    // It needs its own terminal.
    let mut script = Command::new("script");
    script.args([
        "-qec",
        &format!("stty rows 33 cols 99; {line}"),
        "/dev/null",
    ]);
    let output = run(script).expect_success().unwrap();
    assert!(output.contains("/dev/pts/"), "{output}");
    assert!(output.contains("33 99"), "{output}");
    assert!(output.contains("Exitcode: 6"), "{output}");
}

#[test]
fn client_open_direct_tcpip() {
    use std::io::{Read, Write, copy};
    let sshd = Sshd::start("").unwrap();
    let echo = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = echo.local_addr().unwrap();
    let echo = std::thread::spawn(move || {
        let (socket, _) = echo.accept().unwrap();
        copy(&mut &socket, &mut &socket).unwrap()
    });
    let port = free_port();
    let mut command = example("client_open_direct_tcpip");
    at(&mut command, &sshd);
    command.args(["-l", &format!("127.0.0.1:{port}")]);
    command.args(["-f", &target.to_string(), "127.0.0.1"]);
    let mut process = ChildProcess::spawn(command).unwrap();
    process.wait_lines("Connected", 1, TEST_TIMEOUT).unwrap();
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let sent = vec![42; 200_000];
    let mut got = vec![0; sent.len()];
    socket.write_all(&sent).unwrap();
    socket.read_exact(&mut got).unwrap();
    assert!(got == sent);
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(
        process.wait(TEST_TIMEOUT).unwrap().success(),
        "{}",
        process.output()
    );
    assert_eq!(echo.join().unwrap(), 200_000);
}

#[test]
fn sftp_server() {
    let folder = TempFolder::new("sftp_server").unwrap();
    let key = generate_key(folder.path(), "id").unwrap();
    let port = free_port();
    let mut command = example("sftp_server");
    command.env("PORT", port.to_string());
    let server = ChildProcess::spawn(command).unwrap();
    wait_port(Transport::Tcp, port, TEST_TIMEOUT).unwrap();
    let batch = folder.write_file("batch", "ls -1\npwd\n").unwrap();
    let mut command = Command::new("sftp");
    let options = ssh_command(port, &key);
    // The same options except the port, for which sftp has another letter.
    let options = options.get_args().map(|word| word.to_str().unwrap());
    command.args(options.map(|word| if word == "-p" { "-P" } else { word }));
    command.arg("-b").arg(batch).arg("me@127.0.0.1");
    let output = openssh::run_command(command, TEST_TIMEOUT)
        .unwrap()
        .expect_success();
    let output = output.unwrap_or_else(|why| panic!("{why}\n{}", server.output()));
    for name in ["foo", "bar"] {
        assert!(output.lines().any(|line| line == name), "{output}");
    }
}

/// Returns a shell line that types into a session of OpenSSH's client and shows the output: Ctrl+C,
/// which ends the session, once there is an answer.
fn typed(folder: &TempFolder, port: u16) -> String {
    let mut command = ssh_command(port, &folder.path().join("id"));
    command.args(["-T", "me@127.0.0.1"]);
    let words: Vec<String> = command
        .get_args()
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let shown = folder.path().join("shown");
    let (shown, words) = (shown.display(), words.join(" "));
    let answer = wait_for(&format!("grep -q Got {shown}"));
    format!("{{ echo one; {answer}; printf '\\003'; }} | ssh {words} >{shown} 2>&1; cat {shown}")
}

/// Returns a shell line that waits until another succeeds.
fn wait_for(line: &str) -> String {
    format!("for i in $(seq 200); do {line} && break; sleep 0.1; done")
}

/// The example always listens on port 2222, which is free in a separate network namespace.
#[test]
fn echoserver() {
    let folder = TempFolder::new("echoserver").unwrap();
    generate_key(folder.path(), "id").unwrap();
    let server = built().join("echoserver");
    let log = folder.path().join("log");
    let (server, log) = (server.display(), log.display());
    let client = typed(&folder, 2222);
    let listens = wait_for("ss -ltn | grep -q :2222");
    let ended = wait_for(&format!("grep -q 'Session error' {log}"));
    let script = format!(
        "ip link set lo up || exit 9\n{server} >{log} 2>&1 & pid=$!\n\
         {listens}\n{client}\n{ended}\nkill $pid\ncat {log}\n"
    );
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--", "sh", "-c", &script]);
    let ended = run(command);
    assert!(ended.output.contains("Got data: one"), "{}", ended.output);
    assert!(
        ended.output.contains("Session error: Disconnect"),
        "{}",
        ended.output
    );
}

/// The server and the user both authenticate with certificates.
#[test]
fn echoserver_certificates() {
    let folder = TempFolder::new("echoserver_certificates").unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["ca", "host", "id"] {
        generate_key(folder.path(), name).unwrap();
    }
    certify(&folder, &["-h", "-n", "127.0.0.1", &file("host.pub")]);
    certify(&folder, &["-n", "me", &file("id.pub")]);
    let authority = fs::read_to_string(file("ca.pub")).unwrap();
    let known = folder.write_file("known", format!("@cert-authority * {authority}"));
    let known = format!("UserKnownHostsFile={}", known.unwrap().display());
    let port = free_port();
    let mut command = example("echoserver_certificates");
    command.args(["--key", &file("host"), "--cert", &file("host-cert.pub")]);
    command.args(["--port", &port.to_string()]);
    let mut server = ChildProcess::spawn(command).unwrap();
    wait_port(Transport::Tcp, port, TEST_TIMEOUT).unwrap();
    // The first value of an option applies.
    let script = typed(&folder, port).replacen(
        "ssh '",
        &format!("ssh -o StrictHostKeyChecking=yes -o {known} '"),
        1,
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    let ended = run(command);
    assert!(ended.output.contains("Got data: one"), "{}", ended.output);
    server
        .wait_lines("Session error: Disconnect", 1, TEST_TIMEOUT)
        .unwrap();
}
