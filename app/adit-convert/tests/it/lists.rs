//! Links, subscriptions and access keys; and any text at all.

use adit_config::text::MemorySources;
use adit_config::{Secret, Stage};
use adit_convert::sip008::{self, Plugin, Server};
use adit_convert::{AllowedPlugins, ConvertOptions, Format, MAX_SERVERS, Role};
use base64::Engine;
use proptest::prelude::*;

use crate::conversion::{body, convert, convert_as, notes, plan, problems};

const LINKS: &str = "\
# mine
ss://YWVzLTI1Ni1nY206cGFzcw@a.example:8388#one
vmess://eyJ2IjoiMiJ9
ss://aes-128-gcm:secret3@b.example:8389/?plugin=obfs-local%3Bobfs%3Dhttp#two
ss://rc4-md6:secret4@c.example:8390
ss://aes-128-gcm:@/etc/passwd@d.example:1

ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@[2001:db8::1]:8391
";

#[test]
fn a_list_of_links_is_a_group() {
    let folded = base64::engine::general_purpose::STANDARD.encode(LINKS);
    for text in [LINKS, &folded] {
        let converted = convert_as(text, None, &MemorySources::default());
        // The name ends with `.json`, and so it is read as that.
        assert!(converted.is_err());
        let wish = ConvertOptions::default();
        let converted =
            adit_convert::convert(text, "links.txt", &wish, &MemorySources::default()).unwrap();
        assert_eq!(converted.format, Format::Links);
        let plan = plan(&converted);
        assert!(matches!(&plan.routes[0].via.stages[..], [Stage::Group(hops)] if hops.len() == 2));
        let notes = notes(&converted).join("\n");
        for said in [
            "`line 3`: left out: not an `ss://` link",
            "`line 4`: left out: it starts the program `obfs-local`",
            "`line 5`: left out: method `rc4-md6`",
            "`line 6`: left out: a link from elsewhere cannot name a file",
        ] {
            assert!(notes.contains(said), "{said}\n{notes}");
        }
        assert!(
            !notes.contains("secret") && !notes.contains("passwd"),
            "{notes}"
        );
        let wish = ConvertOptions {
            plugins: AllowedPlugins::only(vec!["obfs-local".to_owned()]),
            ..wish
        };
        let allowed =
            adit_convert::convert(text, "links.txt", &wish, &MemorySources::default()).unwrap();
        assert!(
            allowed.toml.contains("plugin=obfs-local%3Bobfs%3Dhttp"),
            "{}",
            &*allowed.toml
        );
    }
}

#[test]
fn access_keys_of_outline_are_read() {
    let wish = ConvertOptions::default();
    let read =
        |text: &str| adit_convert::convert(text, "key.txt", &wish, &MemorySources::default());
    let key =
        "ss://Y2hhY2hhMjAtaWV0Zi1wb2x5MTMwNTpwYXNz@192.0.2.1:31337/?outline=1&prefix=%16%03\n";
    let converted = read(key).unwrap();
    assert_eq!(converted.format, Format::Outline);
    assert!(
        converted
            .toml
            .contains("ss://chacha20-ietf-poly1305:pass@192.0.2.1:31337\"]")
    );
    assert!(notes(&converted)[0].contains("prefix"));
    plan(&converted);
    let said = problems(read("ssconf://keys.example/secret-path#My"));
    assert!(
        said.contains("fetch it over HTTPS from `keys.example`"),
        "{said}"
    );
    assert!(!said.contains("secret-path"), "{said}");
    // What stands behind such an address.
    let converted = convert(
        r#"{"server":"192.0.2.1","server_port":443,"password":"p","method":"chacha20-ietf-poly1305","prefix":"\u0016"}"#,
    );
    assert_eq!(converted.format, Format::Outline);
    assert!(body(&converted).starts_with("[route.main]\nlisten = [\"mixed://127.0.0.1:1080\"]"));
    let converted = convert(r#"["ss://aes-128-gcm:p@a.example:1"]"#);
    plan(&converted);
}

const SIP008: &str = r#"{
  "version": 1,
  "servers": [
    {"id":"27b8a625-4f4b-4428-9f0f-8a2317db7c79","remarks":"Name","server":"example.com","server_port":8388,
     "password":"example","method":"chacha20-ietf-poly1305","plugin":"","group":"x"},
    {"id":"7842c068-c667-41f2-8f7d-04feece3cb67","remarks":"Tōkyō","server":"2001:db8::1","server_port":8389,
     "password":"example","method":"aes-256-gcm","plugin":"obfs-local","plugin_opts":"obfs=tls"},
    {"id":"x","remarks":"y","server":"z.example","server_port":0,"password":"p","method":"aes-256-gcm"},
    {"id":"x","remarks":"y","server":"z.example","server_port":1,"password":"p","method":"rot13"},
    {"id":"x","remarks":"y"}
  ],
  "bytes_used": 274877906944,
  "bytes_remaining": 824633720832
}"#;

