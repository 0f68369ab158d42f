//! shadowsocks-libev and shadowsocks-rust: documents as people have them.

use adit_config::text::MemorySources;
use adit_config::{Hop, HopKind, ListenerKind, Stage};
use adit_convert::{Format, Role};

use crate::conversion::{body, convert, convert_as, notes, plan, problems};

/// The file that the Debian package installs.
const DEBIAN: &str = r#"{
    "server":["::1", "127.0.0.1"],
    "mode":"tcp_and_udp",
    "server_port":8388,
    "local_port":1080,
    "password":"uXhtqvk3xS5a",
    "timeout":86400,
    "method":"chacha20-ietf-poly1305"
}
"#;

#[test]
fn a_libev_client_becomes_a_route() {
    let converted = convert(
        r#"{
  "server": "vpn.example.com", "server_port": "8388",
  "local_address": "127.0.0.1", "local_port": 1080,
  "password": "bar/foo!", "method": "AES-256-GCM",
  "timeout": 300, "fast_open": true, "nameserver": "1.1.1.1", "shiny": 1
}"#,
    );
    assert_eq!(converted.format, Format::Libev);
    assert_eq!(
        body(&converted),
        "\
[route.main]
listen = [\"mixed://127.0.0.1:1080?udp=false&idle=5m\"]
via = [\"ss://aes-256-gcm:bar%2Ffoo%21@vpn.example.com:8388/?fast_open=true\"]
"
    );
    assert_eq!(
        notes(&converted),
        [
            "note: read as the configuration of a client, since it has `local_port`; \
             `--role server` reads it as the other",
            "note: `nameserver`: names are looked up by the system's resolver; left out",
            "note: `shiny`: unknown field, left out",
        ]
    );
    let plan = plan(&converted);
    let [Stage::Single(Hop::Server(hop))] = &plan.routes[0].via.stages[..] else {
        panic!("{:?}", plan.routes[0].via)
    };
    assert_eq!(hop.server.to_string(), "vpn.example.com:8388");
    assert!(
        matches!(&hop.kind, HopKind::Shadowsocks { secret, .. } if secret.expose() == "bar/foo!")
    );
    assert_eq!(plan.routes[0].listen[0].limits.idle.as_secs(), 300);
}

#[test]
fn a_role_can_be_told() {
    let client = convert(DEBIAN);
    assert_eq!(
        body(&client),
        "\
[route.main]
listen = [\"mixed://127.0.0.1:1080?idle=1d\"]
via = [
  [
    \"ss://chacha20-ietf-poly1305:uXhtqvk3xS5a@[::1]:8388\",
    \"ss://chacha20-ietf-poly1305:uXhtqvk3xS5a@127.0.0.1:8388\",
  ],
]
"
    );
    assert!(
        matches!(&plan(&client).routes[0].via.stages[..], [Stage::Group(hops)] if hops.len() == 2)
    );
    let server = convert_as(DEBIAN, Some(Role::Server), &MemorySources::default()).unwrap();
    assert_eq!(
        body(&server),
        "\
[route.server]
listen = [
  \"ss://chacha20-ietf-poly1305:uXhtqvk3xS5a@[::1]:8388/?idle=1d\",
  \"ss://chacha20-ietf-poly1305:uXhtqvk3xS5a@127.0.0.1:8388/?idle=1d\",
]
"
    );
    assert_eq!(plan(&server).routes[0].listen.len(), 2);
    assert!(!notes(&server)[0].contains("--role"));
}

#[test]
fn servers_are_recognised() {
    for (text, listen) in [
        (
            r#"{"server":"0.0.0.0","server_port":8388,"local_port":1080,"password":"p","method":"aes-128-gcm"}"#,
            "[\"ss://aes-128-gcm:p@0.0.0.0:8388/?udp=false\"]",
        ),
        (
            r#"{"server":["[::0]","0.0.0.0"],"server_port":8388,"password":"p","method":"aes-128-gcm","mode":"udp_only"}"#,
            "[\"ss://aes-128-gcm:p@:8388/?tcp=false\"]",
        ),
        (
            r#"{"server_port":8388,"password":"p","method":"aes-128-gcm","mode":"tcp_and_udp","ipv6_first":true}"#,
            "[\"ss://aes-128-gcm:p@0.0.0.0:8388/?prefer=v6\"]",
        ),
        (
            r#"{"server":"0.0.0.0","port_password":{"8381":"a","8382":"b"},"method":"aes-128-gcm","mode":"tcp_and_udp"}"#,
            "[\n  \"ss://aes-128-gcm:a@0.0.0.0:8381\",\n  \"ss://aes-128-gcm:b@0.0.0.0:8382\",\n]",
        ),
    ] {
        let converted = convert(text);
        assert_eq!(
            body(&converted),
            format!("[route.server]\nlisten = {listen}\n")
        );
        let plan = plan(&converted);
        for listen in &plan.routes[0].listen {
            assert!(matches!(listen.kind, ListenerKind::Shadowsocks(_)));
        }
    }
}

#[test]
fn a_tunnel_keeps_its_target() {
    for (mode, scheme) in [
        ("tcp_only", "tcp"),
        ("udp_only", "udp"),
        ("tcp_and_udp", "tcp+udp"),
    ] {
        let converted = convert(&format!(
            r#"{{"server":"192.0.2.1","server_port":8388,"local_port":5300,"password":"p",
                "method":"aes-128-gcm","mode":"{mode}","tunnel_address":"9.9.9.9:53"}}"#
        ));
        let listen = format!("listen = [\"{scheme}://127.0.0.1:5300/9.9.9.9:53\"]");
        assert!(body(&converted).contains(&listen), "{}", body(&converted));
        plan(&converted);
    }
}

