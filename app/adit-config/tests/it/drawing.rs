//! The drawing of a plan.

use adit_config::explain_plan;

use crate::shortcuts::{toml, words_with};
use adit_config::text::MemorySources;

#[test]
fn a_client_is_drawn() {
    let cabinet = MemorySources::default().with_variable("K", "AAECAwQFBgcICQoLDA0ODw==");
    let hop = "ss://2022-blake3-aes-128-gcm:$K@a.example:8388";
    let plan = words_with(&["mixed://127.0.0.1:1080#home", hop], &cabinet).unwrap();
    assert_eq!(
        explain_plan(&plan),
        "\
route home
  ● mixed://127.0.0.1:1080
  │   SOCKS5, SOCKS4, HTTP; without users
  │   limits: handshake 10s, dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit, UDP idle 5m
  │   access: every destination
  ▼
  ○ hop 1: ss://a.example:8388  (2022-blake3-aes-128-gcm, records of at most 65535 bytes + 34; waits 250ms for first bytes; UDP +50 bytes; dial 10s)
  ▼
  ◎ target
  UDP     passes, 1422 bytes of payload in a packet of 1500
  splice  no: ss://a.example:8388 seals every byte
"
    );
}

#[test]
fn a_legacy_method_has_no_records() {
    let plan = words_with(
        &["ss://aes-256-cfb:p@127.0.0.1:1", "ss://bf-cfb:p@h:1"],
        &MemorySources::default(),
    );
    let drawn = explain_plan(&plan.unwrap());
    for line in [
        "  │   aes-256-cfb, broken, for old peers only; no records, + 16 bytes; TCP and UDP; \
         without the key: silence",
        "  ○ hop 1: ss://h:1  (bf-cfb, broken, for old peers only; no records, + 8 bytes; \
         waits 250ms for first bytes; UDP +15 bytes; dial 10s)",
        "  UDP     passes, 1457 bytes of payload in a packet of 1500",
        "  splice  no: ss://127.0.0.1:1 seals every byte",
    ] {
        assert!(drawn.lines().any(|drawn| drawn == line), "{line}\n{drawn}");
    }
}

#[test]
fn rules_groups_and_ends_are_drawn() {
    let text = r#"
[route.a]
listen = "http://127.0.0.1:1?max_connections=9&allow_private=10.0.0.0/8"
via = [["http://a:1", "direct://"], "socks5://u:p@b:1"]
rules = [{ match = ["*.lan", ":25"], via = ["reject://"] }, { match = "x", via = "http://c:1" }]
[route.b]
listen = ["ss://none:@127.0.0.1:2?udp=false&reject=forward:d:443&restart=lenient", "udp://127.0.0.1:3/e:53"]
via = "reject://"
"#;
    assert_eq!(
        explain_plan(&toml(text).unwrap()),
        "\
route a
  ● http://127.0.0.1:1
  │   HTTP; without users
  │   limits: handshake 10s, dial 10s, idle 1h, half-closed 2m, 9 connections
  │   access: public destinations, and 10.0.0.0/8
  ├─ *.lan, :25 ─▶ nothing
  ├─ x ─▶ http://c:1 ─▶ target
  ▼
  ○ hop 1: the first of 2 that works
  │   http://a:1  (no overhead after the handshake; no UDP; dial 10s)
  │   direct://
  ▼
  ○ hop 2: socks5://b:1  (with a login; no overhead after the handshake; UDP +10 bytes; dial 10s)
  ▼
  ◎ target
  UDP     not offered
  splice  yes, if the system supports it

route b
  ● ss://127.0.0.1:2
  │   none, not encrypted; TCP; without the key: forwarded to d:443; requests from before a restart are served
  │   limits: handshake 10s, dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit
  │   access: public destinations
  ● udp://127.0.0.1:3/e:53
  │   UDP, unchanged
  │   limits: dial 10s, UDP idle 5m
  │   access: every destination
  ▼
  ✗ nothing
"
    );
}

#[test]
fn overheads_add_up_and_stops_are_named() {
    let cabinet = MemorySources::default().with_variable("K", "pw");
    let udp = |hops: &[&str]| {
        let words: Vec<&str> = [&["mixed://127.0.0.1:0"], hops].concat();
        let drawn = explain_plan(&words_with(&words, &cabinet).unwrap());
        let line = drawn
            .lines()
            .find(|line| line.starts_with("  UDP"))
            .unwrap();
        line.trim_start_matches("  UDP     ").to_owned()
    };
    assert_eq!(
        udp(&[]),
        "passes, 1472 bytes of payload in a packet of 1500"
    );
    let ss = "ss://aes-256-gcm:$K@a:1";
    assert_eq!(
        udp(&[ss, ss, "socks5://b:1"]),
        format!(
            "passes, {} bytes of payload in a packet of 1500",
            1472 - 55 - 55 - 10
        )
    );
    assert_eq!(udp(&[ss, "http://b:1"]), "stops at http://b:1");
}

