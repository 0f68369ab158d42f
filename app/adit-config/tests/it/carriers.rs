//! `+kcp`, `+fec` and `kcptun`: what they become, and that their keys stay hidden.

use std::time::Duration;

use adit_config::{
    Carried, HopKind, Kcp, Listen, ListenKind, PacketSeal, ServerHop, Shards, Stage, UdpWay,
    explain, link,
};
use adit_crypto::packet::{Check, PacketKind};
use adit_kcp_proto::Congestion;

use crate::shortcuts::{shown, words, words_with};
use adit_config::text::MemorySources;

const NEAR: &str = "mixed://127.0.0.1:1080";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

fn hop(words_of: &[&str], cabinet: &MemorySources) -> ServerHop {
    let mut plan = words_with(words_of, cabinet).unwrap_or_else(|why| panic!("{why:?}"));
    match plan.routes.remove(0).via.hops.remove(0) {
        Stage::One(adit_config::Hop::Server(hop)) => hop,
        other => panic!("{other:?}"),
    }
}

fn kcp(carried: Option<Carried>) -> Kcp {
    match carried {
        Some(Carried::Kcp(kcp)) => *kcp,
        other => panic!("{other:?}"),
    }
}

fn kcp_hop(url: &str) -> Kcp {
    kcp(hop(&[NEAR, url], &MemorySources::default()).carried)
}

fn listen(url: &str) -> Listen {
    let mut plan = words(&[url]).unwrap_or_else(|why| panic!("{why:?}"));
    plan.routes.remove(0).listen.remove(0)
}

#[test]
fn both_ends_take_the_key_of_shadowsocks() {
    let session = |key: &str| PacketSeal::Session(key.into());
    let url = format!("ss+kcp://2022-blake3-aes-128-gcm:{KEY}@h:1");
    assert_eq!(kcp_hop(&url).seal, session(KEY));
    assert_eq!(kcp(listen(&url).carried).seal, session(KEY));
    // A user shows the server's key first (SIP023).
    let url = format!("ss+kcp://2022-blake3-aes-128-gcm:{KEY}:{KEY}@h:1");
    assert_eq!(kcp_hop(&url).seal, session(KEY));
    assert_eq!(kcp_hop("ss+kcp://aes-128-gcm:a:b@h:1").seal, session("a:b"));
    assert_eq!(kcp_hop("ssr+kcp://rc4-md5:pw@h:1").seal, session("pw"));
    assert_eq!(
        kcp_hop("ss+kcp://aes-128-gcm:a@h:1?key=b").seal,
        session("b")
    );
    let cabinet = MemorySources::default()
        .with_file("/k", "in a file\n")
        .with_variable("K", "in a variable");
    for (key, found) in [("@/k", "in a file"), ("$K", "in a variable")] {
        let url = format!("socks5+kcp://127.0.0.1:1?key={key}");
        assert_eq!(
            kcp(hop(&[NEAR, &url], &cabinet).carried).seal,
            session(found)
        );
    }
}

#[test]
fn keys_become_numbers() {
    let both = "key=k&mode=fast2&data=4&parity=2&mtu=1200&sndwnd=9&cc=bbr&smux=1&comp=true&rate=7";
    let found = kcp_hop(&format!(
        "http+kcp://h:1?{both}&conn=3&expire=1m&keepalive=20s"
    ));
    assert_eq!((found.arq.nodelay, found.arq.interval_ms), (1, 20));
    assert_eq!((found.arq.send_window, found.arq.recv_window), (9, 512));
    assert_eq!(found.arq.congestion, Congestion::Bbr);
    assert_eq!(found.fec, Some(Shards { data: 4, parity: 2 }));
    assert_eq!((found.mtu, found.overhead()), (1200, 40));
    assert_eq!((found.sessions, found.rate, found.compress), (3, 7, true));
    assert_eq!(found.expire, Some(Duration::from_secs(60)));
    assert_eq!(found.smux.version, adit_smux_proto::Version::V1);
    assert_eq!(found.smux.timeout, Duration::from_secs(60));
    let listener = kcp(listen("mixed+kcp://:1?key=k").carried);
    assert_eq!(
        (listener.arq.send_window, listener.arq.recv_window),
        (1024, 1024)
    );
    let manual = kcp_hop("http+kcp://h:1?key=k&mode=manual&nodelay=1&interval=15&resend=3&data=0");
    let arq = manual.arq;
    assert_eq!((arq.nodelay, arq.interval_ms, arq.resend), (1, 15, 3));
    assert_eq!(manual.fec, None);
    let kcp9 = kcp_hop("http+kcp://h:1?key=k&crypt=sm4&kcp9=true").seal;
    assert!(matches!(
        kcp9,
        PacketSeal::Packets {
            kind: PacketKind::Sm4,
            check: Check::HighwayHash,
            ..
        }
    ));
}

