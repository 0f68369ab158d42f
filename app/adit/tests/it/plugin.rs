//! SIP003: our host with plugins of others, good and hostile ones; our binary as the plugin of
//! another host.

use std::env;
use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use adit_engine::plugin::{Host, Mode, PluginError, Role, Spec};
use adit_interop::origin::Origin;
use adit_interop::plugin::{Libev, Script, patiently, runs};
use adit_interop::shadowsocks::{AES_256, Peer};
use adit_interop::socks::{self, Dest};
use adit_interop::tool::{self, Ended};
use adit_interop::traffic::{self, Ends, Entry};
use adit_interop::web::Web;
use adit_interop::{PATIENCE, Process, free_port, loopback};
use adit_wire::{Host as HostName, Target};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use crate::setup::{bin, server, start};

/// Nothing of a plugin may be left after this (SEC-E6).
const NO_ORPHAN: Duration = Duration::from_secs(5);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

fn spec(program: impl Display, options: &str) -> Spec {
    Spec {
        program: program.to_string(),
        options: options.to_owned(),
        mode: Mode::Tcp,
    }
}

fn target(addr: SocketAddr) -> Target {
    Target::new(HostName::Ip(addr.ip()), addr.port())
}

fn client(spec: Spec, remote: SocketAddr) -> Result<Host, PluginError> {
    let remote = target(remote);
    RUNTIME.block_on(Host::start(spec, Role::Client { remote }))
}

fn in_front_of(local: SocketAddr, spec: Spec) -> Result<(Host, SocketAddr), PluginError> {
    let public = loopback(free_port());
    let host = RUNTIME.block_on(Host::start(spec, Role::Server { public, local }))?;
    assert_eq!(host.local(), local);
    Ok((host, public))
}

fn stop(host: Host) {
    RUNTIME.block_on(host.stop());
}