/// The extended form, with all that JSON5 allows.
const RUST: &str = r#"// My configuration.
{
    servers: [
        {
            server: "tokyo.example.net",
            server_port: 8388,
            method: "2022-blake3-aes-128-gcm",
            password: "AAECAwQFBgcICQoLDA0ODw==",
            remarks: "Tokyo 1",
            tcp_weight: 0.5,
            mode: "tcp_only",
        },
        /* The second */
        {
            "address": "2001:db8::7",
            "port": 443,
            "method": "chacha20-ietf-poly1305",
            "password": "${SS_PASSWORD}",
            "timeout": 7,
        },
        { "disabled": true, "server": "x", "server_port": 1, "method": "none" },
    ],
    locals: [
        { local_address: "127.0.0.1", local_port: 1080, mode: "tcp_and_udp", },
        { protocol: "http", local_address: "::1", local_port: 8080 },
        {
            protocol: "tunnel", local_address: "127.0.0.1", local_port: 5353,
            forward_address: "9.9.9.9", forward_port: 53, mode: "udp_only",
        },
        { protocol: "redir", local_port: 60080 },
        { protocol: "socks", local_port: 1081, disabled: true },
    ],
    timeout: 5,
    udp_timeout: 120,
    outbound_proxy: "socks5://me:pass@proxy.lan:1080",
    balancer: { max_server_rtt: 5 },
    acl: "/etc/shadowsocks/bypass.acl",
    no_delay: false,
}
"#;

const ACL: &str = "[proxy_all]\n[bypass_list]\n(^|\\.)lan\\.example$\n10.0.0.0/8\n";

