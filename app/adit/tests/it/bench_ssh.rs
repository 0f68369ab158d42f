//! `adit bench ssh` against sshd, without a server, and against servers that are not SSH servers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use adit_interop::external_tools::ToolOutput;
use adit_interop::free_port;
use adit_interop::openssh::Sshd;

use crate::setup::ended;

fn bench(port: u16, more: &[&str]) -> ToolOutput {
    let host = format!("127.0.0.1:{port}");
    ended(&[&["bench", "ssh", &host, "--millis", "2"], more].concat())
}

const LISTS: &str = "KexAlgorithms curve25519-sha256,diffie-hellman-group14-sha1\n\
    Ciphers aes128-ctr,aes128-gcm@openssh.com,aes128-cbc\n\
    MACs umac-64-etm@openssh.com,hmac-sha1,umac-128-etm@openssh.com\nCompression no";

#[test]
fn what_sshd_offers_is_told_to_people() {
    let sshd = Sshd::start(LISTS).unwrap();
    let told = bench(sshd.port(), &[]).expect_success().unwrap();
    for words in [
        "is SSH-2.0-OpenSSH_",
        "strict key exchange    yes",
        "key exchange           curve25519-sha256 ~diffie-hellman-group14-sha1\n",
        "host keys              ssh-ed25519\n",
        "ciphers                aes128-ctr aes128-gcm@openssh.com ~aes128-cbc\n",
        "MACs                   umac-64-etm@openssh.com hmac-sha1 umac-128-etm@openssh.com\n",
        "compression            none\n",
        "take: ssh -p ",
        "warning: the server offers old algorithms: diffie-hellman-group14-sha1, aes128-cbc, hmac-sha1",
    ] {
        assert!(told.contains(words), "`{words}` is not in:\n{told}");
    }
    // One row for GCM, and one for each MAC with CTR.
    let rows = told.lines().filter(|line| line.starts_with("aes128-"));
    assert_eq!(rows.count(), 4, "{told}");
    // The client disconnected properly.
    let log = sshd.process().output();
    assert!(!log.contains("Connection reset"), "{log}");
}

#[test]
fn costs_are_tables_for_documents_and_charts() {
    let sshd = Sshd::start(LISTS).unwrap();
    let markdown = bench(sshd.port(), &["--format", "markdown"]);
    let markdown = markdown.expect_success().unwrap();
    let head = "| | tag | sending | receiving | both |\n|---|--:|--:|--:|--:|\n| aes128-";
    assert!(markdown.contains(head), "{markdown}");
    assert!(
        markdown.contains("| aes128-ctr, umac-64-etm@openssh.com | 64 | "),
        "{markdown}"
    );
    assert!(markdown.contains("\ntake: ssh -p "), "{markdown}");
    let chart = bench(sshd.port(), &["--format", "svg"])
        .expect_success()
        .unwrap();
    assert!(
        chart.starts_with("<svg ") && chart.trim_end().ends_with("</svg>"),
        "{chart}"
    );
    assert_eq!(chart.matches("<rect ").count(), 4, "{chart}");
    assert!(chart.contains(">aes128-ctr, hmac-sha1</text>"), "{chart}");
    let both = bench(sshd.port(), &["--format", "svg", "--json"]);
    assert_eq!(both.code, Some(2), "{}", both.output);
}

/// A large difference of costs also shows on a busy machine, and weak MACs are not recommended.
#[test]
fn figures_hold_beside_other_work() {
    let lists = "Ciphers aes128-ctr\n\
        MACs umac-64@openssh.com,umac-64-etm@openssh.com,hmac-sha2-512,hmac-sha2-512-etm@openssh.com";
    let sshd = Sshd::start(lists).unwrap();
    let host = format!("somebody@127.0.0.1:{}", sshd.port());
    // Twice the number of processors.
    let done = AtomicBool::new(false);
    let spin = || {
        while !done.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    let told = thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(4, |n| 2 * n.get());
        (0..count).for_each(|_| drop(scope.spawn(spin)));
        let told = ended(&["bench", "ssh", &host, "--millis", "60"]).expect_success();
        done.store(true, Ordering::Relaxed);
        told.unwrap()
    });
    let mut ratios = Vec::new();
    for line in told.lines().filter(|line| line.starts_with("aes128-ctr ")) {
        let figures: Vec<f64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, send, receive, _] = figures[..] else {
            panic!("{line}");
        };
        assert!(send > 0.0 && receive > 0.0, "{line}");
        ratios.push(send / receive);
    }
    assert_eq!(ratios.len(), 4, "{told}");
    // Sealing and opening do the same work.
    let even = ratios.iter().all(|ratio| (0.4..2.5).contains(ratio));
    assert!(even, "{ratios:?}\n{told}");
    let take = format!(
        "take: ssh -p {} -c aes128-ctr -m hmac-sha2-512-etm@openssh.com somebody@127.0.0.1",
        sshd.port()
    );
    assert!(told.contains(&take), "{told}");
}

#[test]
fn as_json() {
    let sshd = Sshd::start(LISTS).unwrap();
    let told = bench(sshd.port(), &["--json"]).expect_success().unwrap();
    let lines: Vec<serde_json::Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [offer, costs @ .., advice] = &lines[..] else {
        panic!("{told}");
    };
    let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["offer", "cost", "cost", "cost", "cost", "advice"]);
    let offer = &offer["result"];
    assert_eq!(offer["strictKex"], true);
    assert_eq!(offer["kex"][0], "curve25519-sha256");
    assert_eq!(offer["ciphers"][1][0], "aes128-ctr");
    assert_eq!(costs.len(), 4);
    for cost in costs {
        let cost = &cost["result"];
        let seconds = cost["sendCpuSecondsPerGib"].as_f64().unwrap();
        assert!(seconds > 0.0, "{cost}");
        let gcm = cost["cipher"] == "aes128-gcm@openssh.com";
        assert_eq!(cost["mac"].is_null(), gcm);
    }
    let take = &advice["result"]["take"];
    assert_ne!(take["mac"], "hmac-sha1");
    assert!(take["cipher"].is_string(), "{advice}");
}

#[test]
fn nobody_there() {
    let ToolOutput { code, output } = bench(free_port(), &[]);
    assert_eq!(code, Some(4), "{output}");
    assert!(output.contains("127.0.0.1:"), "{output}");
    assert!(output.to_lowercase().contains("refused"), "{output}");
}

/// Starts a server that sends this to clients that have sent something, then closes.
fn says(words: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        if let Ok((mut tcp, _)) = listener.accept() {
            let _ = tcp.read(&mut [0; 4096]);
            let _ = tcp.write_all(words);
        }
    });
    port
}

#[test]
fn no_ssh_server() {
    for (words, told) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "hint: it sent `HTTP/1.1 400 Bad Request`",
        ),
        (b"", "is not an SSH server: it closed the connection"),
        (b"SSH-1.5-old\r\n", "SSH protocol version is not 2.0"),
        (
            b"\x15\x03\x01\x00\x02\x02\x0a\0\0\0",
            "is not an SSH server",
        ),
        (
            b"SSH-2.0-x\r\n\xff\xff\xff\xff",
            "(SSH-2.0-x) did not send its algorithms",
        ),
    ] {
        let ToolOutput { code, output } = bench(says(words), &[]);
        assert_eq!(code, Some(4), "{output}");
        assert!(output.contains(told), "`{told}` is not in:\n{output}");
    }
    let ToolOutput { code, output } = ended(&["bench", "ssh", "host:port"]);
    assert_eq!(code, Some(2), "{output}");
}
