//! `to_url(from_url(x)) == canonical(x)`.

use adit_config::{Endpoint, Plan, SecretText, link};
use proptest::prelude::*;

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,8}(\\.[a-z]{2,5})?",
        any::<core::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
        any::<core::net::Ipv6Addr>().prop_map(|ip| format!("[{ip}]")),
    ]
}

/// Arbitrary text, escaped as some writers do: all characters, only the necessary ones, or in
/// between.
fn escaped() -> impl Strategy<Value = (String, String)> {
    ("[ -~äß€😀]{1,16}", any::<bool>()).prop_map(|(text, all)| {
        let escaped = text
            .bytes()
            .map(|b| match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' if !all => char::from(b).to_string(),
                b'!' | b'(' | b'+' | b'=' if !all => char::from(b).to_string(),
                b => format!("%{b:02x}"),
            })
            .collect();
        (text, escaped)
    })
}

const COMMON: [&str; 6] = [
    "udp=true",
    "dial=120s",
    "prefer=v6only",
    "idle=3600000ms",
    "allow_private=10.1.2.3/8,fd00::1",
    "handshake=1d",
];
/// Keys of only `ss` that do not name a file that is read.
const SS: [&str; 3] = [
    "state=@s",
    "plugin=p%5c%3b%20q%3bkey%3dv%5c%3dw",
    "plugin_mode=tcp_and_udp",
];
const SS_FILES: [&str; 2] = ["users=@/etc/a%20b%40c", "relay=@r"];

