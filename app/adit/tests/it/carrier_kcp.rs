//! Carriers: every dialect over KCP, kcptun's tunnel as a URL, datagrams with error correction only.

use std::net::SocketAddr;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::http_server::HttpServer;
use adit_interop::kcptun;
use adit_interop::lossy_relay::{FaultRates, LossyRelay};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{BLAKE3_AES_128, percent_encode};
use adit_interop::traffic::{self, CloseBehavior, DatagramLink, ForwarderEntry};
use adit_interop::{
    AditProcess, TEST_TIMEOUT, TempFolder, external_tools, free_port, loopback_addr,
};

use crate::setup::{ALLOW, bin, ended, start};

const LEN: usize = 1 << 20;
const FAULTS: FaultRates = FaultRates {
    lost: 50,
    doubled: 10,
    late: 30,
};

/// Returns a Shadowsocks URL over KCP, the same at both ends.
pub(crate) fn ss(at: SocketAddr, keys: &str) -> String {
    let (name, key) = (BLAKE3_AES_128.name, percent_encode(BLAKE3_AES_128.key));
    format!("ss+kcp://{name}:{key}@{at}?{ALLOW}&{keys}")
}

/// Starts a forwarder to `target` through a hop.
fn front(target: SocketAddr, hop: &str) -> AditProcess {
    start(&["run", &format!("tcp://127.0.0.1:0/{target}"), hop])
}

fn carries(entry: SocketAddr, what: &str) {
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
fn every_dialect_over_kcp() {
    let origin = OriginServer::start().unwrap();
    let keyed = "key=a%20word&mode=fast3";
    for (listen, hop) in [
        ("socks5+kcp://ann:secret", "socks5+kcp://ann:secret"),
        ("http+kcp://ann:secret", "http+kcp://ann:secret"),
        ("mixed+kcp://ann:secret", "socks5+kcp://ann:secret"),
        ("mixed+kcp://ann:secret", "http+kcp://ann:secret"),
    ] {
        let back = start(&["run", &format!("{listen}@127.0.0.1:0?{ALLOW}&{keyed}")]);
        let front = front(origin.addr(), &format!("{hop}@{}?{keyed}", back.addr()));
        carries(front.addr(), hop);
        front.stop().unwrap();
        back.stop().unwrap();
    }
    let open = start(&["run", &format!("mixed+kcp://127.0.0.1:0?{ALLOW}&{keyed}")]);
    let socks4a = format!("socks4a+kcp://{}?{keyed}", open.addr());
    let near = front(origin.addr(), &socks4a);
    carries(near.addr(), "socks4a");
    near.stop().unwrap();
    open.stop().unwrap();
    // These already have a key.
    for url in [
        ss(loopback_addr(free_port()), "mode=fast3&data=10&parity=3"),
        format!(
            "ssr+kcp://aes-128-cfb:word@{}?protocol=auth_aes128_sha1&{ALLOW}&mode=fast2",
            loopback_addr(free_port())
        ),
    ] {
        let back = start(&["run", &url]);
        let front = front(origin.addr(), &url);
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(front.addr())
        })
        .unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
    // Only to the target of the remote end.
    let far = start(&[
        "run",
        &format!("tcp+kcp://127.0.0.1:0/{}?{keyed}", origin.addr()),
    ]);
    let hop = format!("tcp+kcp://{}?{keyed}", far.addr());
    let near = start(&["run", "tcp://127.0.0.1:0", &hop]);
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(near.addr())
    })
    .unwrap();
    near.stop().unwrap();
    far.stop().unwrap();
}