#[test]
fn users_relays_and_plugins_are_drawn() {
    let key = "AAECAwQFBgcICQoLDA0ODw==";
    let cabinet = MemorySources::default()
        .with_variable("K", key)
        .with_variable("KK", &format!("{key}:{key}"))
        .with_file("/u", "a:EBESExQVFhcYGRobHB0eHw==\n")
        .with_file("/p", "a:1\nb:2\n")
        .with_file(
            "/r",
            r#"[{"server":"a","port":1,"psk":"EBESExQVFhcYGRobHB0eHw=="},
                {"server":"::1","port":2,"psk":"ICEiIyQlJicoKSorLC0uLw==","name":"b"}]"#,
        );
    let drawn = |words: &[&str]| {
        let drawn = explain_plan(&words_with(words, &cabinet).unwrap());
        assert!(!drawn.contains("hunter2"));
        drawn
    };
    let near = "mixed://127.0.0.1:0";
    let server = "ss://2022-blake3-aes-128-gcm:$K@127.0.0.1:1";
    let plugin = "plugin=p%1b%3Bkey%3Dhunter2&plugin_mode=tcp_and_udp";
    for (words, lines) in [
        (
            vec![format!("{server}?users=@/u&{plugin}")],
            vec![
                "  │   1 user, identified by identity header, from /u",
                "  │   TCP and UDP through plugin `p\u{fffd}`",
                "  splice  no: ss://127.0.0.1:1 seals every byte",
            ],
        ),
        (
            vec!["ss://aes-256-gcm@127.0.0.1:1?users=@/p&state=@/s".to_owned()],
            vec![
                "  │   2 users, identified by trying every password, from /p",
                "  │   salts stored in /s",
            ],
        ),
        (
            vec![format!("{server}?relay=@/r")],
            vec![
                "  │   2022-blake3-aes-128-gcm; TCP and UDP; without the key: silence",
                "  │   relay, by identity header: a:1, b ([::1]:2)",
                "  splice  yes, if the system supports it",
            ],
        ),
        (
            vec![
                near.to_owned(),
                format!("{}?{plugin}", server.replace("$K", "$KK")),
            ],
            vec![
                "  ○ hop 1: ss://127.0.0.1:1  (2022-blake3-aes-128-gcm, records of at most 65535 \
                 bytes + 34; 1 identity header; TCP and UDP through plugin `p\u{fffd}`; waits \
                 250ms for first bytes; UDP +66 bytes; dial 10s)",
                "  UDP     passes, 1406 bytes of payload in a packet of 1500",
            ],
        ),
        (
            vec![
                near.to_owned(),
                format!("{server}?udp=over-tcp"),
                "socks5://h:1".to_owned(),
            ],
            vec![
                "  ○ hop 1: ss://127.0.0.1:1  (2022-blake3-aes-128-gcm, records of at most 65535 \
                 bytes + 34; waits 250ms for first bytes; UDP in a connection; dial 10s)",
                // Packets that leave the connection, with the SOCKS header.
                "  UDP     passes, 1462 bytes of payload in a packet of 1500",
            ],
        ),
        (
            vec![
                near.to_owned(),
                "socks5://h:1".to_owned(),
                format!("{server}?udp=over-tcp"),
            ],
            vec!["  UDP     passes, 1472 bytes of payload in a packet of 1500"],
        ),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let drawn = drawn(&words);
        for line in lines {
            assert!(drawn.lines().any(|drawn| drawn == line), "{line}\n{drawn}");
        }
    }
}

#[test]
fn transparent_listeners_are_drawn() {
    let text = r#"
[route.gateway]
listen = ["redir://127.0.0.1:1", "tproxy://127.0.0.1:2", "tproxy://[::1]:3?udp=false", "tproxy://[::1]:4?full_cone=true"]
via = "socks5://b:1"
"#;
    assert_eq!(
        explain_plan(&toml(text).unwrap()),
        "\
route gateway
  ● redir://127.0.0.1:1
  │   TCP redirected by the firewall with REDIRECT
  │   limits: dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit
  │   access: every destination
  ● tproxy://127.0.0.1:2
  │   TCP and UDP redirected by the firewall with TPROXY; UDP replies only from addresses that the client has contacted
  │   limits: dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit, UDP idle 5m
  │   access: public destinations
  ● tproxy://[::1]:3
  │   TCP redirected by the firewall with TPROXY
  │   limits: dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit
  │   access: public destinations
  ● tproxy://[::1]:4
  │   TCP and UDP redirected by the firewall with TPROXY; UDP replies from any address
  │   limits: dial 10s, idle 1h, half-closed 2m, connections up to the descriptor limit, UDP idle 5m
  │   access: public destinations
  ▼
  ○ hop 1: socks5://b:1  (no overhead after the handshake; UDP +10 bytes; dial 10s)
  ▼
  ◎ target
  UDP     passes, 1462 bytes of payload in a packet of 1500
  splice  yes, if the system supports it
"
    );
}
