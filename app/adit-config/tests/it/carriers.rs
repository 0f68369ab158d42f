//! `+kcp`, `+fec` and `kcptun`: the resulting plans, and that their keys stay hidden.

use std::time::Duration;

use adit_config::{
    AdoptedFromPeer, CarrierSettings, HopKind, KcpSettings, ListenerConfig, ListenerKind,
    PacketSeal, ServerHop, ShardCounts, Stage, UdpTransport, explain_plan, link,
};
use adit_crypto::packet::{PacketCheck, PacketKind};
use adit_kcp_proto::CongestionControl;

use crate::shortcuts::{shown, words, words_with};
use adit_config::text::MemorySources;

const NEAR: &str = "mixed://127.0.0.1:1080";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

fn hop(words_of: &[&str], cabinet: &MemorySources) -> ServerHop {
    let mut plan = words_with(words_of, cabinet).unwrap_or_else(|why| panic!("{why:?}"));
    match plan.routes.remove(0).via.stages.remove(0) {
        Stage::Single(adit_config::Hop::Server(hop)) => hop,
        other => panic!("{other:?}"),
    }
}

fn kcp(carried: Option<CarrierSettings>) -> KcpSettings {
    match carried {
        Some(CarrierSettings::Kcp(kcp)) => *kcp,
        other => panic!("{other:?}"),
    }
}

fn kcp_hop(url: &str) -> KcpSettings {
    kcp(hop(&[NEAR, url], &MemorySources::default()).carrier)
}

fn listen(url: &str) -> ListenerConfig {
    let mut plan = words(&[url]).unwrap_or_else(|why| panic!("{why:?}"));
    plan.routes.remove(0).listen.remove(0)
}

#[test]
fn both_ends_take_the_key_of_shadowsocks() {
    let session = |key: &str| PacketSeal::Session(key.into());
    let url = format!("ss+kcp://2022-blake3-aes-128-gcm:{KEY}@h:1");
    assert_eq!(kcp_hop(&url).seal, session(KEY));
    assert_eq!(kcp(listen(&url).carrier).seal, session(KEY));
    // A user's client presents the server's key first (SIP023).
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
            kcp(hop(&[NEAR, &url], &cabinet).carrier).seal,
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
    assert_eq!(found.arq.congestion, CongestionControl::Bbr);
    assert_eq!(found.fec, Some(ShardCounts { data: 4, parity: 2 }));
    assert_eq!((found.mtu, found.overhead()), (1200, 40));
    assert_eq!((found.sessions, found.rate, found.compress), (3, 7, true));
    assert_eq!(found.expire, Some(Duration::from_secs(60)));
    assert_eq!(found.smux.version, adit_smux_proto::Version::V1);
    assert_eq!(found.smux.timeout, Duration::from_secs(60));
    let listener = kcp(listen("mixed+kcp://:1?key=k").carrier);
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
            check: PacketCheck::HighwayHash,
            ..
        }
    ));
}

#[test]
fn kcptuns_names_and_defaults_are_had() {
    let words = |hop: &str| ["tcp://127.0.0.1:0".to_owned(), hop.to_owned()];
    let found = |url: &str| {
        let words = words(url);
        let hop = hop(&[&words[0], &words[1]], &MemorySources::default());
        assert_eq!(hop.kind, HopKind::RemoteTarget);
        kcp(hop.carrier)
    };
    let plain = found("kcptun://h:29900");
    let seal = |kind, password: &str| PacketSeal::Packets {
        kind,
        check: PacketCheck::Crc32,
        password: password.into(),
    };
    assert_eq!(plain.seal, seal(PacketKind::Aes, "it's a secrect"));
    assert_eq!((plain.mtu, plain.compress, plain.sessions), (1350, true, 1));
    assert_eq!((plain.arq.interval_ms, plain.arq.send_window), (30, 128));
    assert_eq!(
        plain.fec,
        Some(ShardCounts {
            data: 10,
            parity: 3
        })
    );
    let all = found(
        "kcptun://a:b%40@h:1/?crypt=tea&mode=manual&nc=0&datashard=0&nocomp=true&smuxver=1\
         &autoexpire=5&scavengettl=6&keepalive=7&smuxbuf=2097152&streambuf=65536&framesize=4096",
    );
    assert_eq!(all.seal, seal(PacketKind::Tea, "a:b@"));
    assert_eq!(all.arq.congestion, CongestionControl::Reno);
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
    let canonical = "kcptun://a%3Ab@h:1/t:80?crypt=tea&mode=fast&parity=2&linger=10m";
    let text = "KCPTUN://a:b@H:1/T:80?scavengettl=600&mode=fast&parityshard=2&crypt=tea";
    assert_eq!(link::canonical_url(text).unwrap(), canonical);
    assert_eq!(link::canonical_url(canonical).unwrap(), canonical);
    for same in [
        "kcptun://@/etc/key@h:1",
        "kcptun://$KEY@h:1",
        "ss+kcp://bm9uZTpw@h:1/?key=@/k",
    ] {
        assert_eq!(link::canonical_url(same).unwrap(), same);
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
            udp: UdpTransport::OverTcp,
            ..
        }
    ));
    let socks = hop(&[NEAR, "socks5+kcp://h:1?key=k"], &MemorySources::default());
    assert!(matches!(socks.kind, HopKind::Socks5 { udp: false, .. }));
    let ListenerKind::Proxy(proxy) = listen("socks5+kcp://127.0.0.1:1?key=k").kind else {
        panic!("no proxy");
    };
    assert!(!proxy.udp && proxy.socks5);
    let why = shown(words(&["ss+kcp://aes-128-gcm:a@:1?plugin=x"]));
    assert!(
        why.contains("a plugin cannot be combined with KCP"),
        "{why}"
    );
    let why = shown(words(&["ss+kcp://aes-128-gcm:a@:1?tcp=false"]));
    assert!(why.contains("`tcp=false` turns them off"), "{why}");
}