#[test]
fn every_way_to_seal_and_frame() {
    let origin = OriginServer::start().unwrap();
    for keys in [
        "crypt=aes",
        "crypt=aes-128-gcm&comp=true&smux=1",
        "crypt=salsa20&data=0&cc=reno",
        "crypt=twofish&kcp9=true&data=3&parity=2",
        "crypt=null&mtu=1200&cc=bbr",
        "crypt=none&mode=manual&nodelay=1&interval=10&resend=2",
        "comp=true&conn=3&expire=1s&mtu=900&sndwnd=512&rcvwnd=512&acknodelay=true",
    ] {
        let url = ss(loopback_addr(free_port()), keys);
        let back = start(&["run", &url]);
        let front = front(origin.addr(), &url);
        carries(front.addr(), keys);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

#[test]
fn curl_and_datagrams_through_a_session() {
    let web = HttpServer::start(&[("/a", "text/plain", b"from the web")]).unwrap();
    let origin = OriginServer::start().unwrap();
    let url = ss(loopback_addr(free_port()), "mode=fast3");
    let back = start(&["run", &url]);
    let front = start(&["run", "mixed://127.0.0.1:0", &url]);
    let proxy = format!("socks5h://{}", front.addr());
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "20", "-x", &proxy]);
    curl.arg(format!("http://127.0.0.1:{}/a", web.port()));
    let told = external_tools::run_to_end(curl, Duration::from_secs(30)).unwrap();
    assert_eq!(told.expect_success().unwrap().trim(), "from the web");
    front.stop().unwrap();
    // UDP is carried in a stream.
    let entry = start(&["run", &format!("udp://127.0.0.1:0/{}", origin.addr()), &url]);
    traffic::check_datagrams(&ForwarderEntry::open(entry.addr()).unwrap()).unwrap();
    entry.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn losses_are_repaired() {
    let origin = OriginServer::start().unwrap();
    for (seed, keys) in [(1, "mode=fast3"), (2, "mode=fast3&crypt=aes&data=0")] {
        let back = start(&["run", &ss(loopback_addr(free_port()), keys)]);
        let path = LossyRelay::start(back.addr(), FAULTS, seed).unwrap();
        let front = front(origin.addr(), &ss(path.addr(), keys));
        carries(front.addr(), keys);
        let (passed, lost) = path.packet_counts();
        assert!(lost > 100 && passed > 1000, "{keys}: {passed}, {lost}");
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

#[test]
fn a_server_that_begins_anew_is_found_again() {
    let origin = OriginServer::start().unwrap();
    for keys in ["mode=fast3", "mode=fast3&crypt=aes"] {
        let url = ss(
            loopback_addr(free_port()),
            &format!("{keys}&restart=lenient"),
        );
        let first = start(&["run", &url]);
        let front = front(origin.addr(), &url);
        let try_once = || {
            let stream = traffic::connect_directly(front.addr())?;
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            traffic::check_one_byte(stream)
        };
        try_once().unwrap();
        first.stop().unwrap();
        let second = start(&["run", &url]);
        let begun = Instant::now();
        while try_once().is_err() {
            let waited = begun.elapsed();
            assert!(
                waited < TEST_TIMEOUT,
                "{keys}: not found again in {waited:?}"
            );
            sleep(Duration::from_millis(100));
        }
        front.stop().unwrap();
        second.stop().unwrap();
    }
}

#[test]
fn ends_that_do_not_fit_are_named_within_seconds() {
    let origin = OriginServer::start().unwrap();
    let at = loopback_addr(free_port());
    let back = start(&["run", &ss(at, "key=right")]);
    let none = loopback_addr(free_port());
    for (at, keys, words) in [
        (at, "key=wrong", "no answer in 3 s"),
        (at, "key=right&crypt=aes", "no answer in 3 s"),
        (none, "key=right", "no answer in 3 s"),
        (at, "key=right&smux=1", "use `smux=2`"),
        (at, "key=right&comp=true", "use `comp=false`"),
    ] {
        let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
        let mut front = start(&["run", "-v", &target, &ss(at, keys)]);
        let begun = Instant::now();
        assert!(
            traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).is_err(),
            "{keys}"
        );
        let found = front.process().wait_lines(words, 1, Duration::from_secs(2));
        found.unwrap_or_else(|why| panic!("{keys}: {why}"));
        assert!(begun.elapsed() < Duration::from_secs(5), "{keys}");
        front.stop().unwrap();
    }
    back.stop().unwrap();
}

/// The features of kcptun of 2021, in its options and in adit's.
const SHARED: [(&[&str], &str); 3] = [
    (
        &[
            "--key",
            "word",
            "--crypt",
            "aes",
            "--smuxver",
            "1",
            "--mode",
            "fast3",
        ],
        "crypt=aes&smuxver=1&mode=fast3",
    ),
    (
        &[
            "--key",
            "word",
            "--crypt",
            "salsa20",
            "--smuxver",
            "2",
            "--nocomp",
        ],
        "crypt=salsa20&nocomp=true",
    ),
    (
        &[
            "--key",
            "word",
            "--crypt",
            "xtea",
            "--smuxver",
            "1",
            "--ds",
            "0",
            "--ps",
            "0",
        ],
        "crypt=xtea&smuxver=1&datashard=0&parityshard=0",
    ),
];

#[test]
fn kcptun_by_url_at_both_ends() {
    let origin = OriginServer::start().unwrap();
    for (_, keys) in SHARED {
        let far = format!("kcptun://word@127.0.0.1:0/{}?{keys}", origin.addr());
        let back = start(&["run", &far]);
        let hop = format!("kcptun://word@{}/?{keys}", back.addr());
        let front = start(&["run", "tcp://127.0.0.1:0", &hop]);
        carries(front.addr(), keys);
        front.stop().unwrap();
        back.stop().unwrap();
    }
    // The target exchanges bytes with the user of the other end.
    let server = start(&[
        "run",
        &format!("{}?{ALLOW}", BLAKE3_AES_128.url(loopback_addr(free_port()))),
    ]);
    let back = start(&["run", &format!("kcptun://127.0.0.1:0/{}", server.addr())]);
    let hops = [
        format!("tcp://127.0.0.1:0/{}", origin.addr()),
        format!("kcptun://{}", back.addr()),
        BLAKE3_AES_128.url(loopback_addr(1)),
    ];
    let front = start(&["run", &hops[0], &hops[1], &hops[2]]);
    carries(front.addr(), "ss behind kcptun");
    for adit in [front, back, server] {
        adit.stop().unwrap();
    }
}

#[test]
fn kcptun_by_url_with_debians() {
    let origin = OriginServer::start().unwrap();
    for (options, keys) in SHARED {
        let far = format!("kcptun://word@127.0.0.1:0/{}?{keys}", origin.addr());
        let back = start(&["run", &far]);
        let front = kcptun::start_client(back.addr(), options).unwrap();
        carries(front.addr(), &format!("Debian's client, {keys}"));
        drop(front);
        back.stop().unwrap();
        let back = kcptun::start_server(origin.addr(), options).unwrap();
        let hop = format!("kcptun://word@{}?{keys}", back.addr());
        let front = start(&["run", "tcp://127.0.0.1:0", &hop]);
        carries(front.addr(), &format!("Debian's server, {keys}"));
        front.stop().unwrap();
    }
}

#[test]
fn datagrams_with_correction_alone() {
    let origin = OriginServer::start().unwrap();
    for keys in [
        "key=word",
        "key=word&crypt=aes&data=5&parity=2",
        "crypt=null&wait=5ms",
    ] {
        let far = format!("udp+fec://127.0.0.1:0/{}?{keys}", origin.addr());
        let back = start(&["run", &far]);
        let hop = |at| format!("udp+fec://{at}?{keys}");
        let front = start(&["run", "udp://127.0.0.1:0", &hop(back.addr())]);
        traffic::check_datagrams(&ForwarderEntry::open(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        // One datagram in twenty is lost in each direction, but nearly all arrive.
        let path = LossyRelay::start(back.addr(), FAULTS, 7).unwrap();
        let front = start(&["run", "udp://127.0.0.1:0", &hop(path.addr())]);
        let entry = ForwarderEntry::open(front.addr()).unwrap();
        let mut got = Vec::new();
        for n in 0u32..150 {
            entry.send(&n.to_le_bytes()).unwrap();
            while let Ok(answer) = entry.recv_within(Duration::from_millis(150)) {
                got.push(answer);
                if got.last().is_some_and(|last| *last == n.to_le_bytes()) {
                    break;
                }
            }
        }
        let all = got.len();
        got.sort();
        got.dedup();
        assert_eq!(got.len(), all, "{keys}: some came twice");
        assert!(all >= 144, "{keys}: {all} of 150");
        let (_, lost) = path.packet_counts();
        assert!(lost > 10, "{keys}: only {lost} were lost");
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

#[test]
fn a_datagram_server_that_begins_anew_is_found_again() {
    let origin = OriginServer::start().unwrap();
    let at = loopback_addr(free_port());
    let far = format!("udp+fec://{at}/{}?key=word", origin.addr());
    let first = start(&["run", &far]);
    let front = start(&[
        "run",
        "udp://127.0.0.1:0",
        &format!("udp+fec://{at}?key=word"),
    ]);
    let entry = ForwarderEntry::open(front.addr()).unwrap();
    let once = || {
        entry.send(b"ping").unwrap();
        entry.recv_within(Duration::from_millis(200))
    };
    once().unwrap();
    first.stop().unwrap();
    let second = start(&["run", &far]);
    let begun = Instant::now();
    while once().is_err() {
        let waited = begun.elapsed();
        assert!(
            waited < Duration::from_secs(8),
            "not found again in {waited:?}"
        );
    }
    front.stop().unwrap();
    second.stop().unwrap();
}

#[test]
fn what_cannot_be_is_told_with_its_place() {
    let folder = TempFolder::new("carrier").unwrap();
    for (via, line, words) in [
        ("socks5+kcp://h:1", 3, "the key of the datagrams is missing"),
        ("socks5+kcp://h:1?key=x&udp=true", 3, "KCP cannot carry UDP"),
        (
            "ss+kcp://none@h:1?key=x&crypt=aes-129",
            3,
            "did you mean `aes-128`?",
        ),
        ("socks5+kcp://h:1?key=x&data=250&parity=9", 3, "at most 256"),
        (
            "socks5+kcp://h:1?key=x&mtu=1501",
            3,
            "the MTU must be between 90 and 1500",
        ),
        ("socks5+kcp://h:1?key=x&smux=3", 3, "smux must be 1 or 2"),
        (
            "socks5+kcp://h:1?key=x&pariti=3",
            3,
            "did you mean `parity`?",
        ),
        ("kcptun://word@h:1", 3, "cannot connect to other targets"),
        ("socks5+quic://h:1", 3, "there is no carrier `quic`"),
        ("udp+kcp://h:1?key=x", 3, "`kcp` does not carry `udp`"),
    ] {
        let text = format!("[route.a]\nlisten = [\"mixed://127.0.0.1:1\"]\nvia = [\"{via}\"]\n");
        let file = folder.write_file("adit.toml", text).unwrap();
        let told = ended(&["check", file.to_str().unwrap()]);
        assert_ne!(told.code, Some(0), "{via}");
        assert!(told.output.contains(words), "{via}: {}", told.output);
        assert!(
            told.output.contains(&format!("adit.toml:{line}:")),
            "{via}: {}",
            told.output
        );
    }
    for (words, text) in [
        (&["tcp://127.0.0.1:0"][..], "the target is missing"),
        (
            &["tcp://127.0.0.1:0/h:1", "kcptun://h:1"],
            "is never reached",
        ),
        (
            &["tcp://127.0.0.1:0", "udp+fec://h:1?key=x"],
            "carries UDP only",
        ),
        (&["kcptun://:0"], "the target is missing"),
        (
            &["mixed://127.0.0.1:0", "http://h:1", "http+kcp://h:1?key=x"],
            "cannot use other hops",
        ),
        (&["socks5+kcp://:0?crypt=null"], "open proxy"),
    ] {
        let told = ended(&[&["run"], words].concat());
        assert!(told.output.contains(text), "{words:?}: {}", told.output);
    }
}

#[test]
fn the_drawing_names_what_is_agreed_on() {
    let key = percent_encode(BLAKE3_AES_128.key);
    let hop = format!(
        "ss+kcp://{}:{key}@h:1?mode=fast2&conn=2",
        BLAKE3_AES_128.name
    );
    let mut command = Command::new(bin());
    command.args(["explain", "mixed://127.0.0.1:0", &hop]);
    let told = external_tools::run_to_end(command, TEST_TIMEOUT).unwrap();
    for words in [
        "KCP fast2, mtu 1350 (1310 for KCP), FEC 10+3, crypt aead",
        "2 sessions kept",
        "UDP in a stream",
    ] {
        assert!(told.output.contains(words), "{words}: {}", told.output);
    }
    assert!(!told.output.contains(&key), "{}", told.output);
    let told = ended(&["explain", "udp+fec://127.0.0.1:0/h:2?key=hidden"]);
    assert!(
        told.output.contains("FEC 3+1 after 10ms, crypt aead"),
        "{}",
        told.output
    );
    let told = ended(&["help", "ss+kcp"]);
    for words in ["Keys of the carrier `kcp`", "Keys of `ss`", "parity=number"] {
        assert!(told.output.contains(words), "{words}: {}", told.output);
    }
}

#[test]
fn a_client_asks_its_server_through_the_carrier() {
    let at = loopback_addr(free_port());
    let url = ss(at, "mode=fast3");
    let back = start(&["run", &url]);
    let (method, key) = (BLAKE3_AES_128.name, percent_encode(BLAKE3_AES_128.key));
    let hop = |at: SocketAddr| format!("ss+kcp://{method}:{key}@{at}?mode=fast3");
    let right = ended(&["client", "--check", &hop(at)]);
    assert_eq!(right.code, Some(0), "{}", right.output);
    assert!(right.output.contains("accepts us"), "{}", right.output);
    let nobody = ended(&["client", "--check", &hop(loopback_addr(free_port()))]);
    assert_eq!(nobody.code, Some(4), "{}", nobody.output);
    assert!(nobody.output.contains("allow UDP"), "{}", nobody.output);
    back.stop().unwrap();
}