#[test]
fn a_rust_client_becomes_a_group_behind_its_proxy() {
    let folder = || {
        MemorySources::default()
            .with_variable("SS_PASSWORD", "secret")
            .with_file("/etc/shadowsocks/bypass.acl", ACL)
    };
    let converted = convert_as(RUST, None, &folder()).unwrap();
    assert_eq!(converted.format, Format::Rust);
    assert_eq!(
        body(&converted),
        "\
[route.main]
listen = [
  \"mixed://127.0.0.1:1080?udp_idle=2m\",
  \"http://[::1]:8080\",
  \"udp://127.0.0.1:5353/9.9.9.9:53?udp_idle=2m\",
  \"redir://127.0.0.1:60080\",
]
via = [
  \"socks5://me:pass@proxy.lan:1080\",
  [
    \"ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@tokyo.example.net:8388/?udp=false&dial=5s#Tokyo%201\",
    \"ss://chacha20-ietf-poly1305:$SS_PASSWORD@[2001:db8::7]:443/?dial=7s\",
  ],
]
rules = [
  { match = [\"*.lan.example\", \"lan.example\"], via = [\"direct://\"] },
  { match = [\"10.0.0.0/8\"], via = [\"direct://\"], resolve = true },
]
"
    );
    let notes = notes(&converted).join("\n");
    for said in [
        "`locals`",
        "`servers[2]`: disabled",
        "`servers[0].tcp_weight`: a group",
        "`locals[4]`: disabled",
        "`balancer`: a group",
    ] {
        assert!(notes.contains(said), "{said}\n{notes}");
    }
    assert!(!notes.contains("no_delay"), "{notes}");
    let plan = crate::conversion::plan_with(&converted, &folder());
    let hops = &plan.routes[0].via.stages;
    assert!(matches!(&hops[0], Stage::Single(Hop::Server(hop)) if hop.server.port == 1080));
    let Stage::Group(group) = &hops[1] else {
        panic!("{hops:?}")
    };
    let Hop::Server(second) = &group[1] else {
        panic!("{group:?}")
    };
    assert!(
        matches!(&second.kind, HopKind::Shadowsocks { secret, .. } if secret.expose() == "secret")
    );
    assert_eq!(second.dial.as_secs(), 7);
}

#[test]
fn users_and_plugins_are_written_in_their_forms() {
    let converted = convert(
        r#"{"servers":[{"server":"127.0.0.1","server_port":30002,"method":"2022-blake3-aes-128-gcm",
  "password":"AAECAwQFBgcICQoLDA0ODw==","mode":"tcp_and_udp",
  "users":[{"name":"alice","password":"EBESExQVFhcYGRobHB0eHw=="},
           {"name":"b ob","password":"${BOB}"}]}]}"#,
    );
    assert_eq!(
        body(&converted),
        "\
[route.server1]
listen = [\"ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@127.0.0.1:30002\"]

[route.server1.users]
alice = \"EBESExQVFhcYGRobHB0eHw==\"
\"b ob\" = \"$BOB\"
"
    );
    let converted = convert(
        r#"{"server":"a.example","server_port":443,"local_port":1080,"mode":"tcp_and_udp",
  "method":"2022-blake3-aes-128-gcm",
  "password":"AAECAwQFBgcICQoLDA0ODw==:EBESExQVFhcYGRobHB0eHw==",
  "plugin":"v2ray-plugin","plugin_opts":"tls;host=a.example","plugin_mode":"tcp_and_udp"}"#,
    );
    assert!(
        body(&converted).contains(
            "\"ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D%3AEBESExQVFhcYGRobHB0eHw%3D%3D\
             @a.example:443/?plugin=v2ray-plugin%3Btls%3Bhost%3Da.example&plugin_mode=tcp_and_udp\""
        ),
        "{}",
        body(&converted)
    );
}

#[test]
fn proxies_keep_their_users() {
    let text = r#"{"server":"a.example","server_port":443,"method":"aes-128-gcm","password":"p",
        "locals":[{"local_address":"0.0.0.0","local_port":1080,"socks5_auth_config_path":"auth.json"}]}"#;
    let with = |auth: &str| {
        let folder = MemorySources::default().with_file("etc/auth.json", auth);
        convert_as(text, None, &folder)
    };
    let one = with(r#"{"password":{"users":[{"user_name":"me","password":"pass"}]}}"#).unwrap();
    assert!(body(&one).contains("mixed://me:pass@0.0.0.0:1080?udp=false"));
    plan(&one);
    let two = with(
        r#"{"password":{"users":[{"user_name":"a","password":"secret1"},{"user_name":"b","password":"secret2"}]}}"#,
    )
    .unwrap();
    assert!(
        body(&two).contains("mixed://0.0.0.0:1080?users=@users-1080.txt"),
        "{}",
        body(&two)
    );
    assert!(!notes(&two).join("").contains("secret"));
    let none = problems(with("{}"));
    assert!(none.contains("asks for users and has none"), "{none}");
    let absent = problems(convert_as(text, None, &MemorySources::default()));
    assert!(absent.contains("cannot read `auth.json`"), "{absent}");
}

#[test]
fn an_open_proxy_stays_open_and_is_told() {
    let converted = convert(
        r#"{"server":"a.example","server_port":443,"method":"aes-128-gcm","password":"p",
            "local_address":"0.0.0.0","local_port":1080}"#,
    );
    assert!(body(&converted).contains("mixed://0.0.0.0:1080?udp=false&allow_open_proxy=true"));
    assert!(
        notes(&converted)
            .join("\n")
            .contains("everyone who reaches it can use it")
    );
    plan(&converted);
}