fn query(keys: &[&[&'static str]]) -> impl Strategy<Value = String> + use<> {
    let keys = keys.concat();
    let all = keys.len();
    let pairs = prop::sample::subsequence(keys, 0..=all);
    pairs.prop_shuffle().prop_map(|pairs| {
        if pairs.is_empty() {
            String::new()
        } else {
            format!("?{}", pairs.join("&"))
        }
    })
}

fn url() -> impl Strategy<Value = (String, String, String)> {
    let keyed = prop::sample::select(vec!["ss", "SS"]);
    let proxy = prop::sample::select(vec!["mixed", "socks5"]);
    let method = prop::sample::select(vec!["2022-blake3-aes-128-gcm", "aes-256-gcm", "rc4-md5"]);
    let begin_and_query = prop_oneof![
        (keyed, query(&[&COMMON, &SS, &SS_FILES])),
        (proxy, query(&[&COMMON])),
    ];
    (
        begin_and_query,
        method,
        escaped(),
        host(),
        any::<u16>(),
        escaped(),
    )
        .prop_map(
            |((scheme, query), method, (secret, raw), host, port, (name, raw_name))| {
                let text = format!("{scheme}://{method}:{raw}@{host}:{port}{query}#{raw_name}");
                (text, secret, name)
            },
        )
}

fn parts(url: &Endpoint) -> String {
    let params: Vec<_> = url
        .params
        .iter()
        .map(|pair| (&pair.key.value, &pair.value.value))
        .collect();
    format!(
        "{:?}",
        (
            &url.scheme.value,
            url.user.as_ref().map(|user| &user.value),
            url.host.as_ref().map(|host| &host.value),
            url.port.as_ref().map(|port| port.value),
            url.target.as_ref().map(|target| &target.value),
            params,
            url.name.as_ref().map(|name| &name.value),
        )
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((text, secret, name) in url()) {
        let first = Endpoint::parse(&text).unwrap();
        let written = first.to_url();
        let again = Endpoint::parse(&written).unwrap();
        prop_assert_eq!(parts(&first), parts(&again), "{}", written);
        prop_assert_eq!(&first.secret.unwrap().value, &again.secret.as_ref().unwrap().value);
        prop_assert_eq!(again.secret.unwrap().value, SecretText::Literal(secret.as_str().into()));
        prop_assert_eq!(again.name.unwrap().value, name);
    }

    #[test]
    fn canonical_is_a_fixed_point((text, _, _) in url()) {
        let canonical = link::canonical_url(&text);
        // Keys of a table that the scheme does not have are refused; they are not another spelling.
        if let Ok(canonical) = canonical {
            prop_assert_eq!(link::canonical_url(&canonical).unwrap(), canonical.clone());
            let url = Endpoint::parse(&canonical).unwrap();
            prop_assert_eq!(url.to_url(), canonical);
        } else {
            prop_assert!(false, "{}", text);
        }
    }

    #[test]
    fn canonical_means_the_same_plan(
        (_, secret, _) in url(),
        host in host(),
        query in query(&[&COMMON, &SS]),
    ) {
        let plan = |text: &str| {
            let mut plan = Plan::from_words(&[text.to_owned()]).unwrap();
            plan.warnings.clear();
            plan
        };
        let escaped: String = secret.bytes().map(|b| format!("%{b:02X}")).collect();
        let text = format!("ss://aes-256-gcm:{escaped}@{host}:0{query}");
        let canonical = link::canonical_url(&text).unwrap();
        prop_assert_eq!(plan(&text), plan(&canonical));
        // As a hop, with keys for the servers on the way.
        let keys = ["AAECAwQFBgcICQoLDA0ODw%3d%3D"; 3].join(if host.len() % 2 == 0 { ":" } else { "%3a" });
        let text = format!("ss://2022-blake3-aes-128-gcm:{keys}@{host}:1{query}");
        let hop = |text: &str| {
            let words = ["mixed://127.0.0.1:0".to_owned(), text.to_owned()];
            let mut plan = Plan::from_words(&words).unwrap();
            plan.warnings.clear();
            plan
        };
        prop_assert_eq!(hop(&text), hop(&link::canonical_url(&text).unwrap()));
    }
}

#[test]
fn canonical_spells_keys_in_one_way() {
    for (text, canonical) in [
        (
            "MIXED://LocalHost:1080?idle=60m&udp=false&allow_private=10.9.9.9/8",
            "mixed://localhost:1080?allow_private=10.0.0.0/8&udp=false&idle=1h",
        ),
        ("tcp://:53/DNS.Example:53", "tcp://:53/dns.example:53"),
        (
            "tcp+udp://[::]:53/[2001:DB8::1]:53",
            "tcp+udp://[::]:53/[2001:db8::1]:53",
        ),
        (
            "mixed://:1080?users=@/etc/a%20b",
            "mixed://:1080?users=@/etc/a%20b",
        ),
        ("socks4a://me%40home@h:1", "socks4a://me%40home@h:1"),
        ("direct://", "direct://"),
        ("http://[::ffff:127.0.0.1]:1", "http://127.0.0.1:1"),
        (
            "ss://AES-256-GCM:@:1?users=@u",
            "ss://aes-256-gcm@:1/?users=@u",
        ),
        (
            "ss://aes-256-gcm@:1/?users=@u",
            "ss://aes-256-gcm@:1/?users=@u",
        ),
        (
            "ss://2022-BLAKE3-aes-128-gcm:a+=:b/c=@:1?udp=over-tcp&relay=@/r",
            "ss://2022-blake3-aes-128-gcm:a%2B%3D%3Ab%2Fc%3D@:1/?relay=@/r&udp=over-tcp",
        ),
        (
            "ss://none:@:1?plugin_mode=tcp_only&plugin=%5Ca%5C:b;",
            "ss://bm9uZTo@:1/?plugin=%5C%5Ca:b&plugin_mode=tcp_only",
        ),
        (
            "ss://none:@:1?reject=forward:a:80",
            "ss://bm9uZTo@:1/?reject=forward:a:80",
        ),
    ] {
        assert_eq!(link::canonical_url(text).unwrap(), canonical, "{text}");
        assert_eq!(link::canonical_url(canonical).unwrap(), canonical);
    }
}

#[test]
fn every_scheme_has_help_and_a_place_in_the_reference() {
    let page = adit_config::markdown_reference();
    let overview = adit_config::schemes_overview();
    for scheme in adit_config::schemes() {
        let help = adit_config::scheme_help(scheme.name).unwrap();
        assert!(help.starts_with(scheme.form));
        assert!(page.contains(&format!("## `{scheme}`")));
        assert!(overview.contains(scheme.form));
        for param in scheme.params {
            let row = format!("\n  {}={}", param.setting.name(), param.setting.type_name());
            assert!(help.contains(&row), "{scheme}: {param:?}");
        }
    }
    for line in overview.lines().chain(
        adit_config::schemes()
            .iter()
            .map(|s| adit_config::scheme_help(s.name).unwrap())
            .collect::<Vec<_>>()
            .iter()
            .flat_map(|h| h.lines()),
    ) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(
        adit_config::scheme_help("SS"),
        adit_config::scheme_help("ss")
    );
    assert_eq!(adit_config::scheme_help("gopher"), None);
}