#[test]
fn ports_are_those_of_udp() {
    let kcp = "ss+kcp://aes-128-gcm:a@:9";
    let clash = shown(words_both(kcp, "udp://:9/h:1"));
    assert!(clash.contains("use the same port"), "{clash}");
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
    assert!(!explain_plan(&drawn).contains(secret) && !format!("{drawn:?}").contains(secret));
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

fn kcptun_hop(rest: &str) -> KcpSettings {
    let url = format!("kcptun://k@h:{rest}");
    kcp(hop(&["tcp://127.0.0.1:0", &url], &MemorySources::default()).carrier)
}

fn said(url: &str) -> String {
    shown(words(&["tcp://127.0.0.1:0", url]))
}

#[test]
fn each_key_has_one_meaning_in_both_schemes() {
    let keys = "crypt=aes&kcp9=true&cc=bbr&data=4&parity=2&rate=7&smux=1&expire=90&linger=5m\
                &keepalive=7&comp=true&smuxbuf=2097152&streambuf=65536&framesize=4096&conn=2\
                &qpp=true&qppcount=13&key=k";
    let theirs = keys
        .replace("data=", "datashard=")
        .replace("parity=", "parityshard=")
        .replace("rate=", "ratelimit=")
        .replace("smux=", "smuxver=")
        .replace("expire=90", "autoexpire=90s")
        .replace("linger=5m", "scavengettl=300")
        .replace("comp=true", "nocomp=false");
    let tcp = |keys: &str| {
        let url = format!("tcp+kcp://h:1?{keys}");
        kcp(hop(&["tcp://127.0.0.1:0", &url], &MemorySources::default()).carrier)
    };
    let found = tcp(keys);
    assert_eq!(found, tcp(&theirs));
    assert_eq!(
        (found.expire, found.linger),
        (Some(Duration::from_secs(90)), Duration::from_secs(300))
    );
    assert_eq!(found.smux.keepalive, Some(Duration::from_secs(7)));
    assert_eq!(
        (found.qpp, found.adopts),
        (Some(13), AdoptedFromPeer::default())
    );
    for keys in [keys, &theirs] {
        let url = format!("kcptun://h:1?{keys}");
        let mut kcptun = kcp(hop(&["tcp://127.0.0.1:0", &url], &MemorySources::default()).carrier);
        assert!(kcptun.kcptun);
        kcptun.kcptun = false;
        assert_eq!(kcptun, found);
    }
    assert_eq!(kcptun_hop("1?autoexpire=0").expire, None);
}

#[test]
fn a_key_in_two_spellings_is_written_twice() {
    for (keys, words) in [
        ("data=1&datashard=1", "`data` is written twice"),
        ("smuxver=1&mtu=1200&smux=1", "`smux` is written twice"),
        ("scavengettl=1&linger=1", "`linger` is written twice"),
        (
            "comp=true&nocomp=true",
            "`comp` and `nocomp` set the same option",
        ),
    ] {
        for url in ["kcptun://k@h:1", "tcp+kcp://h:1"] {
            let why = said(&format!("{url}?{keys}"));
            assert!(why.contains(words) && why.contains("remove one"), "{why}");
        }
    }
    let why = link::canonical_url("kcptun://h:1?smuxver=1&smux=1").unwrap_err();
    assert!(why[0].title.contains("written twice"), "{why:?}");
    let why = said("kcptun://k@h:1?key=k");
    assert!(why.contains("the key is written twice"), "{why}");
    let why = said("kcptun://k@h:1?datashart=1");
    assert!(why.contains("did you mean `datashard`?"), "{why}");
    // The problem of a value names the key as it is written.
    let why = said("kcptun://k@h:1?datashard=x");
    assert!(why.contains("bad value for `datashard`"), "{why}");
    let help = adit_config::scheme_help("kcptun").unwrap();
    assert!(help.contains("default: 10; also: datashard\n"), "{help}");
}

#[test]
fn what_nobody_asked_for_is_learned() {
    let all = AdoptedFromPeer {
        smux: true,
        comp: true,
        fec: true,
    };
    assert_eq!(kcptun_hop("1").adopts, all);
    for (keys, learns) in [
        ("smuxver=2", AdoptedFromPeer { smux: false, ..all }),
        ("comp=true", AdoptedFromPeer { comp: false, ..all }),
        ("nocomp=false", AdoptedFromPeer { comp: false, ..all }),
        ("data=10", AdoptedFromPeer { fec: false, ..all }),
        ("parityshard=0", AdoptedFromPeer { fec: false, ..all }),
    ] {
        assert_eq!(kcptun_hop(&format!("1?{keys}")).adopts, learns, "{keys}");
        let url = format!("http+kcp://h:1?key=k&crypt=tea&{keys}");
        assert_eq!(kcp_hop(&url).adopts, learns, "{keys}");
    }
    assert_eq!(
        kcp_hop("http+kcp://h:1?key=k").adopts,
        AdoptedFromPeer::default()
    );
    assert_eq!(
        kcptun_hop("1?crypt=aead").adopts,
        AdoptedFromPeer::default()
    );
    assert_eq!(kcp(listen("kcptun://k@:1/t:80").carrier).adopts, all);
}

#[test]
fn defaults_are_those_of_the_scheme() {
    let buffers = |kcp: &KcpSettings| (kcp.smux.session_buffer >> 20, kcp.smux.stream_buffer >> 20);
    let (ours, theirs) = (kcp_hop("http+kcp://h:1?key=k"), kcptun_hop("1"));
    assert_eq!((buffers(&ours), buffers(&theirs)), ((8, 4), (4, 2)));
    assert_eq!((ours.compress, theirs.compress), (false, true));
    assert_eq!((ours.seal.name(), theirs.seal.name()), ("aead", "aes"));
    assert_eq!(
        (ours.linger, theirs.linger),
        (Duration::from_secs(600), ours.linger)
    );
    assert_eq!((ours.expire, theirs.expire), (None, None));
    for (keys, of_ours, of_theirs) in [
        (
            "mode=fast",
            CongestionControl::Auto,
            CongestionControl::Auto,
        ),
        (
            "mode=fast&nc=1",
            CongestionControl::Auto,
            CongestionControl::Auto,
        ),
        (
            "mode=manual",
            CongestionControl::Auto,
            CongestionControl::Reno,
        ),
        (
            "mode=manual&nc=0",
            CongestionControl::Reno,
            CongestionControl::Reno,
        ),
        (
            "mode=manual&nc=1",
            CongestionControl::Off,
            CongestionControl::Off,
        ),
        (
            "mode=manual&nc=1&cc=auto",
            CongestionControl::Auto,
            CongestionControl::Auto,
        ),
        ("cc=off", CongestionControl::Off, CongestionControl::Off),
    ] {
        let ours = kcp_hop(&format!("http+kcp://h:1?key=k&{keys}"));
        let theirs = kcptun_hop(&format!("1?{keys}"));
        assert_eq!(
            (ours.arq.congestion, theirs.arq.congestion),
            (of_ours, of_theirs),
            "{keys}"
        );
    }
    let plan = words(&["tcp://127.0.0.1:0", "kcptun://h:1"]).unwrap();
    let told = format!("{:?}", plan.warnings);
    assert!(told.contains("kcptun's default, which is public"), "{told}");
}

#[test]
fn what_excludes_each_other_is_a_problem() {
    for (url, words) in [
        (
            "kcptun://k@h:1?crypt=null&kcp9=true",
            "`kcp9` needs a cipher, and `null` is not one",
        ),
        ("udp+fec://h:1?crypt=null&kcp9=true", "`null` is not one"),
        (
            "tcp+kcp://h:1?key=k&qpp=true",
            "`qpp` is for ciphers of kcptun",
        ),
        ("tcp+kcp://h:1?key=k&keepalive=0", "interval must not be 0"),
        ("tcp+kcp://h:1?key=k&smuxbuf=17000000", "at most 16 MiB"),
        ("kcptun://@h:1", "the key of the datagrams is missing"),
    ] {
        let why = said(url);
        assert!(why.contains(words), "{url}: {why}");
    }
}

#[test]
fn a_listener_has_every_port_of_a_range() {
    let plan = words(&["kcptun://k@127.0.0.1:3000-3003/t:80"]).unwrap();
    let listens = &plan.routes[0].listen;
    let ports: Vec<u16> = listens.iter().map(|listen| listen.addr.port).collect();
    assert_eq!(ports, [3000, 3001, 3002, 3003]);
    for listen in listens {
        let Some(CarrierSettings::Kcp(kcp)) = &listen.carrier else {
            panic!("{listen:?}");
        };
        assert_eq!(kcp.last_port, listen.addr.port);
    }
    assert_eq!(listens[1].to_string(), "kcptun://127.0.0.1:3001/t:80");
    let drawn = explain_plan(&plan);
    assert!(
        drawn.contains("● kcptun://127.0.0.1:3000-3003/t:80\n"),
        "{drawn}"
    );
    assert_eq!(drawn.matches("●").count(), 1, "{drawn}");
    let most = words(&["kcptun://k@:1-1024/t:80"]).unwrap();
    assert_eq!(most.routes[0].listen.len(), 1024);
    let one = listen("kcptun://k@:7-7/t:80");
    assert_eq!((one.addr.port, kcp(one.carrier).last_port), (7, 7));
    let clash = shown(words_both("kcptun://k@:5-9/t:80", "udp://:9/h:1"));
    assert!(clash.contains("`kcptun://:5-9/t:80` and"), "{clash}");
    assert_eq!(clash.matches("use the same port").count(), 1, "{clash}");
}

#[test]
fn a_hop_has_a_range_of_ports() {
    let url = "kcptun://k@[2001:db8::1]:3000-3010";
    let far = hop(&["tcp://127.0.0.1:0", url], &MemorySources::default());
    assert_eq!((far.server.port, far.port_range()), (3000, 3000..=3010));
    assert_eq!(far.display_name(), "kcptun://[2001:db8::1]:3000-3010");
    assert_eq!(kcp(far.carrier).last_port, 3010);
    assert_eq!(
        (
            kcptun_hop("5").last_port,
            kcp_hop("http+kcp://h:6?key=k").last_port
        ),
        (5, 6)
    );
    let plan = words(&["tcp://127.0.0.1:0", url]).unwrap();
    assert!(explain_plan(&plan).contains("]:3000-3010  ("));
    assert_eq!(link::canonical_url(url).unwrap(), url);
    assert_eq!(
        link::canonical_url("kcptun://H:05-5").unwrap(),
        "kcptun://h:5"
    );
    let back = words(&["kcptun://k@127.0.0.1:9/t:80", "kcptun://k@127.0.0.1:5-10"]);
    let back = shown(back);
    assert!(back.contains("leads back to its own listener"), "{back}");
}

#[test]
fn ranges_that_are_none_are_shown() {
    for (place, title, meant) in [
        ("h:30-20", "the range of ports is empty", "^^^^^"),
        ("h:30-", "not a range of ports", "^^^"),
        ("h:-30", "not a range of ports", "^^^"),
        ("h:0-30", "not a range of ports", "^^^^"),
        ("h:1-70000", "not a range of ports", "^^^^^^^"),
        ("h:1-2-3", "not a range of ports", "^^^^^"),
    ] {
        let why = shown(words(&[&format!("kcptun://k@{place}/t:80")]));
        assert!(why.contains(title) && why.contains(meant), "{why}");
        assert!(!why.contains(&format!("{meant}^")), "{why}");
    }
    let why = shown(words(&["kcptun://k@:1-1025/t:80"]));
    assert!(
        why.contains("a listener has at most 1024 ports") && why.contains("these are 1025"),
        "{why}"
    );
    // The port range is not a secret, and other schemes have none.
    let why = said("kcptun://h:20-30?mode=x");
    assert!(why.contains("kcptun://h:20-30?mode=x"), "{why}");
    let why = said("tcp+kcp://h:20-30?key=k");
    assert!(why.contains("the port is not a number"), "{why}");
}
