//! Configurations and subscriptions of ShadowsocksR.

use adit_config::text::MemorySources;
use adit_config::{Hop, HopKind, ListenerKind, Plan, Stage, UdpTransport, WarningKind};
use adit_convert::{ConvertOptions, Format, Role, convert};

/// The file that comes out, and the notes.
fn converted(text: &str, name: &str, role: Option<Role>) -> (String, String, Format) {
    let wish = ConvertOptions {
        role,
        ..ConvertOptions::default()
    };
    let made = convert(text, name, &wish, &MemorySources::default());
    let made = made.unwrap_or_else(|why| panic!("{why:?}"));
    let notes: Vec<String> = made.notes.iter().map(ToString::to_string).collect();
    (made.toml.to_string(), notes.join("\n"), made.format)
}

fn plan(toml: &str) -> Plan {
    Plan::from_toml(toml, "adit.toml").unwrap_or_else(|why| panic!("{toml}\n{why:?}"))
}

/// The example that servers come with.
const SERVER: &str = r#"{
    "server": "0.0.0.0", "server_ipv6": "::", "server_port": 8388,
    "local_address": "127.0.0.1", "local_port": 1080,
    "password": "m", "method": "aes-128-ctr",
    "protocol": "auth_aes128_md5", "protocol_param": "64#42:userpw",
    "obfs": "tls1.2_ticket_auth_compatible", "obfs_param": "",
    "speed_limit_per_con": 0, "speed_limit_per_user": 0,
    "additional_ports": {}, "additional_ports_only": false,
    "timeout": 120, "udp_timeout": 60, "dns_ipv6": false,
    "connect_verbose_info": 0, "redirect": ["*:8388#127.0.0.1:443", "w.com"], "fast_open": false
}"#;

#[test]
fn a_server() {
    let (toml, notes, format) = converted(SERVER, "user-config.json", None);
    assert_eq!(format, Format::Ssr);
    assert!(
        notes.contains("as the configuration of a server"),
        "{notes}"
    );
    let plan = plan(&toml);
    let listen = &plan.routes[0].listen;
    assert_eq!(listen.len(), 1, "both families are one listener: {toml}");
    assert_eq!(
        (listen[0].addr.host.as_ref(), listen[0].addr.port),
        (None, 8388)
    );
    let ListenerKind::ShadowsocksR(server) = &listen[0].kind else {
        panic!("{toml}");
    };
    assert_eq!(server.protocol.to_string(), "auth_aes128_md5");
    assert_eq!(server.protocol_param.expose(), "64#42:userpw");
    assert_eq!(server.obfs.name(), "tls1.2_ticket_auth");
    assert_eq!(server.redirect.len(), 2);
    assert!(server.tcp && server.udp);
    assert_eq!(listen[0].limits.idle.as_secs(), 120);
}

#[test]
fn a_client() {
    let text = SERVER.replace("0.0.0.0", "h.example").replace("64#", "");
    let (toml, notes, _) = converted(&text, "config.json", None);
    assert!(
        notes.contains("as the configuration of a client"),
        "{notes}"
    );
    let plan = plan(&toml);
    let Stage::Single(Hop::Server(hop)) = &plan.routes[0].via.stages[0] else {
        panic!("{toml}");
    };
    assert_eq!(hop.server.to_string(), "h.example:8388");
    let HopKind::ShadowsocksR(ssr) = &hop.kind else {
        panic!("{toml}");
    };
    assert_eq!(ssr.protocol_param.expose(), "42:userpw");
    assert!(ssr.udp == UdpTransport::Native && plan.routes[0].listen[0].addr.port == 1080);
    assert!(
        plan.warnings
            .iter()
            .any(|w| w.kind == WarningKind::LegacyCipher)
    );
}

#[test]
fn ports_with_their_own() {
    let text = r#"{"server": "0.0.0.0", "method": "none", "protocol": "auth_chain_a", "obfs": "plain",
        "port_password": {"1001": "a", "1002": ["b", "http_simple", "origin"],
        "1003": {"password": "c", "method": "rc4-md5", "protocol": "auth_sha1_v4", "obfs_param": "x.com"}}}"#;
    let (toml, ..) = converted(text, "mudb.json", Some(Role::Server));
    let plan = plan(&toml);
    let all: Vec<String> = plan.routes[0]
        .listen
        .iter()
        .map(|listen| match &listen.kind {
            ListenerKind::ShadowsocksR(s) => format!(
                "{} {} {} {} {}",
                listen.addr.port,
                s.method,
                s.protocol,
                s.obfs,
                s.password.expose()
            ),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        all,
        [
            "1001 none auth_chain_a plain a",
            "1002 none origin http_simple b",
            "1003 rc4-md5 auth_sha1_v4 plain c"
        ]
    );
}

