//! The program `adit kcp`: both its ends, over good and bad paths.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::kcptun;
use adit_interop::lossy_relay::{FaultRates, LossyRelay};
use adit_interop::origin::OriginServer;
use adit_interop::traffic::{self, CloseBehavior};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::setup::{bin, ended, start};

const LEN: usize = 1 << 20;

/// Starts a server of adit in front of `target`.
pub(crate) fn server(target: SocketAddr, options: &[&str]) -> AditProcess {
    let target = target.to_string();
    let args = ["kcp", "server", "-l", "127.0.0.1:0", "-t", &target];
    start(&[&args[..], options].concat())
}

/// Starts a client of adit.
pub(crate) fn client(server: SocketAddr, options: &[&str]) -> AditProcess {
    let server = server.to_string();
    let args = ["kcp", "client", "-l", "127.0.0.1:0", "-r", &server];
    start(&[&args[..], options].concat())
}

/// Sends bytes in each direction separately and in both together; kcptun closes both at the first end.
pub(crate) fn carries(entry: SocketAddr, what: &str) {
    let dial = || traffic::connect_directly(entry);
    let all = || -> anyhow::Result<()> {
        traffic::check_one_byte(dial()?)?;
        traffic::upload(dial()?, LEN)?;
        traffic::download(dial()?, LEN)?;
        traffic::transfer_both_ways(dial()?, LEN)
    };
    all().unwrap_or_else(|why| panic!("{what}: {why:#}"));
}

#[test]
fn both_ends_ours_in_every_mode() {
    let origin = OriginServer::start().unwrap();
    for options in [
        &[][..],
        &["--crypt", "aes-128-gcm", "--mode", "fast3"],
        &["--crypt", "null", "--nocomp"],
        &["--crypt", "sm4", "--smuxver", "1", "--mode", "fast2"],
        &[
            "--crypt",
            "salsa20",
            "--mode",
            "manual",
            "--nodelay",
            "1",
            "--interval",
            "10",
        ],
    ] {
        let back = server(origin.addr(), options);
        let front = client(back.addr(), options);
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(front.addr())
        })
        .unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// Settings that no other program has, and settings that differ.
#[test]
fn kcp9_is_between_two_adits() {
    let origin = OriginServer::start().unwrap();
    let way = ["--key", "k", "--crypt", "salsa20", "--kcp9", "--quiet"];
    let far = server(origin.addr(), &way);
    let near = client(far.addr(), &way);
    carries(near.addr(), "kcp9");
    near.stop().unwrap();
    far.stop().unwrap();
    let null = ["--key", "k", "--crypt", "null", "--kcp9"];
    let words = ["kcp", "server", "-l", "127.0.0.1:0", "-t", "127.0.0.1:1"];
    let ended = ended(&[&words[..], &null].concat());
    assert_eq!(ended.code, Some(3), "{}", ended.output);
    assert!(
        ended.output.contains("`kcp9` needs a cipher"),
        "{}",
        ended.output
    );
}

#[test]
fn losses_are_repaired_by_every_pair() {
    let faults = FaultRates {
        lost: 50,
        doubled: 10,
        late: 30,
    };
    let origin = OriginServer::start().unwrap();
    let options = ["--crypt", "aes", "--smuxver", "1", "--mode", "fast3"];
    let through = |server: SocketAddr, seed, what: &str, debian: bool| {
        let path = LossyRelay::start(server, faults, seed).unwrap();
        if debian {
            let front = kcptun::start_client(path.addr(), &options).unwrap();
            carries(front.addr(), what);
        } else {
            let front = client(path.addr(), &options);
            carries(front.addr(), what);
            front.stop().unwrap();
        }
        let (passed, lost) = path.packet_counts();
        assert!(lost > 100 && passed > 1000, "{what}: {passed}, {lost}");
    };
    let ours = server(origin.addr(), &options);
    through(ours.addr(), 1, "both ours", false);
    through(ours.addr(), 2, "our server", true);
    ours.stop().unwrap();
    let theirs = kcptun::start_server(origin.addr(), &options).unwrap();
    through(theirs.addr(), 3, "our client", false);
}

#[test]
fn a_server_that_begins_anew_is_found_again() {
    let origin = OriginServer::start().unwrap();
    let at = loopback_addr(free_port()).to_string();
    let target = origin.addr().to_string();
    let args = ["kcp", "server", "-l", &at, "-t", &target];
    let first = start(&args);
    let front = client(first.addr(), &[]);
    let try_once = || {
        let stream = traffic::connect_directly(front.addr())?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        traffic::check_one_byte(stream)
    };
    try_once().unwrap();
    first.stop().unwrap();
    let second = start(&args);
    let begun = Instant::now();
    while try_once().is_err() {
        let waited = begun.elapsed();
        assert!(waited < TEST_TIMEOUT, "not found again in {waited:?}");
        sleep(Duration::from_millis(200));
    }
    front.stop().unwrap();
    second.stop().unwrap();
}

