//! Hops that are listeners of the same plan.

use adit_config::{Plan, Problem};

use crate::shortcuts::{shown, words};
use adit_config::text::MemorySources;

fn plan(text: &str) -> Result<Plan, Vec<Problem>> {
    Plan::from_toml_with(text, "a.toml", &MemorySources::default())
}

/// Builds a plan from routes, each with a listener and a chain.
fn routes(routes: &[(&str, &str)]) -> Result<Plan, Vec<Problem>> {
    let route = |(n, (listen, via)): (usize, &(&str, &str))| {
        format!("[route.r{n}]\nlisten = \"{listen}\"\nvia = {via}\n")
    };
    plan(&routes.iter().enumerate().map(route).collect::<String>())
}

#[test]
fn a_hop_that_is_its_own_listener_is_found() {
    for (listen, hop) in [
        ("mixed://127.0.0.1:1080", "socks5://127.0.0.1:1080"),
        ("mixed://127.0.0.1:1080", "socks5://localhost:1080"),
        ("mixed://localhost:1080", "http://127.0.0.1:1080"),
        ("mixed://u:p@:1080", "socks5://u:p@127.0.0.1:1080"),
        ("mixed://u:p@0.0.0.0:1080", "socks5://u:p@localhost:1080"),
        ("mixed://u:p@9.9.9.9:1080", "socks5://u:p@9.9.9.9:1080"),
    ] {
        let why = shown(words(&[listen, hop]));
        assert!(
            why.contains("leads back to its own listener"),
            "{listen} {hop}: {why}"
        );
    }
    let why = shown(words(&["tcp://127.0.0.1:8000/localhost:8000"]));
    assert!(why.contains("leads back to its own listener"), "{why}");
    for (listen, hop) in [
        ("mixed://127.0.0.1:1080", "socks5://127.0.0.1:1081"),
        ("mixed://127.0.0.1:1080", "socks5://127.0.0.2:1080"),
        ("mixed://127.0.0.1:0", "socks5://127.0.0.1:1080"),
        ("mixed://127.0.0.1:1080", "socks5://9.9.9.9:1080"),
        // A UDP listener does not receive TCP.
        (
            "udp://127.0.0.1:1080/9.9.9.9:53",
            "ss://aes-128-gcm:x@127.0.0.1:1080",
        ),
    ] {
        assert!(words(&[listen, hop]).is_ok(), "{listen} {hop}");
    }
}

#[test]
fn a_circle_of_routes_is_found_once() {
    let circle = [
        ("mixed://127.0.0.1:1", "\"socks5://127.0.0.1:2\""),
        (
            "mixed://127.0.0.1:2",
            "[[\"socks5://9.9.9.9:9\", \"socks5://127.0.0.1:3\"]]",
        ),
        (
            "mixed://127.0.0.1:3",
            "[\"socks5://127.0.0.1:1\", \"socks5://9.9.9.9:1\"]",
        ),
    ];
    let why = shown(routes(&circle));
    assert!(
        why.contains("is part of a loop: `r0`, `r1`, `r2`, `r0`"),
        "{why}"
    );
    assert_eq!(why.matches("is part of a loop").count(), 1, "{why}");
    // The same without the way back.
    assert!(routes(&circle[..2]).is_ok());
}

#[test]
fn rules_count_where_they_come_back_for_sure() {
    let of = |rule: &str, via: &str| {
        let text = format!(
            "[route.a]\nlisten = \"mixed://127.0.0.1:1\"\n\
             rules = [{{ match = \"{rule}\", via = \"{via}\" }}]\n\
             [route.b]\nlisten = \"mixed://127.0.0.1:2\"\nvia = \"socks5://127.0.0.1:1\"\n"
        );
        plan(&text)
    };
    let own = shown(of("*.onion", "socks5://127.0.0.1:1"));
    assert!(own.contains("leads back to its own listener"), "{own}");
    let all = shown(of("*", "socks5://127.0.0.1:2"));
    assert!(all.contains("is part of a loop"), "{all}");
    assert!(of("*.onion", "socks5://127.0.0.1:9050").is_ok());
}
