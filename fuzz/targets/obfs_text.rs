//! The texts of ShadowsocksR's configuration: redirect rules, parameters, names.

#![no_main]

use adit_fuzz::split_flags;
use adit_obfs::{ObfsKind, ObfsParam, RedirectRule};
use adit_shadowsocksr::{ClientParam, Protocol, ProtocolKind, ServerParam};
use adit_wire::Target;
use libfuzzer_sys::fuzz_target;

/// Rules, one per line, then a line with a port, then the bytes of a client.
fn check_redirect(text: &str) {
    let (head, seen) = text.split_once("\n\n").unwrap_or((text, ""));
    let texts: Vec<&str> = head.lines().collect();
    let rules: Vec<RedirectRule> = texts
        .iter()
        .filter_map(|t| RedirectRule::parse(t).ok())
        .collect();
    for port in [0, 80, 443] {
        let found = RedirectRule::find_decoy(&rules, seen.as_bytes(), port);
        // The first of the rules that match on their own.
        let alone = |rule: &RedirectRule| {
            let one = core::slice::from_ref(rule);
            RedirectRule::find_decoy(one, seen.as_bytes(), port).cloned()
        };
        assert_eq!(found.cloned(), rules.iter().find_map(alone));
    }
    for text in texts {
        let decoy = |text: &str| {
            let rule = RedirectRule::parse(text).ok()?;
            RedirectRule::find_decoy(&[rule], seen.as_bytes(), 443).cloned()
        };
        if text.contains('#') {
            continue;
        }
        // Without a condition, a rule always matches; it is a target with or without a port.
        let target: Option<Target> = text.parse().ok();
        let target = target.or_else(|| format!("{text}:80").parse().ok());
        assert_eq!(decoy(text), target);
        // The same with a condition that always holds, and with one that never does.
        assert_eq!(decoy(&format!("*:*#{text}")), target);
        assert_eq!(decoy(&format!("*:444#{text}")), None);
        let fits = target.filter(|_| seen.contains("a.b"));
        assert_eq!(decoy(&format!("a\\.b:443#{text}")), fits);
    }
}

fn check_parameters(text: &str) {
    if let Ok(param) = ObfsParam::parse(text) {
        assert!(text.len() <= 2048);
        for host in param.hosts() {
            assert!(!host.is_empty() && host.len() <= 255);
            assert!(
                !host.contains([' ', '\r', '\n', '\0']),
                "{host:?} ends its field"
            );
        }
    }
    for kind in ProtocolKind::ALL {
        if let Ok(param) = ClientParam::parse(kind, text) {
            assert!(param.uid().is_none() || kind.has_users());
        }
        if let Ok(param) = ServerParam::parse(kind, text) {
            let uids: Vec<u32> = param.user_ids().collect();
            assert!(uids.is_sorted() && (uids.is_empty() || kind.has_users()));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match flags % 3 {
        0 => check_redirect(text),
        1 => check_parameters(text),
        _ => {
            if let Ok(protocol) = text.parse::<Protocol>() {
                assert_eq!(protocol.to_string().parse(), Ok(protocol));
                assert!(text.is_empty() || protocol.to_string() == text);
            }
            if let Ok((kind, _)) = ObfsKind::parse_server_name(text) {
                assert!(text.starts_with(kind.name()));
                assert_eq!(text.parse(), Ok(kind));
            }
        }
    }
});
