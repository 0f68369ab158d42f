//! The meaning of words that only Shadowsocks has: keys on the way, plugins, stored salts.

use adit_config::{
    Hop, HopKind, ListenerKind, Plan, Plugin, PluginMode, UdpTransport, WarningKind,
};

use crate::plans::{KEY, hop, kinds, server};
use crate::shortcuts::words;
use adit_config::text::MemorySources;

#[test]
fn a_hop_can_have_keys_for_the_servers_on_the_way() {
    let next = "EBESExQVFhcYGRobHB0eHw==";
    let joined = [KEY, KEY.trim_end_matches('='), next].join(":");
    let encoded = joined.replace(':', "%3A").replace('=', "%3d");
    for secret in [&joined, &encoded] {
        let hop = hop(&format!(
            "ss://2022-blake3-aes-128-gcm:{secret}@127.0.0.1:1"
        ));
        let HopKind::Shadowsocks { secret, .. } = hop.kind else {
            panic!("{hop:?}");
        };
        assert_eq!(secret.expose(), joined);
    }
    // In a password, a colon has no special meaning.
    for method in ["aes-256-gcm", "rc4-md5"] {
        let hop = hop(&format!("ss://{method}:a:b@h:1"));
        assert!(
            matches!(&hop.kind, HopKind::Shadowsocks { secret, .. } if secret.expose() == "a:b")
        );
    }
}

#[test]
fn first_bytes_travel_with_the_syn_where_that_is_asked_for() {
    for (query, asked) in [
        ("", false),
        ("?fast_open=false", false),
        ("?fast_open=true", true),
    ] {
        let url = format!("ss://aes-256-gcm:p@127.0.0.1:1{query}");
        assert_eq!(server(&url).fast_open, asked, "{url}");
        let HopKind::Shadowsocks { fast_open, .. } = hop(&url).kind else {
            panic!("{url}");
        };
        assert_eq!(fast_open, asked, "{url}");
        let drawn = |words_of: &[&str]| adit_config::explain_plan(&words(words_of).unwrap());
        let ends = drawn(&[&url]) + &drawn(&["mixed://127.0.0.1:0", &url]);
        assert_eq!(
            ends.matches("the SYN").count(),
            if asked { 2 } else { 0 },
            "{ends}"
        );
    }
}

#[test]
fn the_way_of_datagrams_is_read() {
    for (url, way) in [
        ("ss://aes-256-gcm:p@h:1", UdpTransport::Native),
        ("ss://aes-256-gcm:p@h:1?udp=true", UdpTransport::Native),
        ("ss://aes-256-gcm:p@h:1?udp=false", UdpTransport::Off),
        ("ss://aes-256-gcm:p@h:1?udp=over-tcp", UdpTransport::OverTcp),
    ] {
        let hop = hop(url);
        assert!(
            matches!(&hop.kind, HopKind::Shadowsocks { udp, .. } if *udp == way),
            "{url}"
        );
        assert_eq!(Hop::Server(hop).carries_udp(), way != UdpTransport::Off);
    }
    // The same link on the server: datagrams in a stream need no separate socket there.
    for (udp, served) in [("true", true), ("over-tcp", false), ("false", false)] {
        let url = format!("ss://aes-256-gcm:p@127.0.0.1:1?udp={udp}");
        assert_eq!(server(&url).udp, served, "{udp}");
    }
}

#[test]
fn plugins_are_read() {
    let plugin = |url: &str| match hop(url).kind {
        HopKind::Shadowsocks { plugin, .. } => plugin,
        other => panic!("{other:?}"),
    };
    let obfs = |mode| Plugin {
        program: "obfs-local".to_owned(),
        options: "obfs=http;obfs-host=a.example".to_owned(),
        mode,
    };
    let link = "ss://YWVzLTEyOC1nY206dGVzdA@h:8888/\
        ?plugin=obfs-local%3Bobfs%3Dhttp%3Bobfs-host%3Da.example";
    assert_eq!(plugin(link), Some(obfs(PluginMode::TcpOnly)));
    for (text, mode) in [
        ("tcp_only", PluginMode::TcpOnly),
        ("udp_only", PluginMode::UdpOnly),
        ("tcp_and_udp", PluginMode::TcpAndUdp),
    ] {
        let url = format!("{link}&plugin_mode={text}");
        assert_eq!(plugin(&url), Some(obfs(mode)));
        let at_home = url.replace("@h:", "@127.0.0.1:");
        assert_eq!(server(&at_home).plugin, Some(obfs(mode)));
    }
    let escaped = "ss://aes-128-gcm:p@h:1?plugin=/opt/a%5C%3Bb%3Bpath%3D/x%5C%3By";
    let read = plugin(escaped).unwrap();
    assert_eq!(
        (read.program.as_str(), read.options.as_str()),
        ("/opt/a;b", "path=/x\\;y")
    );
    for (rest, title) in [
        (
            "udp=false&plugin_mode=udp_only",
            "no transport goes through the plugin",
        ),
        (
            "udp=over-tcp&plugin_mode=udp_only",
            "no transport goes through the plugin",
        ),
    ] {
        let url = format!("{link}&{rest}");
        let problems = words(&["mixed://127.0.0.1:0", &url]).unwrap_err();
        assert_eq!(problems[0].title, title);
    }
    let problems = words(&["ss://aes-128-gcm:p@127.0.0.1:1?tcp=false&plugin=p"]).unwrap_err();
    assert_eq!(problems[0].title, "no transport goes through the plugin");
    let plan = words(&[
        "mixed://127.0.0.1:0",
        "ss://aes-128-gcm:p@h:1?plugin_mode=udp_only",
    ]);
    assert!(kinds(&plan.unwrap()).contains(&WarningKind::IgnoredKey));
    // Options can contain a password.
    assert!(!format!("{:?}", plugin(link)).contains("a.example"));
}

#[test]
fn salts_are_kept_where_nothing_else_helps() {
    let kept = |url: &str| server(url).state;
    let aead = "ss://aes-256-gcm:p@127.0.0.1:1?state=@/var/lib/salts";
    assert_eq!(kept(aead), Some("/var/lib/salts".into()));
    let legacy = |method| kept(&format!("ss://{method}:p@127.0.0.1:1?state=@/x"));
    assert_eq!(legacy("aes-256-cfb"), Some("/x".into()));
    assert_eq!(legacy("rc4"), None, "it has no IV");
    let other = format!("ss://2022-blake3-aes-128-gcm:{KEY}@127.0.0.1:1?state=@/x");
    assert_eq!(kept(&other), None);
    let warned = kinds(&words(&[&other]).unwrap());
    assert!(warned.contains(&WarningKind::IgnoredKey), "{warned:?}");
    let text = "[route.a]\nlisten = 'ss://aes-256-gcm:p@127.0.0.1:1?state=@salts'\n";
    let mut plan =
        Plan::from_toml_with(text, "/etc/a/adit.toml", &MemorySources::default()).unwrap();
    let ListenerKind::Shadowsocks(server) = plan.routes.remove(0).listen.remove(0).kind else {
        panic!("no server");
    };
    assert_eq!(server.state, Some("/etc/a/salts".into()));
}