#[test]
fn what_cannot_be_a_way_is_not_left_out() {
    // Without its proxy the traffic would show itself.
    let converted = convert(
        r#"{"server":"a.example","server_port":443,"method":"aes-128-gcm","password":"p",
            "local_port":1080,"outbound_proxy":"https://proxy.example:443"}"#,
    );
    assert!(notes(&converted).join("").contains("will be refused"));
    let refused = adit_config::Plan::from_toml(&converted.toml, "a.toml").unwrap_err();
    assert!(refused[0].title.contains("https"), "{}", refused[0]);
}

#[test]
fn wrong_documents_say_what_to_do() {
    let client = |more: &str| {
        format!(r#"{{"server":"a.example","server_port":443,"local_port":1080,{more}}}"#)
    };
    for (text, said) in [
        (
            "{}".to_owned(),
            "no server in this shadowsocks-libev configuration",
        ),
        ("{\"server\": 1,".to_owned(), "c.json:1:1"),
        (client(r#""password":"p""#), "`method` is missing"),
        (client(r#""method":"aes-128-gcm","key":"AAEC""#), "raw key"),
        (
            client(r#""method":"rc4-md6","password":"p""#),
            "method `rc4-md6` is not known",
        ),
        (client(r#""method":"aes-128-gcm""#), "password is empty"),
        (
            client(r#""method":"2022-blake3-aes-128-gcm","password":"hunter2=""#),
            "not base64",
        ),
        (
            client(r#""method":"aes-128-gcm","password":{"a":1}"#),
            "`password` is not a text",
        ),
        (
            client(
                r#""method":"aes-128-gcm","password":"p","mode":"both"#
                    .to_owned()
                    .as_str(),
            ),
            "before a closing quotation mark",
        ),
        (
            client(r#""method":"aes-128-gcm","password":"p","mode":"both""#),
            "`mode` is not a mode",
        ),
        (
            r#"{"server":"a b","server_port":443,"local_port":1,"method":"none"}"#.to_owned(),
            "`server` is not an address",
        ),
        (
            r#"{"server":"a","server_port":70000,"local_port":1,"method":"none"}"#.to_owned(),
            "`server_port` is not a port",
        ),
        (
            r#"{"server":"a","local_port":1,"method":"none"}"#.to_owned(),
            "`server_port` is missing",
        ),
        (
            "\"x\"".to_owned(),
            "the text is a text, not a configuration",
        ),
        (
            r#"{"servers":[],"locals":[{"protocol":"redir","local_port":1}]}"#.to_owned(),
            "nothing in `etc/c.json` can be carried over",
        ),
    ] {
        let said_so = problems(convert_as(&text, None, &MemorySources::default()));
        assert!(said_so.contains(said), "{text}\n{said_so}");
        assert!(!said_so.contains("hunter2"), "{said_so}");
    }
}

#[test]
fn one_bad_server_does_not_stop_the_others() {
    let converted = convert(
        r#"{"local_port":1080,"servers":[
            {"server":"a.example","server_port":1,"method":"rc4-md6","password":"p"},
            {"server":"b.example","server_port":2,"method":"aes-128-gcm","password":"p"}]}"#,
    );
    assert!(
        notes(&converted)
            .join("\n")
            .contains("`servers[0]`: left out: method `rc4-md6`")
    );
    assert!(matches!(
        &plan(&converted).routes[0].via.stages[..],
        [Stage::Single(_)]
    ));
}

/// A client's and a server's list, and what each refuses to leave out.
#[test]
fn lists_become_rules() {
    let client = |more: &str| {
        format!(
            r#"{{"server":"a.example","server_port":8388,"local_port":1080,"password":"p",
                "method":"aes-128-gcm"{more}}}"#
        )
    };
    let acl = |text: &str| MemorySources::default().with_file("etc/a.acl", text);
    let bypass_all = "[bypass_all]\n[proxy_list]\n||b.example\n^ads?\\d\\.\n198.51.100.0/24\n\
                      [outbound_block_list]\n|bad.example\n";
    let text = client(r#","acl":"a.acl""#);
    let converted = convert_as(&text, Some(Role::Client), &acl(bypass_all)).unwrap();
    let said = body(&converted);
    let via = "via = [\"ss://aes-128-gcm:p@a.example:8388\"]";
    for line in [
        "via = [\"direct://\"]".to_owned(),
        "  { match = [\"bad.example\"], via = [\"reject://\"] },".to_owned(),
        format!(
            "  {{ match = [\"*.b.example\", \"b.example\", \"regex:^ads?\\\\d\\\\.\"], {via} }},"
        ),
        format!("  {{ match = [\"198.51.100.0/24\"], {via}, resolve = true }},"),
    ] {
        assert!(said.contains(&line), "{line}\n{said}");
    }
    let plan = plan(&converted);
    assert_eq!(plan.routes[0].rules.len(), 3);
    assert!(plan.routes[0].rules[2].resolve);

    let server = r#"{"server":"0.0.0.0","server_port":8388,"password":"p","method":"aes-128-gcm",
                     "acl":"a.acl"}"#;
    let block = "[outbound_block_list]\n127.0.0.1/8\n";
    let converted = convert_as(server, Some(Role::Server), &acl(block)).unwrap();
    let rule = "{ match = [\"127.0.0.0/8\"], via = [\"reject://\"], resolve = true }";
    assert!(body(&converted).contains(rule), "{}", body(&converted));

    for (text, role, list, said) in [
        (
            server,
            Some(Role::Server),
            "[reject_all]\n[white_list]\n192.0.2.1\n",
            "which clients are served",
        ),
        (
            &text,
            Some(Role::Client),
            "[proxy_al]\n",
            "not a section of an ACL",
        ),
        (
            &text,
            Some(Role::Client),
            "[proxy_list]\na(\n",
            "not an expression for names",
        ),
    ] {
        let why = convert_as(text, role, &acl(list)).unwrap_err();
        assert!(why[0].to_string().contains(said), "{}", why[0]);
    }
    let missing = convert_as(&text, Some(Role::Client), &MemorySources::default()).unwrap_err();
    assert!(
        missing[0].title.contains("cannot read `a.acl`"),
        "{}",
        missing[0]
    );
    let own = r#"{"server":"a.example","server_port":1,"password":"p","method":"aes-128-gcm",
                  "locals":[{"local_port":1080,"acl":"a.acl"}]}"#;
    let why = convert_as(own, Some(Role::Client), &acl(block)).unwrap_err();
    assert!(why[0].title.contains("`locals[0].acl`"), "{}", why[0]);
}

#[test]
fn redirected_ports_are_listeners() {
    for (fields, urls) in [
        ("", "redir://127.0.0.1:1081"),
        (
            r#","mode":"tcp_and_udp""#,
            "redir://127.0.0.1:1081 tproxy://127.0.0.1:1081?tcp=false",
        ),
        (
            r#","tcp_redir":"tproxy""#,
            "tproxy://127.0.0.1:1081?udp=false",
        ),
        (
            r#","tcp_redir":"tproxy","mode":"tcp_and_udp""#,
            "tproxy://127.0.0.1:1081",
        ),
        (r#","mode":"udp_only""#, "tproxy://127.0.0.1:1081?tcp=false"),
    ] {
        let converted = convert(&format!(
            r#"{{"server":"a.example","server_port":1,"password":"p","method":"aes-128-gcm",
                "locals":[{{"protocol":"redir","local_port":1081{fields}}}]}}"#
        ));
        let plan = plan(&converted);
        let body = body(&converted);
        for url in urls.split(' ') {
            assert!(body.contains(&format!("\"{url}\"")), "{url}\n{body}");
        }
        assert_eq!(plan.routes[0].listen.len(), urls.split(' ').count());
    }
}