#[test]
fn the_window_programs_file() {
    let text = r#"{"configs": [
        {"remarks": "one", "server": "a.example", "server_port": 1, "server_udp_port": 0,
         "password": "p", "method": "aes-256-cfb", "protocol": "auth_sha1_v4", "protocolparam": "",
         "obfs": "http_simple", "obfsparam": "x.com", "group": "g", "enable": true, "udp_over_tcp": false},
        {"remarks": "off", "server": "b.example", "server_port": 2, "password": "p",
         "method": "aes-256-cfb", "protocol": "origin", "obfs": "plain", "enable": false},
        {"remarks": "odd", "server": "c.example", "server_port": 3, "password": "p",
         "method": "aes-256-cfb", "protocol": "auth_akarin_rand", "obfs": "plain"}],
        "index": 0, "random": true, "localPort": 1086, "shareOverLan": false, "TTL": 0}"#;
    let (toml, notes, format) = converted(text, "gui-config.json", None);
    assert_eq!(format, Format::Ssr);
    assert!(
        notes.contains("disabled") && notes.contains("`auth_akarin_rand`"),
        "{notes}"
    );
    let plan = plan(&toml);
    assert_eq!(plan.routes[0].listen[0].addr.port, 1086);
    let Stage::Single(Hop::Server(hop)) = &plan.routes[0].via.stages[0] else {
        panic!("{toml}");
    };
    assert_eq!(hop.server.to_string(), "a.example:1");
    // An address in the place of the name is no address of this machine.
    for left in ["", r#""localPort": 1086, "#] {
        let text = text
            .replace("a.example", "192.0.2.7")
            .replace(r#""localPort": 1086, "#, left);
        let (toml, notes, _) = converted(&text, "gui-config.json", None);
        assert!(notes.contains("configuration of a client"), "{notes}");
        assert!(
            toml.contains("via = [") && toml.contains("192.0.2.7"),
            "{toml}"
        );
    }
    // The file of the other window program has the same name, and the same list.
    let text = r#"{"version": "4.4.1.0", "configs": [{"server": "192.0.2.7", "server_port": 8388,
        "password": "p", "method": "aes-256-gcm", "plugin": "", "plugin_opts": "", "plugin_args": "",
        "remarks": "one", "timeout": 5}], "index": 0, "enabled": true, "shareOverLan": false, "localPort": 1087}"#;
    let (toml, notes, format) = converted(text, "gui-config.json", None);
    assert_eq!(format, Format::Libev, "{notes}");
    let plan = self::plan(&toml);
    assert_eq!(plan.routes[0].listen[0].addr.port, 1087, "{toml}");
}

/// A subscription: base64 of links, some of other kinds.
#[test]
fn a_subscription() {
    const LINK: &str = "ssr://MTI3LjAuMC4xOjEyMzQ6YXV0aF9hZXMxMjhfbWQ1OmFlcy0xMjgtY2ZiOnRsczEuMl90aWNrZXRfYXV0aDpZV0ZoWW1KaS8_b2Jmc3BhcmFtPVluSmxZV3QzWVRFeExtMXZaUQ";
    let text = format!("MAX=1\n{LINK}\nss://aes-256-gcm:p@h.example:1#n\nvmess://x\n");
    let folded = "TUFYPTEKc3NyOi8vTVRJM0xqQXVNQzR4T2pFeU16UTZZWFYwYUY5aFpYTXhNamhmYldRMU9tRmxjeTB4TWpndFkyWmlPblJzY3pFdU1sOTBhV05yWlhSZllYVjBhRHBaVjBab1dXMUthUzhfYjJKbWMzQmhjbUZ0UFZsdVNteFpWM1F6V1ZSRmVFeHRNWFphVVEK";
    for (text, hops) in [(text.as_str(), 2), (LINK, 1), (folded, 1)] {
        let (toml, notes, format) = converted(text, "sub.txt", None);
        assert_eq!(format, Format::Links);
        let plan = plan(&toml);
        assert_eq!(plan.routes[0].via.stages[0].hops().len(), hops, "{toml}");
        if hops == 2 {
            assert!(
                notes.contains("random choice") && notes.contains("left out"),
                "{notes}"
            );
        }
    }
}

/// A link from elsewhere names no file of this machine, and unknown fields are reported.
#[test]
fn what_a_link_must_not_say() {
    let convert = |text: &str| {
        let made = convert(
            text,
            "x.json",
            &ConvertOptions::default(),
            &MemorySources::default(),
        );
        made.map(|made| made.toml.to_string())
    };
    for (text, told) in [
        (
            r#"{"server": "h.example", "server_port": 1, "local_port": 1, "password": "p", "method": "none",
                "protocol": "auth_chain_a", "protocol_param": "@/etc/passwd", "obfs": ""}"#,
            "begins with `@`",
        ),
        (
            r#"{"server": "h.example", "server_port": 1, "local_port": 1, "password": "p",
                "method": "aes-256-gcm", "protocol": "origin", "obfs": "plain"}"#,
            "not one of ShadowsocksR",
        ),
        (
            r#"{"server": "0.0.0.0", "server_port": 1, "password": "p", "method": "none",
                "obfs": "plain", "redirect": "a.*#b"}"#,
            "must be a plain text",
        ),
    ] {
        let Err(problems) = convert(text) else {
            panic!("{text}");
        };
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.join("\n").contains(told), "{all:?}");
    }
}