/// A script; `$ADIT` in it is our binary.
fn script(text: &str) -> Script {
    let adit = bin();
    Script::new("plugin", &format!("ADIT='{}'\n{text}", adit.display())).unwrap()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// A plugin on both sides of nothing: what goes in comes out at the origin.
fn through(server: Spec, client_spec: Spec, ends: Ends) {
    let origin = Origin::start().unwrap();
    let (back, public) = in_front_of(origin.addr(), server).unwrap();
    let front = client(client_spec, public).unwrap();
    traffic::streams(ends, || traffic::dial(front.local())).unwrap();
    stop(front);
    stop(back);
    assert!(
        traffic::dial(public).is_err(),
        "somebody listens there still"
    );
}

#[test]
fn simple_obfs_on_both_sides() {
    for kind in ["http", "tls"] {
        let here = format!("obfs={kind};obfs-host=a.example");
        let there = format!("obfs={kind}");
        through(
            spec("obfs-server", &there),
            spec("obfs-local", &here),
            Ends::Both,
        );
    }
}

#[test]
fn v2ray_plugin_on_both_sides() {
    through(
        spec("ss-v2ray-plugin", "server"),
        spec("ss-v2ray-plugin", ""),
        Ends::Both,
    );
}

#[test]
fn adit_on_both_sides() {
    let adit = bin();
    let adit = adit.display();
    through(spec(&adit, "server"), spec(&adit, "obfs=plain"), Ends::Each);
}

#[test]
fn our_client_reaches_their_server_through_a_plugin() {
    let origin = Origin::start().unwrap();
    let theirs = Libev::server(AES_256, Path::new("obfs-server"), "obfs=tls").unwrap();
    let front = client(
        spec("obfs-local", "obfs=tls;obfs-host=a.example"),
        theirs.addr(),
    )
    .unwrap();
    let entry = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let ours = start(&["run", &entry, &AES_256.url(front.local())]);
    traffic::streams(Ends::Both, || traffic::dial(ours.addr())).unwrap();
    ours.stop().unwrap();
    stop(front);
}

#[test]
fn their_client_reaches_our_server_through_a_plugin() {
    let origin = Origin::start().unwrap();
    let ours = server(AES_256);
    let (back, public) = in_front_of(ours.addr(), spec("ss-v2ray-plugin", "server")).unwrap();
    let theirs = Libev::socks(AES_256, public, Path::new("ss-v2ray-plugin"), "").unwrap();
    let to = Dest::Addr(origin.addr());
    let open = || socks::connect(theirs.addr(), None, &to);
    patiently(|| traffic::one_byte(open()?)).unwrap();
    traffic::streams(Ends::Both, open).unwrap();
    ours.stop().unwrap();
    stop(back);
}

fn curl(proxy: SocketAddr, url: &str) -> anyhow::Result<String> {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--max-time", "10", "--noproxy", ""]);
    command.args(["-x", &format!("socks5h://{proxy}"), url]);
    tool::run(command, PATIENCE)?.success()
}

/// Streams and a page through a SOCKS5 port of shadowsocks-libev.
fn visit(proxy: SocketAddr) {
    let origin = Origin::start().unwrap();
    let to = Dest::Addr(origin.addr());
    let open = || socks::connect(proxy, None, &to);
    patiently(|| traffic::one_byte(open()?)).unwrap();
    traffic::streams(Ends::Both, open).unwrap();
    let web = Web::start(&[("/page", "text/plain", b"hello through the plugin")]).unwrap();
    let page = curl(proxy, &format!("http://localhost:{}/page", web.port()));
    assert_eq!(page.unwrap(), "hello through the plugin");
}

#[test]
fn adit_as_a_plugin_of_their_client() {
    let server = Peer::Libev.server(AES_256).unwrap();
    let client = Libev::socks(AES_256, server.addr(), &bin(), "").unwrap();
    visit(client.addr());
}

#[test]
fn adit_as_a_plugin_of_their_server() {
    let server = Libev::server(AES_256, &bin(), "server").unwrap();
    let client = Peer::Libev.socks(AES_256, server.addr()).unwrap();
    visit(client.addr());
}

#[test]
fn adit_as_a_plugin_of_both() {
    let mut server = Libev::server(AES_256, &bin(), "server").unwrap();
    let mut client = Libev::socks(AES_256, server.addr(), &bin(), "obfs=plain").unwrap();
    visit(client.addr());
    for libev in [&mut client, &mut server] {
        let told = libev.process().log();
        libev.process().terminate().unwrap();
        assert!(
            told.contains("plugin: ") && !told.contains("error"),
            "{told}"
        );
    }
    assert!(
        traffic::dial(server.addr()).is_err(),
        "adit listens there still"
    );
}

/// Our binary as a plugin, without a host.
fn as_plugin(options: Option<&str>, remote: &str, local: SocketAddr) -> Command {
    let mut command = Command::new(bin());
    let (host, port) = remote.rsplit_once(':').unwrap();
    command
        .env("SS_REMOTE_HOST", host)
        .env("SS_REMOTE_PORT", port)
        .env("SS_LOCAL_HOST", local.ip().to_string())
        .env("SS_LOCAL_PORT", local.port().to_string());
    if let Some(options) = options {
        command.env("SS_PLUGIN_OPTIONS", options);
    }
    command
}

#[test]
fn as_a_plugin_adit_ends_well_when_it_is_told() {
    let origin = Origin::start().unwrap();
    let port = free_port();
    // As shadowsocks-libev joins them.
    let remote = format!("::0|0.0.0.0:{port}");
    let command = as_plugin(Some("server"), &remote, origin.addr());
    let mut plugin = Process::spawn(command).unwrap();
    plugin.wait_lines("plugin: server on", 1, PATIENCE).unwrap();
    let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
    for public in [loopback(port), v6] {
        traffic::streams(Ends::Each, || traffic::dial(public)).unwrap();
    }
    // Open connections do not hold it up.
    let mut idle = traffic::dial(loopback(port)).unwrap();
    idle.write_all(b"ECHO\nx").unwrap();
    idle.read_exact(&mut [0]).unwrap();
    let asked = Instant::now();
    assert_eq!(
        plugin.terminate().unwrap().code(),
        Some(0),
        "{}",
        plugin.log()
    );
    assert!(asked.elapsed() < Duration::from_secs(2));
}

#[test]
fn as_a_plugin_adit_says_what_it_cannot_do() {
    let local = loopback(free_port());
    let run = |options, remote| -> Ended {
        tool::run(as_plugin(Some(options), remote, local), PATIENCE).unwrap()
    };
    let public = "a.example:443";
    for (options, remote, code, told) in [
        ("server;speed=fast", public, 3, "there is no option `speed`"),
        (
            "obfs=none",
            public,
            3,
            "there is no obfs `none`, only `plain`",
        ),
        ("server\\", public, 3, "in the middle of an escape"),
        ("", "0.0.0.0:443", 3, "it needs the option `server`"),
        (
            "server",
            "192.0.2.1:443",
            4,
            "cannot listen on 192.0.2.1:443",
        ),
    ] {
        let Ended { code: got, output } = run(options, remote);
        assert_eq!(got, Some(code), "{output}");
        let errors: Vec<&str> = output
            .lines()
            .filter(|l| l.starts_with("error: "))
            .collect();
        assert!(errors.len() == 1 && errors[0].contains(told), "{output}");
    }
    // A command is a command, whatever the environment says; without one of the four variables
    // there is no host.
    let mut help = as_plugin(Some("speed"), public, local);
    help.arg("--version");
    let told = tool::run(help, PATIENCE).unwrap().success().unwrap();
    assert!(told.starts_with("adit "), "{told}");
    let mut part = as_plugin(None, public, local);
    part.env_remove("SS_LOCAL_PORT");
    assert_eq!(tool::run(part, PATIENCE).unwrap().code, Some(2));
}

#[test]
fn a_target_that_is_gone_is_told_by_a_reset() {
    let local = loopback(free_port());
    let nobody = format!("127.0.0.1:{}", free_port());
    let mut plugin = Process::spawn(as_plugin(None, &nobody, local)).unwrap();
    plugin.wait_lines("plugin: client on", 1, PATIENCE).unwrap();
    // The reset may come before the socket knows that it is connected.
    let answer = TcpStream::connect(local).and_then(|mut stream| stream.read(&mut [0]));
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// The environment holds SIP003's variables and what is named here; nothing is split, expanded or
/// executed.
#[test]
fn metachar_args() {
    let name = "a b;touch pwned;$(touch pwned)`touch pwned`'\"|&><*";
    let script = Script::new(
        name,
        "note $$; echo $# > $HERE/count; tr '\\0' '\\n' < /proc/$$/environ > $HERE/env\nexec sleep 600\n",
    )
    .unwrap();
    let options = "a=$(touch pwned);b=`touch pwned`;c='\"|&><*\\;\\=;d=${HOME};;touch pwned\t é";
    let mut spec = spec(script.path().display(), options);
    // It carries nothing; having lived for a moment is enough.
    spec.mode = Mode::Udp;
    let remote = target("[2001:db8::1]:8388".parse().unwrap());
    let host = RUNTIME
        .block_on(Host::start(spec, Role::Client { remote }))
        .unwrap();
    script.noted(1).unwrap();
    let local = host.local();
    stop(host);
    script.gone(1, NO_ORPHAN).unwrap();

    assert_eq!(script.wrote("count"), "0\n");
    let text = script.wrote("env");
    let mut vars: Vec<(&str, &str)> = text.lines().filter_map(|l| l.split_once('=')).collect();
    vars.sort_unstable();
    let value = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    assert_eq!(value("SS_PLUGIN_OPTIONS"), Some(options));
    assert_eq!(value("SS_REMOTE_HOST"), Some("2001:db8::1"));
    assert_eq!(value("SS_REMOTE_PORT"), Some("8388"));
    assert_eq!(value("SS_LOCAL_HOST"), Some("127.0.0.1"));
    assert_eq!(value("SS_LOCAL_PORT"), Some(&*local.port().to_string()));
    assert_eq!(value("PATH"), env::var("PATH").ok().as_deref());
    let passed_on = |name: &str| name == "PATH" || name == "LANG" || name.starts_with("LC_");
    for (name, _) in &vars {
        assert!(
            name.starts_with("SS_") || passed_on(name),
            "{name} is passed on"
        );
    }
    assert!(
        env::var("CARGO_MANIFEST_DIR").is_ok(),
        "there was something to clear"
    );
    for folder in [
        env::current_dir().unwrap(),
        script.path().parent().unwrap().into(),
    ] {
        assert!(!folder.join("pwned").exists());
    }
}

#[test]
fn a_plugin_that_cannot_run_is_told_precisely() {
    let remote = loopback(9);
    let told = |program: &str| client(spec(program, ""), remote).unwrap_err().to_string();
    assert!(told("no-such-plugin").contains("`no-such-plugin` was not found in"));
    assert!(told("./plugin").contains("a plain name or an absolute path is needed"));
    assert!(told("obfsproxy").contains("not supported"));
    assert!(told("/etc/passwd").contains("/etc/passwd is not executable"));
    let nul = client(spec("obfs-local", "a\0b"), remote).unwrap_err();
    assert!(matches!(nul, PluginError::Options(_)), "{nul}");

    let taken = Origin::start().unwrap();
    let role = |public| Role::Server {
        public,
        local: remote,
    };
    let start =
        |public| RUNTIME.block_on(Host::start(spec("obfs-server", "obfs=http"), role(public)));
    let why = start(taken.addr()).unwrap_err().to_string();
    assert!(why.ends_with("is in use by another program"), "{why}");
    let why = start(loopback(0)).unwrap_err();
    assert!(matches!(why, PluginError::NoPort(_)), "{why}");
}

#[test]
fn a_plugin_that_exits_at_once_is_told_with_its_last_words() {
    let script = script("note $$; echo out; echo 'no such cipher' >&2; exit 3\n");
    let began = Instant::now();
    let why = client(spec(script.path().display(), "key=secret"), loopback(9)).unwrap_err();
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "it is not waited for"
    );
    let why = why.to_string();
    assert!(why.ends_with("exited with code 3: no such cipher"), "{why}");
    assert!(!why.contains("secret"));
    // A real one.
    let why = client(spec("obfs-local", "obfs=nonsense"), loopback(9))
        .unwrap_err()
        .to_string();
    assert!(why.contains("`obfs-local` exited with code"), "{why}");
}

#[test]
fn a_plugin_that_hangs_is_given_up_after_10_s() {
    let script = script("note $$; trap '' TERM; sleep 600 & note $!; wait; wait; sleep 600\n");
    let began = Instant::now();
    let why = client(spec(script.path().display(), ""), loopback(9)).unwrap_err();
    let took = began.elapsed();
    assert!(why.to_string().ends_with("within 10 s"), "{why}");
    assert!(
        took > Duration::from_secs(9) && took < Duration::from_secs(15),
        "{took:?}"
    );
    script.gone(2, Duration::from_secs(1)).unwrap();
}

/// It carries bytes while it does what it should not, and nothing of it is left 5 s after the end.
fn hostile(text: &str, processes: usize, end: impl FnOnce(Host)) {
    let script = script(text);
    let origin = Origin::start().unwrap();
    let host = client(spec(script.path().display(), ""), origin.addr()).unwrap();
    traffic::streams(Ends::Each, || traffic::dial(host.local())).unwrap();
    let pids = script.noted(processes).unwrap();
    assert!(pids.iter().all(|pid| runs(*pid)));
    end(host);
    script.gone(processes, NO_ORPHAN).unwrap();
}

#[test]
fn a_plugin_that_floods_its_outputs() {
    let flood = "note $$; yes flood >&2 & note $!\nyes flood & note $!\nexec \"$ADIT\"\n";
    hostile(flood, 3, stop);
}

#[test]
fn a_plugin_that_forks_twice() {
    let fork = "note $$; sh -c '(trap \"\" TERM; sleep 600) & echo $! >> '\"$HERE\"'/pids'\nexec \"$ADIT\"\n";
    hostile(fork, 2, stop);
}

#[test]
fn a_plugin_that_ignores_term() {
    let deaf = "note $$; trap '' TERM; \"$ADIT\" & note $!\nwhile :; do sleep 1; done\n";
    let began = Instant::now();
    hostile(deaf, 2, |host| {
        let asked = Instant::now();
        stop(host);
        let took = asked.elapsed();
        assert!(
            took > Duration::from_secs(1) && took < Duration::from_secs(4),
            "{took:?}"
        );
    });
    assert!(began.elapsed() < PATIENCE);
    // Dropped, not stopped.
    hostile(deaf, 2, drop);
}

#[test]
fn a_plugin_that_goes_into_the_background_is_no_plugin() {
    let script = script("\"$ADIT\" & note $!\nexit 0\n");
    let why = client(spec(script.path().display(), ""), loopback(9)).unwrap_err();
    assert!(why.to_string().contains("exited with code 0"), "{why}");
    script.gone(1, NO_ORPHAN).unwrap();
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_the_plugin() {
    let script = script("note $$; trap '' TERM; \"$ADIT\" & note $!\nwhile :; do sleep 1; done\n");
    let runtime = Runtime::new().unwrap();
    let remote = target(loopback(9));
    let start = Host::start(spec(script.path().display(), ""), Role::Client { remote });
    let host = runtime.block_on(start).unwrap();
    runtime.shutdown_background();
    script.gone(2, NO_ORPHAN).unwrap();
    drop(host);
}

#[test]
fn a_plugin_that_dies_is_started_again() {
    let script = script("note $$; exec \"$ADIT\"\n");
    let origin = Origin::start().unwrap();
    let host = client(spec(script.path().display(), ""), origin.addr()).unwrap();
    for life in 1..=2 {
        traffic::one_byte(traffic::dial(host.local()).unwrap()).unwrap();
        kill(*script.noted(life).unwrap().last().unwrap());
        // The back-off is below 1 s, then below 2 s.
        script.noted(life + 1).unwrap();
        patiently(|| traffic::one_byte(traffic::dial(host.local())?)).unwrap();
    }
    stop(host);
    script.gone(3, NO_ORPHAN).unwrap();
}

#[test]
fn datagrams_go_through_a_plugin_that_takes_them() {
    let script = script(
        "note $$; exec \"$ADIT\" run \"tcp+udp://$SS_LOCAL_HOST:$SS_LOCAL_PORT/$SS_REMOTE_HOST:$SS_REMOTE_PORT\"\n",
    );
    for mode in [Mode::Udp, Mode::TcpAndUdp] {
        let origin = Origin::start().unwrap();
        let spec = Spec {
            mode,
            ..spec(script.path().display(), "")
        };
        let host = client(spec, origin.addr()).unwrap();
        patiently(|| traffic::one_byte(traffic::dial(host.local())?)).unwrap();
        traffic::datagrams(&Entry::open(host.local()).unwrap()).unwrap();
        stop(host);
    }
    script.gone(2, NO_ORPHAN).unwrap();
}

const HOSTED: &str = "ADIT_TEST_HOSTED_PLUGIN";

/// Not a test: the process that [`a_plugin_dies_with_its_host`] kills.
#[test]
#[ignore = "only for another test"]
fn hosting() {
    let Ok(program) = env::var(HOSTED) else {
        return;
    };
    // The thread that starts the plugin ends long before the process does.
    let start = || client(spec(program, ""), loopback(9)).unwrap();
    let _host = std::thread::spawn(start).join().unwrap();
    println!("hosting it");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_plugin_dies_with_its_host() {
    let script = script("note $$; trap '' TERM HUP; exec \"$ADIT\"\n");
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "plugin::hosting", "--ignored", "--nocapture"])
        .env(HOSTED, script.path());
    let mut process = Process::spawn(command).unwrap();
    process.wait_lines("hosting it", 1, PATIENCE).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let pids = script.noted(1).unwrap();
    assert!(runs(pids[0]), "it outlives the thread that asked for it");
    process.signal(Signal::KILL).unwrap();
    process.wait(PATIENCE).unwrap();
    script.gone(1, NO_ORPHAN).unwrap();
}