#[test]
fn a_subscription_is_read_and_written() {
    let read = sip008::read_subscription(SIP008, &AllowedPlugins::none()).unwrap();
    assert_eq!(read.servers.len(), 1);
    assert_eq!(read.bytes_used, Some(274_877_906_944));
    assert_eq!(read.bytes_remaining, Some(824_633_720_832));
    let refused: Vec<String> = read.refused.iter().map(|p| p.title.clone()).collect();
    let refused = refused.join("\n");
    for said in [
        "`servers[1]`: it starts the program `obfs-local`",
        "`servers[2].server_port` is not a port",
        "`servers[3]`: method `rot13` is not known",
        "`servers[4].server` is missing",
    ] {
        assert!(refused.contains(said), "{said}\n{refused}");
    }
    let allowed = AllowedPlugins::only(vec!["obfs-local".to_owned()]);
    let read = sip008::read_subscription(SIP008, &allowed).unwrap();
    assert_eq!(
        read.servers[1],
        Server {
            id: "7842c068-c667-41f2-8f7d-04feece3cb67".into(),
            remarks: "Tōkyō".into(),
            server: "[2001:db8::1]:1".parse::<adit_wire::Target>().unwrap().host,
            server_port: 8389,
            password: Secret::from("example"),
            method: "aes-256-gcm".into(),
            plugin: Some(Plugin {
                name: "obfs-local".into(),
                options: "obfs=tls".into(),
            }),
        }
    );
    let written = sip008::write_subscription(&read.servers);
    let again = sip008::read_subscription(&written, &allowed).unwrap();
    assert_eq!(again.servers, read.servers);
    assert!(again.refused.is_empty() && again.bytes_used.is_none());
    assert!(!format!("{again:?}").contains("\"example\""));
    // For others it is the shape of the specification.
    let tree: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(tree["version"], 1);
    assert_eq!(tree["servers"][1]["server"], "2001:db8::1");
    assert_eq!(tree["servers"][1]["plugin_opts"], "obfs=tls");
    assert!(tree["servers"][0].get("plugin").is_none());
}

#[test]
fn wrong_subscriptions_are_refused() {
    let none = AllowedPlugins::none();
    for (text, said) in [
        ("", "not JSON"),
        ("[]", "is not an object"),
        ("{\"version\":1}", "`servers` is missing"),
        ("{\"version\":2,\"servers\":[]}", "`version` is 2"),
        ("{version:1,servers:[]}", "not JSON"),
        ("{\"version\":1,\"servers\":{}}", "`servers` is not a list"),
    ] {
        let why = sip008::read_subscription(text, &none)
            .unwrap_err()
            .to_string();
        assert!(why.contains(said), "{text}: {why}");
    }
    assert!(
        sip008::read_subscription("{\"servers\":[]}", &none)
            .unwrap()
            .servers
            .is_empty()
    );
    let many = |n: usize| format!("{{\"version\":1,\"servers\":[{}1]}}", "1,".repeat(n));
    let why = sip008::read_subscription(&many(MAX_SERVERS), &none).unwrap_err();
    assert!(why.title.contains("more than 10000 servers"), "{why}");
    assert!(
        sip008::read_subscription(&many(MAX_SERVERS - 1), &none)
            .unwrap()
            .servers
            .is_empty()
    );
    let long = " ".repeat(sip008::MAX_BODY + 1);
    assert!(
        sip008::read_subscription(&long, &none)
            .unwrap_err()
            .title
            .contains("bytes")
    );
}

