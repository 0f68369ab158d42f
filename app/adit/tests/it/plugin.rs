//! SIP003: adit as the host of other plugins, and as the plugin of another host.

mod guest;
mod hostile;
mod url;

use std::env;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use adit_engine::plugin::{PluginError, PluginHost, PluginSide, PluginSpec, PluginTransports};
use adit_interop::origin::OriginServer;
use adit_interop::plugin::{LibevPluginHost, PluginScript, retry_until_success};
use adit_interop::shadowsocks::AES_256;
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};
use adit_interop::{free_port, loopback_addr};
use adit_wire::{Host as HostName, Target};
use tokio::runtime::Runtime;

use crate::setup::{bin, server, start};

/// Time after which no process of a plugin may remain (SEC-E6).
const NO_ORPHAN: Duration = Duration::from_secs(5);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

fn spec(program: impl Display, options: &str) -> PluginSpec {
    PluginSpec {
        program: program.to_string(),
        options: options.to_owned(),
        mode: PluginTransports::Tcp,
    }
}

fn target(addr: SocketAddr) -> Target {
    Target::new(HostName::Ip(addr.ip()), addr.port())
}

fn client(spec: PluginSpec, remote: SocketAddr) -> Result<PluginHost, PluginError> {
    let remote = target(remote);
    RUNTIME.block_on(PluginHost::start_plugin(
        spec,
        PluginSide::Client { remote },
    ))
}

fn in_front_of(
    local: SocketAddr,
    spec: PluginSpec,
) -> Result<(PluginHost, SocketAddr), PluginError> {
    let public = loopback_addr(free_port());
    let host = RUNTIME.block_on(PluginHost::start_plugin(
        spec,
        PluginSide::Server { public, local },
    ))?;
    assert_eq!(host.local_addr(), local);
    Ok((host, public))
}

fn stop(host: PluginHost) {
    RUNTIME.block_on(host.stop_plugin());
}

/// Returns a script; `$ADIT` in it is the binary under test.
fn script(text: &str) -> PluginScript {
    let adit = bin();
    PluginScript::new("plugin", &format!("ADIT='{}'\n{text}", adit.display())).unwrap()
}

/// A plugin on both sides: bytes that enter arrive at the origin.
fn through(server: PluginSpec, client_spec: PluginSpec, ends: CloseBehavior) {
    let origin = OriginServer::start().unwrap();
    let (back, public) = in_front_of(origin.addr(), server).unwrap();
    let front = client(client_spec, public).unwrap();
    traffic::check_streams(ends, || traffic::connect_directly(front.local_addr())).unwrap();
    stop(front);
    stop(back);
    assert!(
        traffic::connect_directly(public).is_err(),
        "a process still listens there"
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
            CloseBehavior::OnEitherEnd,
        );
    }
}

#[test]
fn v2ray_plugin_on_both_sides() {
    through(
        spec("ss-v2ray-plugin", "server"),
        spec("ss-v2ray-plugin", ""),
        CloseBehavior::OnEitherEnd,
    );
}

#[test]
fn adit_on_both_sides() {
    let adit = bin();
    let adit = adit.display();
    through(
        spec(&adit, "server"),
        spec(&adit, "obfs=plain"),
        CloseBehavior::Independent,
    );
}

#[test]
fn our_client_reaches_their_server_through_a_plugin() {
    let origin = OriginServer::start().unwrap();
    let theirs =
        LibevPluginHost::start_server(AES_256, Path::new("obfs-server"), "obfs=tls").unwrap();
    let front = client(
        spec("obfs-local", "obfs=tls;obfs-host=a.example"),
        theirs.addr(),
    )
    .unwrap();
    let entry = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let ours = start(&["run", &entry, &AES_256.url(front.local_addr())]);
    traffic::check_streams(CloseBehavior::OnEitherEnd, || {
        traffic::connect_directly(ours.addr())
    })
    .unwrap();
    ours.stop().unwrap();
    stop(front);
}

