//! adit with plugins that fail, stall, flood, hide and die: no process of them remains (SEC-E6).

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_engine::plugin::{PluginHost, PluginSide};
use adit_interop::origin::OriginServer;
use adit_interop::plugin::{is_running, retry_until_success};
use adit_interop::traffic::{self, CloseBehavior};
use adit_interop::{ChildProcess, TEST_TIMEOUT, loopback_addr};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::{NO_ORPHAN, client, script, spec, stop, target};

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_plugin_that_exits_at_once_is_told_with_its_last_words() {
    let script = script("note $$; echo out; echo 'no such cipher' >&2; exit 3\n");
    let began = Instant::now();
    let why = client(
        spec(script.path().display(), "key=secret"),
        loopback_addr(9),
    )
    .unwrap_err();
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "it is not waited for"
    );
    let why = why.to_string();
    assert!(why.ends_with("exited with code 3: no such cipher"), "{why}");
    assert!(!why.contains("secret"));
    // A real plugin.
    let why = client(spec("obfs-local", "obfs=nonsense"), loopback_addr(9))
        .unwrap_err()
        .to_string();
    assert!(why.contains("`obfs-local` exited with code"), "{why}");
}

#[test]
fn a_plugin_that_hangs_is_given_up_after_10_s() {
    let script = script("note $$; trap '' TERM; sleep 600 & note $!; wait; wait; sleep 600\n");
    let began = Instant::now();
    let why = client(spec(script.path().display(), ""), loopback_addr(9)).unwrap_err();
    let took = began.elapsed();
    assert!(why.to_string().ends_with("within 10 s"), "{why}");
    assert!(
        took > Duration::from_secs(9) && took < Duration::from_secs(15),
        "{took:?}"
    );
    script.wait_until_gone(2, Duration::from_secs(1)).unwrap();
}

/// It carries bytes while it misbehaves, and nothing of it remains 5 s after the end.
fn hostile(text: &str, processes: usize, end: impl FnOnce(PluginHost)) {
    let script = script(text);
    let origin = OriginServer::start().unwrap();
    let host = client(spec(script.path().display(), ""), origin.addr()).unwrap();
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(host.local_addr())
    })
    .unwrap();
    let pids = script.wait_for_pids(processes).unwrap();
    assert!(pids.iter().all(|pid| is_running(*pid)));
    end(host);
    script.wait_until_gone(processes, NO_ORPHAN).unwrap();
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
    assert!(began.elapsed() < TEST_TIMEOUT);
    // Dropped, not stopped.
    hostile(deaf, 2, drop);
}

#[test]
fn a_plugin_that_goes_into_the_background_is_no_plugin() {
    let script = script("\"$ADIT\" & note $!\nexit 0\n");
    let why = client(spec(script.path().display(), ""), loopback_addr(9)).unwrap_err();
    assert!(why.to_string().contains("exited with code 0"), "{why}");
    script.wait_until_gone(1, NO_ORPHAN).unwrap();
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_the_plugin() {
    let script = script("note $$; trap '' TERM; \"$ADIT\" & note $!\nwhile :; do sleep 1; done\n");
    let runtime = Runtime::new().unwrap();
    let remote = target(loopback_addr(9));
    let start = PluginHost::start_plugin(
        spec(script.path().display(), ""),
        PluginSide::Client { remote },
    );
    let host = runtime.block_on(start).unwrap();
    runtime.shutdown_background();
    script.wait_until_gone(2, NO_ORPHAN).unwrap();
    drop(host);
}

#[test]
fn a_plugin_that_dies_is_started_again() {
    let script = script("note $$; exec \"$ADIT\"\n");
    let origin = OriginServer::start().unwrap();
    let host = client(spec(script.path().display(), ""), origin.addr()).unwrap();
    for life in 1..=2 {
        traffic::check_one_byte(traffic::connect_directly(host.local_addr()).unwrap()).unwrap();
        kill(*script.wait_for_pids(life).unwrap().last().unwrap());
        // The back-off is below 1 s, then below 2 s.
        script.wait_for_pids(life + 1).unwrap();
        retry_until_success(|| {
            traffic::check_one_byte(traffic::connect_directly(host.local_addr())?)
        })
        .unwrap();
    }
    stop(host);
    script.wait_until_gone(3, NO_ORPHAN).unwrap();
}

const HOSTED: &str = "ADIT_TEST_HOSTED_PLUGIN";

/// Not a test: the process that [`a_plugin_dies_with_its_host`] kills.
#[test]
#[ignore = "only for another test"]
fn hosting() {
    let Ok(program) = env::var(HOSTED) else {
        return;
    };
    // The thread that starts the plugin ends long before the process.
    let start = || client(spec(program, ""), loopback_addr(9)).unwrap();
    let _host = std::thread::spawn(start).join().unwrap();
    println!("hosting it");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_plugin_dies_with_its_host() {
    let script = script("note $$; trap '' TERM HUP; exec \"$ADIT\"\n");
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "plugin::hostile::hosting",
            "--ignored",
            "--nocapture",
        ])
        .env(HOSTED, script.path());
    let mut process = ChildProcess::spawn(command).unwrap();
    process.wait_lines("hosting it", 1, TEST_TIMEOUT).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let pids = script.wait_for_pids(1).unwrap();
    assert!(
        is_running(pids[0]),
        "it outlives the thread that asked for it"
    );
    process.send_signal(Signal::KILL).unwrap();
    process.wait(TEST_TIMEOUT).unwrap();
    script.wait_until_gone(1, NO_ORPHAN).unwrap();
}