#[test]
fn a_subscription_becomes_a_route() {
    let converted = convert(SIP008);
    assert_eq!(converted.format, Format::Sip008);
    assert_eq!(
        body(&converted),
        "\
[route.main]
listen = [\"mixed://127.0.0.1:1080\"]
via = [\"ss://chacha20-ietf-poly1305:example@example.com:8388#Name\"]
"
    );
    plan(&converted);
    let notes = notes(&converted).join("\n");
    for said in [
        "`servers[1]`: left out: it starts the program `obfs-local`",
        "`servers[2]`: left out: `servers[2].server_port` is not a port",
        "`servers[3]`: left out: method `rot13`",
        "`servers[4]`: left out: `servers[4].server` is missing",
    ] {
        assert!(notes.contains(said), "{said}\n{notes}");
    }
    let old = convert(
        r#"[{"server":"a.example","server_port":1,"password":"p","method":"aes-128-gcm"}]"#,
    );
    assert_eq!(old.format, Format::Sip008);
    plan(&old);
}

#[test]
fn a_subscription_is_no_server() {
    let said = problems(convert_as(
        SIP008,
        Some(Role::Server),
        &MemorySources::default(),
    ));
    assert!(said.contains("a subscription is for clients"), "{said}");
    let said = problems(
        adit_convert::convert(
            &" ".repeat(17 << 20),
            "a.json",
            &ConvertOptions::default(),
            &MemorySources::default(),
        )
        .map(|_| unreachable!()),
    );
    assert!(said.contains("bytes"), "{said}");
}

#[test]
fn the_number_of_servers_is_bounded_in_every_format() {
    let server = r#"{"server":"a.example","server_port":1,"password":"p","method":"aes-128-gcm"}"#;
    let list = |n: usize| vec![server; n].join(",");
    let links = |n: usize| "ss://aes-128-gcm:p@a.example:1\n".repeat(n);
    let hosts = |n: usize| vec!["\"a.example\""; n].join(",");
    let texts = |n: usize| {
        [
            format!("{{\"local_port\":1,\"servers\":[{}]}}", list(n)),
            format!("{{\"version\":1,\"servers\":[{}]}}", list(n)),
            format!(
                "{{\"local_port\":1,\"server\":[{}],\"server_port\":1,\"password\":\"p\",\"method\":\"aes-128-gcm\"}}",
                hosts(n)
            ),
            links(n),
        ]
    };
    let read = |text: &str| {
        adit_convert::convert(
            text,
            "a",
            &ConvertOptions::default(),
            &MemorySources::default(),
        )
    };
    for text in texts(MAX_SERVERS) {
        let converted = read(&text).unwrap();
        assert_eq!(converted.toml.matches("ss://").count(), MAX_SERVERS);
    }
    for text in texts(MAX_SERVERS + 1) {
        let said = problems(read(&text));
        assert!(said.contains("more than 10000 servers"), "{said}");
    }
}

#[test]
fn rules_do_not_multiply_without_bounds() {
    let servers: Vec<String> = (0..5000)
        .map(|i| {
            format!(
                r#"{{"name":"s","protocol":"socks5","listen":"127.0.0.1:{}","enableTCP":true}}"#,
                i + 1
            )
        })
        .collect();
    let names = vec!["\"a.example\""; 5000].join(",");
    let text = format!(
        r#"{{"servers":[{}],"clients":[{{"name":"d","protocol":"direct","enableTCP":true}}],
            "router":{{"routes":[{{"name":"r","toDomains":[{names}],"client":"d"}}]}}}}"#,
        servers.join(",")
    );
    let said = problems(convert_as(&text, None, &MemorySources::default()));
    assert!(said.contains("rules and users of all servers"), "{said}");
}