#[test]
fn their_client_reaches_our_server_through_a_plugin() {
    let origin = OriginServer::start().unwrap();
    let ours = server(AES_256);
    let (back, public) = in_front_of(ours.addr(), spec("ss-v2ray-plugin", "server")).unwrap();
    let theirs =
        LibevPluginHost::start_socks_client(AES_256, public, Path::new("ss-v2ray-plugin"), "")
            .unwrap();
    let to = Destination::Addr(origin.addr());
    let open = || socks_client::connect_through(theirs.addr(), None, &to);
    retry_until_success(|| traffic::check_one_byte(open()?)).unwrap();
    traffic::check_streams(CloseBehavior::OnEitherEnd, open).unwrap();
    ours.stop().unwrap();
    stop(back);
}

/// The environment contains SIP003's variables and those named here; nothing is split, expanded or
/// executed.
#[test]
fn metachar_args() {
    let name = "a b;touch pwned;$(touch pwned)`touch pwned`'\"|&><*";
    let script = PluginScript::new(
        name,
        "echo $# > $HERE/count; tr '\\0' '\\n' < /proc/$$/environ > $HERE/env; note $$\nexec sleep 600\n",
    )
    .unwrap();
    let options = "a=$(touch pwned);b=`touch pwned`;c='\"|&><*\\;\\=;d=${HOME};;touch pwned\t é";
    let mut spec = spec(script.path().display(), options);
    // It carries nothing; it only needs to live for a moment.
    spec.mode = PluginTransports::Udp;
    let remote = target("[2001:db8::1]:8388".parse().unwrap());
    let host = RUNTIME
        .block_on(PluginHost::start_plugin(
            spec,
            PluginSide::Client { remote },
        ))
        .unwrap();
    script.wait_for_pids(1).unwrap();
    let local = host.local_addr();
    stop(host);
    script.wait_until_gone(1, NO_ORPHAN).unwrap();

    assert_eq!(script.read_file("count"), "0\n");
    let text = script.read_file("env");
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
    let remote = loopback_addr(9);
    let told = |program: &str| client(spec(program, ""), remote).unwrap_err().to_string();
    assert!(told("no-such-plugin").contains("`no-such-plugin` was not found in"));
    assert!(told("./plugin").contains("a plain name or an absolute path is needed"));
    assert!(told("obfsproxy").contains("not supported"));
    assert!(told("/etc/passwd").contains("/etc/passwd is not executable"));
    let nul = client(spec("obfs-local", "a\0b"), remote).unwrap_err();
    assert!(matches!(nul, PluginError::Options(_)), "{nul}");

    let taken = OriginServer::start().unwrap();
    let side = |public| PluginSide::Server {
        public,
        local: remote,
    };
    let start = |public| {
        RUNTIME.block_on(PluginHost::start_plugin(
            spec("obfs-server", "obfs=http"),
            side(public),
        ))
    };
    let why = start(taken.addr()).unwrap_err().to_string();
    assert!(why.ends_with("is in use by another program"), "{why}");
    let why = start(loopback_addr(0)).unwrap_err();
    assert!(matches!(why, PluginError::NoPort(_)), "{why}");
}

#[test]
fn datagrams_go_through_a_plugin_that_takes_them() {
    let script = script(
        "note $$; exec \"$ADIT\" run \"tcp+udp://$SS_LOCAL_HOST:$SS_LOCAL_PORT/$SS_REMOTE_HOST:$SS_REMOTE_PORT\"\n",
    );
    for mode in [PluginTransports::Udp, PluginTransports::TcpAndUdp] {
        let origin = OriginServer::start().unwrap();
        let spec = PluginSpec {
            mode,
            ..spec(script.path().display(), "")
        };
        let host = client(spec, origin.addr()).unwrap();
        retry_until_success(|| {
            traffic::check_one_byte(traffic::connect_directly(host.local_addr())?)
        })
        .unwrap();
        traffic::check_datagrams(&ForwarderEntry::open(host.local_addr()).unwrap()).unwrap();
        stop(host);
    }
    script.wait_until_gone(2, NO_ORPHAN).unwrap();
}