#[test]
fn kcptun_has_its_own_names_and_defaults() {
    let words = |hop: &str| ["tcp://127.0.0.1:0".to_owned(), hop.to_owned()];
    let found = |url: &str| {
        let words = words(url);
        let hop = hop(&[&words[0], &words[1]], &MemorySources::default());
        assert_eq!(hop.kind, HopKind::Far);
        kcp(hop.carried)
    };
    let plain = found("kcptun://h:29900");
    let seal = |kind, password: &str| PacketSeal::Packets {
        kind,
        check: Check::Crc32,
        password: password.into(),
    };
    assert_eq!(plain.seal, seal(PacketKind::Aes, "it's a secrect"));
    assert_eq!((plain.mtu, plain.compress, plain.sessions), (1350, true, 1));
    assert_eq!((plain.arq.interval_ms, plain.arq.send_window), (30, 128));
    assert_eq!(
        plain.fec,
        Some(Shards {
            data: 10,
            parity: 3
        })
    );
    let all = found(
        "kcptun://a:b%40@h:1/?crypt=tea&mode=manual&nc=0&datashard=0&nocomp=true&smuxver=1\
         &autoexpire=5&scavengettl=6&keepalive=7&smuxbuf=2097152&streambuf=65536&framesize=4096",
    );
    assert_eq!(all.seal, seal(PacketKind::Tea, "a:b@"));
    assert_eq!(all.arq.congestion, Congestion::Reno);
    assert_eq!((all.fec, all.compress), (None, false));
    assert_eq!(
        (all.expire, all.linger),
        (Some(Duration::from_secs(5)), Duration::from_secs(6))
    );
    assert_eq!(
        (all.smux.session_buffer, all.smux.max_frame),
        (2 << 20, 4096)
    );
    let why = shown(words_with(
        &["tcp://127.0.0.1:0", "kcptun://h:1?smuxbuf=1000"],
        &MemorySources::default(),
    ));
    assert!(why.contains("smux cannot run with this"), "{why}");
    let canonical = "kcptun://a%3Ab@h:1/t:80?crypt=tea&mode=fast";
    let text = "KCPTUN://a:b@H:1/T:80?mode=fast&crypt=TEA";
    assert_eq!(link::canonical(text).unwrap(), canonical);
    assert_eq!(link::canonical(canonical).unwrap(), canonical);
    for same in [
        "kcptun://@/etc/key@h:1",
        "kcptun://$KEY@h:1",
        "ss+kcp://bm9uZTpw@h:1/?key=@/k",
    ] {
        assert_eq!(link::canonical(same).unwrap(), same);
    }
}

#[test]
fn what_is_udp_of_a_dialect_stays_in_the_tunnel() {
    let ss = hop(
        &[NEAR, "ss+kcp://aes-128-gcm:a@h:1"],
        &MemorySources::default(),
    );
    assert!(matches!(
        ss.kind,
        HopKind::Shadowsocks {
            udp: UdpWay::OverTcp,
            ..
        }
    ));
    let socks = hop(&[NEAR, "socks5+kcp://h:1?key=k"], &MemorySources::default());
    assert!(matches!(socks.kind, HopKind::Socks5 { udp: false, .. }));
    let ListenKind::Proxy(proxy) = listen("socks5+kcp://127.0.0.1:1?key=k").kind else {
        panic!("no proxy");
    };
    assert!(!proxy.udp && proxy.socks5);
    let why = shown(words(&["ss+kcp://aes-128-gcm:a@:1?plugin=x"]));
    assert!(why.contains("a plugin and KCP cannot both"), "{why}");
    let why = shown(words(&["ss+kcp://aes-128-gcm:a@:1?tcp=false"]));
    assert!(why.contains("`tcp=false` leaves none"), "{why}");
}

#[test]
fn ports_are_those_of_udp() {
    let kcp = "ss+kcp://aes-128-gcm:a@:9";
    let clash = shown(words_both(kcp, "udp://:9/h:1"));
    assert!(clash.contains("want the same port"), "{clash}");
    assert!(words_both(kcp, "tcp://:9/h:1").is_ok());
}

fn words_both(one: &str, two: &str) -> Result<adit_config::Plan, Vec<adit_config::Problem>> {
    let text = format!("[route.a]\nlisten = [\"{one}\", \"{two}\"]\n");
    adit_config::Plan::from_toml_with(&text, "a.toml", &MemorySources::default())
}

#[test]
fn no_key_is_shown() {
    let secret = "hunter2hunter2";
    for url in [
        format!("kcptun://{secret}@h:1?mode=fast9"),
        format!("kcptun://{secret}:x@h:1?mode=fast9"),
        format!("kcptun://{secret}?x@h:1"),
        format!("ss+kcp://aes-128-gcm:{secret}@h:1?mode=fast9"),
        format!("socks5+kcp://h:1?key={secret}&mode=fast9"),
        format!("udp+fec://h:1?wait=9s&key={secret}"),
        format!("udp+fec://h:1?wait=9s&ke={secret}"),
    ] {
        let told = shown(words(&["tcp://127.0.0.1:0", &url]));
        assert!(
            told.contains("error:") && !told.contains(secret),
            "{url}: {told}"
        );
    }
    let drawn = words(&[NEAR, &format!("socks5+kcp://h:1?key={secret}")]).unwrap();
    assert!(!explain(&drawn).contains(secret) && !format!("{drawn:?}").contains(secret));
}

#[test]
fn numbers_that_kcp_cannot_run_with_are_problems() {
    for (keys, said) in [
        ("mode=manual&interval=0", "between 10 and 5000 ms, not 0"),
        ("sndwnd=70000", "between 1 and 65535 segments, not 70000"),
    ] {
        let url = format!("kcptun://k@127.0.0.1:29900?{keys}");
        let why = shown(words(&["tcp://127.0.0.1:0", &url]));
        assert!(why.contains(said), "{why}");
    }
}
