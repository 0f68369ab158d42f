//! The meaning of words.

use std::time::Duration;

use adit_config::{
    AddressPreference, Hop, HopKind, InterceptMethod, ListenerConfig, ListenerKind, ListenerLimits,
    Plan, PrivateAccess, ProxyListener, RejectPolicy, RestartPolicy, RouteOption, ServerHop,
    SsRole, SsServer, Stage, TransparentListener, UdpTransport, WarningKind,
};

use crate::shortcuts::{shown, words};
use adit_config::text::MemorySources;

pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

fn listen(url: &str) -> ListenerConfig {
    let mut plan = words(&[url]).unwrap_or_else(|problems| panic!("{problems:?}"));
    plan.routes.remove(0).listen.remove(0)
}

fn proxy(url: &str) -> ProxyListener {
    match listen(url).kind {
        ListenerKind::Proxy(proxy) => proxy,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn server(url: &str) -> SsServer {
    match listen(url).kind {
        ListenerKind::Shadowsocks(server) => server,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn hop(url: &str) -> ServerHop {
    let mut plan = words(&["mixed://127.0.0.1:0", url]).expect("a plan");
    match plan.routes.remove(0).via.stages.remove(0) {
        Stage::Single(Hop::Server(hop)) => hop,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn kinds(plan: &Plan) -> Vec<WarningKind> {
    plan.warnings.iter().map(|warning| warning.kind).collect()
}

#[test]
fn a_proxy_has_the_documented_defaults() {
    let listen = listen("mixed://127.0.0.1:1080");
    assert_eq!(listen.addr.to_string(), "127.0.0.1:1080");
    let seconds = Duration::from_secs;
    let limits = ListenerLimits {
        handshake: seconds(10),
        dial: seconds(10),
        idle: seconds(3600),
        half_close_idle: seconds(120),
        udp_idle: seconds(300),
        max_connections: None,
    };
    assert_eq!(listen.limits, limits);
    assert_eq!(listen.access.private, PrivateAccess::All);
    assert_eq!(listen.prefer, AddressPreference::Auto);
    let expected = ProxyListener {
        socks5: true,
        socks4: true,
        http: true,
        users: Vec::new(),
        users_file: None,
        has_url_user: false,
        fleet_users: false,
        udp: true,
        bind: false,
        udp_advertise: None,
        udp_reassembly: false,
        full_cone: false,
        hide_bind: false,
        verbose_errors: false,
    };
    assert_eq!(listen.kind, ListenerKind::Proxy(expected));
}

#[test]
fn every_key_of_a_proxy_is_read() {
    let url = "mixed://u:p@:1080?udp=false&bind=true&udp_advertise=192.0.2.1&udp_reassembly=true\
        &hide_bind=false&verbose_errors=true&handshake=1s&dial=2s&idle=3s&half_close_idle=4s\
        &udp_idle=5s&max_connections=6&prefer=v6only&allow_private=10.0.0.0/8&full_cone=true";
    let listen = listen(url);
    let limits = listen.limits;
    let times = [
        limits.handshake,
        limits.dial,
        limits.idle,
        limits.half_close_idle,
        limits.udp_idle,
    ];
    assert_eq!(times.map(|time| time.as_secs()), [1, 2, 3, 4, 5]);
    assert_eq!(limits.max_connections, Some(6));
    assert_eq!(listen.prefer, AddressPreference::V6Only);
    assert_eq!(
        listen.access.private,
        PrivateAccess::Nets(vec!["10.0.0.0/8".parse().unwrap()])
    );
    let ListenerKind::Proxy(proxy) = listen.kind else {
        panic!("no proxy");
    };
    assert!(!proxy.udp && proxy.bind && proxy.udp_reassembly && proxy.verbose_errors);
    assert!(!proxy.hide_bind && proxy.full_cone);
    assert_eq!(proxy.udp_advertise, Some("192.0.2.1".parse().unwrap()));
    assert_eq!(proxy.users[0].user, "u");
    assert_eq!(proxy.users[0].password.expose(), "p");
}

#[test]
fn languages_follow_the_scheme_and_the_users() {
    let spoken = |url| {
        let proxy = proxy(url);
        (proxy.socks5, proxy.socks4, proxy.http, proxy.udp)
    };
    assert_eq!(spoken("mixed://127.0.0.1:1"), (true, true, true, true));
    assert_eq!(spoken("mixed://u:p@127.0.0.1:1"), (true, false, true, true));
    assert_eq!(
        spoken("mixed://127.0.0.1:1?socks4=false"),
        (true, false, true, true)
    );
    assert_eq!(spoken("socks5://127.0.0.1:1"), (true, true, false, true));
    assert_eq!(spoken("http://127.0.0.1:1"), (false, false, true, false));
}

#[test]
fn private_destinations_are_for_loopback_without_a_key() {
    let ss = format!("ss://2022-blake3-aes-128-gcm:{KEY}@127.0.0.1:1");
    for (url, private) in [
        ("mixed://127.0.0.1:1", PrivateAccess::All),
        ("mixed://[::1]:1", PrivateAccess::All),
        ("mixed://localhost:1", PrivateAccess::All),
        ("mixed://u:p@:1", PrivateAccess::Deny),
        ("mixed://u:p@0.0.0.0:1", PrivateAccess::Deny),
        ("mixed://u:p@box.lan:1", PrivateAccess::Deny),
        (
            "mixed://127.0.0.1:1?allow_private=none",
            PrivateAccess::Deny,
        ),
        ("mixed://u:p@:1?allow_private=all", PrivateAccess::All),
        (&ss, PrivateAccess::Deny),
        ("tcp://:1/10.0.0.1:1", PrivateAccess::All),
    ] {
        assert_eq!(listen(url).access.private, private, "{url}");
    }
    assert!(proxy("mixed://u:p@:1").hide_bind);
}

#[test]
fn a_shadowsocks_server_is_read() {
    let url = format!("ss://2022-blake3-aes-128-gcm:{KEY}@:8388");
    let plain = server(&url);
    assert_eq!(plain.method.name(), "2022-blake3-aes-128-gcm");
    assert_eq!(plain.role, SsRole::Single(KEY.into()));
    assert_eq!((&plain.plugin, &plain.state), (&None, &None));
    assert!(plain.tcp && plain.udp);
    assert_eq!(
        (plain.reject, plain.restart),
        (RejectPolicy::Drain, RestartPolicy::Strict)
    );
    let other = server(&format!(
        "{url}?tcp=false&reject=forward:a.example:443&restart=lenient"
    ));
    assert!(!other.tcp && other.udp);
    assert_eq!(
        other.reject,
        RejectPolicy::Forward("a.example:443".parse().unwrap())
    );
    assert_eq!(other.restart, RestartPolicy::Lenient);
    // Padding can be missing, and every character can be percent-encoded.
    for key in ["AAECAwQFBgcICQoLDA0ODw", "AAECAwQFBgcICQoLDA0ODw%3D%3D"] {
        server(&format!("ss://2022-blake3-aes-128-gcm:{key}@:8388"));
    }
}

#[test]
fn hops_are_read() {
    let seconds = Duration::from_secs;
    let socks = hop("socks5://u:p@h:1?udp=false&dial=3s");
    assert_eq!(
        (socks.server.to_string().as_str(), socks.dial),
        ("h:1", seconds(3))
    );
    assert!(matches!(
        socks.kind,
        HopKind::Socks5 {
            login: Some(_),
            udp: false
        }
    ));
    assert!(matches!(
        hop("socks5://h:1").kind,
        HopKind::Socks5 {
            login: None,
            udp: true
        }
    ));
    assert!(matches!(hop("socks4a://me@h:1").kind, HopKind::Socks4a { user } if user == "me"));
    assert!(matches!(
        hop("http://u:p@h:1").kind,
        HopKind::Http { login: Some(_) }
    ));
    let ss = hop(&format!(
        "ss://2022-blake3-aes-128-gcm:{KEY}@h:1?first_wait=0ms"
    ));
    let HopKind::Shadowsocks {
        udp: UdpTransport::Native,
        first_wait,
        plugin: None,
        ..
    } = ss.kind
    else {
        panic!("{ss:?}");
    };
    assert_eq!((first_wait, ss.dial), (Duration::ZERO, seconds(10)));
}

#[test]
fn forwarders_are_read() {
    for (url, tcp, udp) in [
        ("tcp://:53/8.8.8.8:53", true, false),
        ("udp://:53/8.8.8.8:53", false, true),
        ("tcp+udp://:53/8.8.8.8:53", true, true),
    ] {
        let listen = listen(url);
        assert_eq!(listen.to_string(), url);
        let ListenerKind::Forward(forward) = listen.kind else {
            panic!("{url}");
        };
        assert_eq!((forward.tcp, forward.udp), (tcp, udp));
        assert_eq!(forward.target.unwrap().to_string(), "8.8.8.8:53");
        assert_eq!(forward.first_wait, Duration::from_millis(250));
    }
}

#[test]
fn transparent_listeners_are_read() {
    use InterceptMethod::{Redirect, Tproxy};
    for (url, method, (tcp, udp), full_cone) in [
        ("redir://127.0.0.1:1", Redirect, (true, false), false),
        ("tproxy://[::1]:1", Tproxy, (true, true), false),
        ("tproxy://[::1]:1?udp=false", Tproxy, (true, false), false),
        ("tproxy://[::1]:1?tcp=false", Tproxy, (false, true), false),
        (
            "tproxy://[::1]:1?full_cone=true",
            Tproxy,
            (true, true),
            true,
        ),
    ] {
        let listen = listen(url);
        assert!(url.starts_with(&listen.to_string()), "{url}");
        let expected = TransparentListener {
            method,
            tcp,
            udp,
            full_cone,
        };
        assert_eq!(listen.kind, ListenerKind::Transparent(expected), "{url}");
    }
}

#[test]
fn a_transparent_listener_on_loopback_opens_nothing_to_other_machines() {
    for (url, private) in [
        // `REDIRECT` reaches loopback from this machine only, `TPROXY` from everywhere.
        ("redir://127.0.0.1:1", PrivateAccess::All),
        (
            "redir://127.0.0.1:1?allow_private=none",
            PrivateAccess::Deny,
        ),
        ("redir://:1?allow_open_proxy=true", PrivateAccess::Deny),
        ("tproxy://127.0.0.1:1", PrivateAccess::Deny),
        ("tproxy://127.0.0.1:1?allow_private=all", PrivateAccess::All),
    ] {
        assert_eq!(listen(url).access.private, private, "{url}");
    }
}

#[test]
fn chains_end_directly_or_nowhere() {
    let hops = |chain: &[&str]| {
        let all: Vec<&str> = [&["mixed://127.0.0.1:0"], chain].concat();
        words(&all).unwrap().routes.remove(0).via.stages
    };
    assert!(hops(&[]).is_empty());
    assert!(hops(&["direct://"]).is_empty());
    assert_eq!(hops(&["reject://"]), [Stage::Single(Hop::Reject)]);
    assert_eq!(hops(&["http://a:1", "http://b:1"]).len(), 2);
}

#[test]
fn options_build_routes() {
    let listen = |text: &str| RouteOption::Listen(text.to_owned());
    let forward = |text: &str| RouteOption::Forward(text.to_owned());
    let items = [
        listen("socks5://127.0.0.1:1#home"),
        listen("http://127.0.0.1:2"),
        forward("http://a:1"),
        forward("http://b:1"),
        listen("http://127.0.0.1:3#home"),
    ];
    let plan = Plan::from_args_with(&items, &MemorySources::default()).unwrap();
    let shape: Vec<_> = plan
        .routes
        .iter()
        .map(|route| {
            (
                route.name.as_str(),
                route.listen.len(),
                route.via.stages.len(),
            )
        })
        .collect();
    assert_eq!(shape, [("home", 2, 2), ("route2", 1, 0)]);
    let late = [forward("http://a:1"), listen("http://127.0.0.1:3")];
    assert_eq!(
        shown(Plan::from_args_with(&late, &MemorySources::default())),
        "error: a hop before the first listener\n --> command line, column 1\n  | http://a:1\n  | ^^^^\n  \
         = help: `-L URL` starts a route, `-F URL` adds a hop to it"
    );
}

#[test]
fn udp_that_cannot_pass_is_said() {
    let warned = |first: &str, hop: &str| kinds(&words(&[first, hop]).unwrap());
    // It was not requested.
    assert_eq!(warned("mixed://127.0.0.1:0", "http://h:1"), []);
    assert_eq!(
        warned("mixed://127.0.0.1:0?udp=true", "http://h:1"),
        [WarningKind::UdpStops]
    );
    let ss = "ss://aes-128-gcm:$K@127.0.0.1:0?allow_private=all";
    let cabinet = MemorySources::default().with_variable("K", "pw");
    let plan = |words: &[&str]| crate::shortcuts::words_with(words, &cabinet).unwrap();
    assert_eq!(
        kinds(&plan(&[ss, "socks5://h:1?udp=false"])),
        [WarningKind::UdpStops]
    );
    assert_eq!(
        kinds(&plan(&[&format!("{ss}&udp=false"), "http://h:1"])),
        []
    );
    assert_eq!(kinds(&plan(&["udp://:0/a:1", "socks5://h:1"])), []);
    let tproxy = "tproxy://127.0.0.1:1";
    assert_eq!(warned(tproxy, "http://h:1"), [WarningKind::UdpStops]);
    assert_eq!(warned(&format!("{tproxy}?udp=false"), "http://h:1"), []);
    assert_eq!(warned("redir://127.0.0.1:1", "http://h:1"), []);
}

#[test]
fn a_chain_that_others_use_is_told_what_is_not_checked() {
    let server = format!("ss://2022-blake3-aes-128-gcm:{KEY}@127.0.0.1:8388");
    let warned = |listen: &str, via: &[&str]| {
        let all: Vec<&str> = [listen].into_iter().chain(via.iter().copied()).collect();
        let plan = words(&all).unwrap_or_else(|problems| panic!("{problems:?}"));
        kinds(&plan).contains(&WarningKind::UncheckedNames)
    };
    let hop = "socks5://127.0.0.1:1085";
    assert!(warned(&server, &[hop]));
    assert!(warned(
        &format!("{server}?allow_private=10.0.0.0/8"),
        &[hop]
    ));
    assert!(warned("mixed://u:p@:1080", &[hop]));
    assert!(!warned(&server, &[]));
    assert!(!warned(&server, &["direct://"]));
    assert!(!warned(&format!("{server}?allow_private=all"), &[hop]));
    assert!(!warned("mixed://127.0.0.1:1080", &[hop]));
    assert!(!warned("tcp://:80/10.0.0.1:80", &[hop]));
}

#[test]
fn what_is_in_clear_is_said() {
    let none = |words: &[&str]| {
        let mut kinds = kinds(&crate::shortcuts::words(words).unwrap());
        kinds.retain(|kind| *kind != WarningKind::LiteralSecret);
        kinds
    };
    assert_eq!(none(&["ss://none:@:1"]), [WarningKind::NoEncryption]);
    assert_eq!(none(&["ss://none:@127.0.0.1:1"]), []);
    assert_eq!(
        none(&["mixed://127.0.0.1:0", "ss://none:@h:1"]),
        [WarningKind::NoEncryption]
    );
    assert_eq!(none(&["mixed://127.0.0.1:0", "ss://none:@localhost:1"]), []);
    // A legacy method: one warning per endpoint, wherever it is.
    assert_eq!(none(&["ss://rc4-md5:p@:1"]), [WarningKind::LegacyCipher]);
    assert_eq!(
        none(&[
            "ss://AES-256-CFB:p@127.0.0.1:0?allow_private=all",
            "ss://table:p@h:1"
        ]),
        [WarningKind::LegacyCipher; 2]
    );
    assert_eq!(none(&["http://u:p@:1"]), [WarningKind::ClearPassword]);
    assert_eq!(none(&["http://u:p@127.0.0.1:1"]), []);
}

#[test]
fn a_legacy_cipher_is_said_to_be_broken() {
    let plan = words(&["ss://aes-256-cfb:p@127.0.0.1:1"]).unwrap();
    let legacy = |w: &&adit_config::Warning| w.kind == WarningKind::LegacyCipher;
    assert_eq!(
        plan.warnings.iter().find(legacy).unwrap().to_string(),
        "\
warning: the cipher `aes-256-cfb` is broken
 --> command line, column 6
  | ss://aes-256-cfb:***@127.0.0.1:1
  |      ^^^^^^^^^^^ everyone on the path can read and change the traffic
  = help: nothing is authenticated: an attacker can replay recorded traffic to the server with a \
different target address and receive it decrypted (redirect attack)
  = help: use it only for peers that support nothing better; for others, `adit keygen 2022-blake3-aes-128-gcm` \
makes a key for a secure method"
    );
}

#[test]
fn one_link_serves_on_both_ends() {
    let link = format!("ss://2022-blake3-aes-128-gcm:{KEY}@h.example:1?reject=reset&first_wait=1s");
    let plan = words(&["mixed://127.0.0.1:0", &link]).unwrap();
    assert_eq!(
        kinds(&plan),
        [WarningKind::IgnoredKey, WarningKind::LiteralSecret]
    );
    assert!(words(&[&link]).is_ok());
}

#[test]
fn ports_clash_only_where_they_overlap() {
    for (a, b, clash) in [
        ("tcp://:53/a:1", "udp://:53/a:1", false),
        ("tcp://:53/a:1", "tcp+udp://:53/a:1", true),
        ("tcp://0.0.0.0:53/a:1", "tcp://127.0.0.1:53/a:1", true),
        ("tcp://0.0.0.0:53/a:1", "tcp://[::1]:53/a:1", false),
        ("tcp://:53/a:1", "tcp://[::1]:53/a:1", true),
        ("tcp://127.0.0.1:53/a:1", "tcp://127.0.0.2:53/a:1", false),
        ("tcp://127.0.0.1:0/a:1", "tcp://127.0.0.1:0/a:1", false),
        ("udp://127.0.0.1:53/a:1", "mixed://127.0.0.1:53", false),
        ("tproxy://127.0.0.1:9", "udp://127.0.0.1:9/a:1", true),
        ("redir://127.0.0.1:9", "udp://127.0.0.1:9/a:1", false),
        ("redir://127.0.0.1:9", "tproxy://127.0.0.1:9", true),
    ] {
        let items = [RouteOption::Listen(a.into()), RouteOption::Listen(b.into())];
        let plan = Plan::from_args_with(&items, &MemorySources::default());
        assert_eq!(plan.is_err(), clash, "{a} {b}");
    }
}