#[test]
fn several_sessions_over_a_range_of_ports_that_expire() {
    let origin = OriginServer::start().unwrap();
    let low = (20_000..).step_by(10).find(|low| {
        (*low..*low + 4).all(|port| std::net::UdpSocket::bind(loopback_addr(port)).is_ok())
    });
    let low = low.unwrap();
    let range = format!("127.0.0.1:{low}-{}", low + 3);
    let target = origin.addr().to_string();
    let args = ["kcp", "server", "-l", &range, "-t", &target];
    let back = AditProcess::start_with(&bin(), &args, 4).unwrap();
    let options = [
        "--conn",
        "3",
        "--autoexpire",
        "1",
        "--scavengettl",
        "1",
        "-v",
    ];
    let args = ["kcp", "client", "-l", "127.0.0.1:0", "-r", &range];
    let mut front = start(&[&args[..], &options].concat());
    for _ in 0..3 {
        for _ in 0..3 {
            traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
        }
        sleep(Duration::from_millis(1100));
    }
    // Three at the start, and three that replace them.
    let gone = front
        .process()
        .wait_lines("the session has ended", 3, TEST_TIMEOUT);
    gone.unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn a_file_wins_and_counters_are_written() {
    let (origin, folder) = (
        OriginServer::start().unwrap(),
        TempFolder::new("kcp").unwrap(),
    );
    let back = server(origin.addr(), &["--key", "in a file", "--crypt", "salsa20"]);
    let log = folder.path().join("snmp-2006.csv");
    let text = format!(
        r#"{{"localaddr": "127.0.0.1:0", "remoteaddr": "{}", "key": "in a file",
            "crypt": "salsa20", "snmplog": "{}", "snmpperiod": 1, "pprof": true}}"#,
        back.addr(),
        log.display()
    );
    let file = folder.write_file("client.json", text).unwrap();
    let file = file.to_str().unwrap();
    // With one dash, as with kcptun.
    let mut front = start(&["kcp", "client", "-c", file, "-key", "no", "-mode", "fast3"]);
    front
        .process()
        .wait_lines("pprof has no effect", 1, TEST_TIMEOUT)
        .unwrap();
    carries(front.addr(), "from a file");
    sleep(Duration::from_millis(1200));
    front
        .process()
        .send_signal(rustix::process::Signal::USR1)
        .unwrap();
    let told = front
        .process()
        .wait_lines("BytesSent: ", 1, TEST_TIMEOUT)
        .unwrap();
    let sent: usize = told[0].trim_start_matches("BytesSent: ").parse().unwrap();
    assert!(sent > LEN, "{sent}");
    front.stop().unwrap();
    back.stop().unwrap();
    let mut names = std::fs::read_dir(folder.path()).unwrap().flatten();
    let log = names.find(|file| file.path().extension().is_some_and(|e| e == "csv"));
    let log = log.unwrap().path();
    let year = log.file_stem().unwrap().to_str().unwrap();
    assert!(
        year.trim_start_matches("snmp-").parse::<u16>().unwrap() > 2020,
        "{year}"
    );
    let rows = std::fs::read_to_string(&log).unwrap();
    assert!(
        rows.starts_with("Unix,BytesSent,BytesReceived,MaxConn,"),
        "{rows}"
    );
    assert!(rows.lines().count() >= 3);
    assert!(
        rows.lines().all(|row| row.split(',').count() == 31),
        "{rows}"
    );
}

#[test]
fn what_cannot_be_had_is_refused() {
    let client = ["kcp", "client", "-l", "127.0.0.1:0", "-r"];
    for (options, words) in [
        (
            &["127.0.0.1:1", "--QPP", "--QPPCount", "0"][..],
            "--QPPCount 0",
        ),
        (&["127.0.0.1:1", "-tcp"], "tcp mode is not supported"),
        (
            &["127.0.0.1:1", "--crypt", "aes-129"],
            "did you mean `aes-128`?",
        ),
        (
            &["127.0.0.1:1", "--mode", "warp"],
            "--mode warp: expected one of normal|fast|fast2|fast3|manual",
        ),
        (&["127.0.0.1:1", "--mtu", "1501"], "between"),
        (&["127.0.0.1:1", "-c", "/nowhere.json"], "/nowhere.json"),
        (&["/run/socket"], "Unix sockets are not supported"),
    ] {
        let told = ended(&[&client[..], options].concat());
        assert_eq!(told.code, Some(3), "{options:?}: {}", told.output);
        assert!(told.output.contains(words), "{options:?}: {}", told.output);
    }
    assert_eq!(ended(&["kcp", "client"]).code, Some(2));
    assert_eq!(ended(&["kcp", "server", "--conn", "3"]).code, Some(2));
}