/// Texts that look like configurations, so that chance gets past the first field.
fn documents() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "server",
        "server_port",
        "local_port",
        "method",
        "password",
        "servers",
        "clients",
        "locals",
        "name",
        "protocol",
        "router",
        "routes",
        "listen",
        "enableTCP",
        "enableUDP",
        "psk",
        "iPSKs",
        "endpoint",
        "plugin",
        "plugin_opts",
        "mode",
        "users",
        "timeout",
        "port_password",
        "outbound_proxy",
        "version",
        "address",
        "tcpListeners",
        "toPorts",
        "toDomains",
        "client",
        "uPSKStorePath",
        "tunnelRemoteAddress",
        "socks5",
    ]);
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("8388".to_owned()),
        Just("-1".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("\"aes-128-gcm\"".to_owned()),
        Just("\"none\"".to_owned()),
        Just("\"socks5\"".to_owned()),
        Just("\"direct\"".to_owned()),
        Just("\"127.0.0.1:1080\"".to_owned()),
        Just("\"::\"".to_owned()),
        Just("\"8388\"".to_owned()),
        "\"[^\"\\\\\\n]{0,12}\"",
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        let pair =
            (word.clone(), inner.clone()).prop_map(|(key, value)| format!("\"{key}\":{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(pair, 0..8).prop_map(|pairs| format!("{{{}}}", pairs.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}", json in any::<bool>()) {
        let name = if json { "a.json" } else { "a" };
        let _ = adit_convert::convert(&text, name, &ConvertOptions::default(), &MemorySources::default());
        let _ = sip008::read_subscription(&text, &AllowedPlugins::none());
    }

    #[test]
    fn no_document_panics_and_what_is_written_is_toml(text in documents(), role in 0..3) {
        let role = [None, Some(Role::Client), Some(Role::Server)][role as usize];
        if let Ok(converted) = convert_as(&text, role, &MemorySources::default()) {
            // It may be refused for what it says, not for how it is written.
            if let Err(problems) = adit_config::Plan::from_toml(&converted.toml, "a.toml") {
                for problem in problems {
                    let shown = problem.to_string();
                    prop_assert!(!shown.contains("unclosed") && !shown.contains("invalid"), "{}\n{}", &*converted.toml, shown);
                }
            }
        }
    }

    #[test]
    fn subscriptions_round_trip(
        servers in prop::collection::vec(("[a-z0-9-]{0,8}", ".{0,12}", 1..=u16::MAX, ".{1,20}"), 0..5)
    ) {
        let servers: Vec<Server> = servers.into_iter().map(|(id, remarks, port, password)| Server {
            id,
            remarks,
            server: adit_wire::Host::parse("a.example").unwrap(),
            server_port: port,
            password: Secret::from(password.as_str()),
            method: "aes-128-gcm".to_owned(),
            plugin: None,
        }).collect();
        let read = sip008::read_subscription(&sip008::write_subscription(&servers), &AllowedPlugins::none()).unwrap();
        prop_assert_eq!(read.servers, servers);
    }

    #[test]
    fn passwords_survive(password in ".{1,40}", name in ".{0,20}") {
        let text = serde_json::json!({
            "servers": [{"server": "a.example", "server_port": 1, "method": "aes-128-gcm",
                "password": format!("x{password}"), "remarks": name}],
            "local_port": 1080,
        }).to_string();
        let plan = plan(&convert(&text));
        let Stage::Single(adit_config::Hop::Server(hop)) = &plan.routes[0].via.stages[0] else {
            panic!("no hop")
        };
        let expected = format!("x{password}");
        let adit_config::HopKind::Shadowsocks { secret, .. } = &hop.kind else {
            panic!("another kind of hop")
        };
        prop_assert_eq!(secret.expose(), expected);
    }
}
