//! DNS tables, the references to them, and DNS listeners.

use std::path::PathBuf;
use std::time::Duration;

use adit_config::text::MemorySources;
use adit_config::{DnsAction, DnsServer, ListenerKind, Plan, explain_plan};

use crate::shortcuts::{shown, toml, words_with};

const FILE: &str = r#"
[run]
dns = "home"

[dns.home]
server = ["udp://192.168.1.1", "system"]
cache = 0
rules = [
  { match = ["*.ads.example", "set:ads"], dns = "reject" },
  { match = "*.far.example", and = "keyword:a", dns = "far" },
]

[dns.far]
server = ["https://dns.quad9.net/dns-query", "tls://9.9.9.9?name=dns.quad9.net"]
via = "ss://aes-128-gcm:@key@192.0.2.1:8388"

[route.own]
listen = "1080"
dns = "far"

[route.names]
listen = "dns://127.0.0.1:5353"

[route.direct]
listen = "1081"
dns = "system"

[set.ads]
file = "ads.txt"
"#;

fn read(text: &str) -> Result<Plan, Vec<adit_config::Problem>> {
    let sources = MemorySources::default()
        .with_file("/etc/key", "key")
        .with_variable("STATE_DIRECTORY", "/var/lib/adit");
    Plan::from_toml_with(text, "/etc/adit.toml", &sources)
}

#[test]
fn tables_are_read() {
    let plan = read(FILE).unwrap();
    let [home, far] = &plan.dns[..] else {
        panic!("{:?}", plan.dns)
    };
    assert_eq!((&*home.name, home.cache, home.place.line), ("home", 0, 5));
    assert_eq!(home.servers[1], DnsServer::System);
    assert_eq!(home.rules[0].action, DnsAction::Reject);
    assert_eq!(home.rules[1].action, DnsAction::Use("far".into()));
    assert_eq!(home.references().collect::<Vec<_>>(), ["far"]);
    assert_eq!((far.cache, far.via.stages.len()), (4096, 1));
    assert_eq!(plan.default_dns.as_deref(), Some("home"));
    let used: Vec<Option<&str>> = plan.routes.iter().map(|r| r.dns.as_deref()).collect();
    assert_eq!(used, [Some("far"), Some("home"), None]);
    let drawing = explain_plan(&plan);
    for line in [
        "names are looked up with dns far",
        "dns home",
        "● no cache",
        "├─ *.ads.example, set:ads ─▶ does not exist",
        "├─ (*.far.example) and (keyword:a) ─▶ dns far",
        "◎ udp://192.168.1.1, then system",
        "● cache: 4096 answers",
        "via ss://192.0.2.1:8388 ─▶ target",
        "◎ https://dns.quad9.net, then tls://9.9.9.9",
        "◎ dns home",
    ] {
        assert!(drawing.contains(line), "{line}\n{drawing}");
    }
}

#[test]
fn wrong_tables_have_a_place() {
    let text_of = |rest: &str| {
        format!("[route.a]\nlisten = \"http://127.0.0.1:1\"\ndns = \"x\"\n[dns.x]\n{rest}\n")
    };
    for (rest, line, title) in [
        ("", 4, "DNS table `x` has no server"),
        ("server = []", 4, "DNS table `x` has no server"),
        ("server = 1", 5, "`server` must be the URL of a DNS server"),
        (
            "server = 'udb://1.1.1.1'",
            5,
            "unknown scheme `udb` of a DNS server",
        ),
        (
            "server = 'udp://dns.example'",
            5,
            "the address of the DNS server `dns.example` is missing",
        ),
        (
            "server = 'https://dns.example/q'",
            5,
            "the address of the DNS server `dns.example` is missing",
        ),
        (
            "server = 'system'\nvia = 'socks5://192.0.2.1:1'",
            5,
            "the system's resolver does not use the chain",
        ),
        (
            "server = 'system'\ncache = 'all'",
            6,
            "`cache` must be a number",
        ),
        (
            "server = 'system'\ncache = 2000000",
            6,
            "`cache` must be a number from 0 to 1048576",
        ),
        (
            "server = 'system'\nservers = 'x'",
            6,
            "unknown key `servers`",
        ),
        (
            "server = 'system'\nvia = 'far'",
            6,
            "no group is called `far`",
        ),
        ("server = 'system'\nrules = 1", 6, "`rules` must be a list"),
        (
            "server = 'system'\nrules = [{ match = '*.a' }]",
            6,
            "a rule without `dns`",
        ),
        (
            "server = 'system'\nrules = [{ match = '*.a', dns = 'y' }]",
            6,
            "no DNS table is called `y`",
        ),
        (
            "server = 'system'\nrules = [{ match = ['*.a', '10.0.0.0/8'], dns = 'reject' }]",
            6,
            "`10.0.0.0/8` is not a condition on a name",
        ),
        (
            "server = 'system'\nrules = [{ match = 'set:no', dns = 'reject' }]",
            6,
            "no rule set `no`",
        ),
        (
            "server = 'system'\nrules = [{ match = '*.a', dns = 'x' }]",
            6,
            "a lookup would not end: `x` asks `x`",
        ),
        (
            "server = 'system'\n[dns.system]\nserver = 'udp://1.1.1.1'",
            6,
            "`system` cannot be the name of a DNS table",
        ),
        (
            "server = 'system'\n[dns.'a b']\nserver = 'udp://1.1.1.1'",
            6,
            "not a valid name for a DNS table",
        ),
        (
            "server = 'system'\n[route.b]\nlisten = '127.0.0.1:2'\ndns = 'reject'",
            8,
            "no DNS table is called `reject`",
        ),
        (
            "server = 'system'\n[run]\ndns = 'z'",
            7,
            "no DNS table is called `z`",
        ),
    ] {
        let text = shown(toml(&text_of(rest)));
        assert!(
            text.starts_with(&format!("error: {title}")),
            "{rest}\n{text}"
        );
        assert!(
            text.contains(&format!("adit.toml:{line}:")),
            "{rest}\n{text}"
        );
        assert_eq!(text.matches("error:").count(), 1, "{text}");
        assert!(text.contains("= help: ") || text.contains("^ "), "{text}");
    }
}

#[test]
fn circles_of_rules_are_found_once() {
    let text = r#"
[route.a]
listen = "1080"
[dns.a]
server = "system"
rules = [{ match = "*.b", dns = "b" }, { match = "*.c", dns = "c" }]
[dns.b]
server = "system"
rules = [{ match = "*.c", dns = "c" }]
[dns.c]
server = "system"
rules = [{ match = "*.a", dns = "system" }, { match = "*.b", dns = "b" }]
"#;
    let text = shown(toml(text));
    assert_eq!(text.matches("error:").count(), 1, "{text}");
    assert!(
        text.contains("a lookup would not end: `b` asks `c` asks `b`"),
        "{text}"
    );
}

#[test]
fn a_server_of_the_chain_is_not_looked_up_through_the_chain() {
    let file = |run: &str, rules: &str| {
        format!(
            "[route.a]\nlisten = '1080'\ndns = 'x'\n{run}\n[dns.x]\nserver = 'udp://9.9.9.9'\n\
             via = 'socks5://hop.example:1'\n{rules}\n"
        )
    };
    // The system's resolver looks it up.
    toml(&file("", "")).unwrap();
    let run = "[run]\ndns = 'x'";
    let text = shown(toml(&file(run, "")));
    assert!(
        text.starts_with("error: the lookup of `hop.example` would not end: `dns.x` needs it"),
        "{text}"
    );
    assert!(text.contains("adit.toml:8:8"), "{text}");
    let exception = "rules = [{ match = 'hop.example', dns = 'system' }]";
    toml(&file(run, exception)).unwrap();
    let other = "rules = [{ match = 'other.example', dns = 'system' }]";
    assert!(toml(&file(run, other)).is_err());
}

#[test]
fn a_listener_does_not_ask_itself() {
    let file = |server: &str, rules: &str| {
        format!(
            "[route.a]\nlisten = 'dns://127.0.0.1:5353'\ndns = 'x'\n\
             [dns.x]\nserver = 'udp://9.9.9.9'\nrules = {rules}\n[dns.y]\nserver = '{server}'\n"
        )
    };
    let leads_there = "[{ match = '*.a', dns = 'y' }]";
    for (server, rules, is_loop) in [
        ("udp://127.0.0.1:5353", leads_there, true),
        ("udp://127.0.0.1:5354", leads_there, false),
        ("tls://127.0.0.1:5353", leads_there, false),
        // The listener never uses this table.
        ("udp://127.0.0.1:5353", "[]", false),
    ] {
        let read = toml(&file(server, rules));
        assert_eq!(read.is_err(), is_loop, "{server} {rules}");
        if is_loop {
            let text = shown(read);
            assert!(text.starts_with("error: `udp://127.0.0.1:5353` is a listener of this plan"));
            assert!(text.contains("adit.toml:8:10"), "{text}");
        }
    }
}

#[test]
fn listeners_are_read() {
    let sources = MemorySources::default().with_variable("STATE_DIRECTORY", "/var/lib/adit");
    let listener = |url: &str| {
        let mut plan = words_with(&[url], &sources).unwrap();
        plan.routes.remove(0).listen.remove(0)
    };
    let plain = listener("dns://127.0.0.1:53");
    assert_eq!(plain.to_string(), "dns://127.0.0.1:53");
    assert_eq!(plain.limits.idle, Duration::from_secs(10));
    assert_eq!(plain.limits.max_connections, Some(256));
    let ListenerKind::Dns(dns) = &plain.kind else {
        panic!("{plain:?}")
    };
    assert!(dns.tcp && dns.udp && dns.fake_ip.is_empty() && dns.state.is_none());
    let fake = listener("dns://[::1]:53?tcp=false&fake_ip=198.18.0.0/15,fd00::/64");
    let ListenerKind::Dns(dns) = &fake.kind else {
        panic!("{fake:?}")
    };
    assert!(!dns.tcp);
    assert_eq!(dns.fake_ip.len(), 2);
    let default = "/var/lib/adit/fake-ip-198.18.0.0_15-fd00.._64";
    assert_eq!(dns.state, Some(PathBuf::from(default)));
    let kept = listener("dns://127.0.0.1:53?fake_ip=198.18.0.0/15&state=@names");
    let ListenerKind::Dns(dns) = &kept.kind else {
        panic!("{kept:?}")
    };
    assert_eq!(dns.state, Some(PathBuf::from("names")));
    for (url, title) in [
        ("dns://0.0.0.0:53", "refusing to be an open resolver"),
        ("dns://:53", "refusing to be an open resolver"),
        (
            "dns://127.0.0.1:53?udp=false&tcp=false",
            "both TCP and UDP are off",
        ),
        ("dns://127.0.0.1:53/a:1", "`dns://` has no target"),
        ("dns://127.0.0.1:53?state=@a", "`state` keeps the addresses"),
        (
            "dns://127.0.0.1:53?fake_ip=1.2.3.4",
            "bad value for `fake_ip`",
        ),
        ("dns://a@127.0.0.1:53", "`dns://` has no users"),
    ] {
        let text = shown(words_with(&[url], &sources));
        assert!(
            text.starts_with(&format!("error: {title}")),
            "{url}\n{text}"
        );
    }
    words_with(&["dns://0.0.0.0:53?allow_open_proxy=true"], &sources).unwrap();
    let text = shown(words_with(&["1080", "dns://127.0.0.1:53"], &sources));
    assert!(text.contains("cannot be a hop"), "{text}");
}

#[test]
fn networks_of_made_up_addresses_do_not_overlap() {
    let file = |second: &str| {
        format!(
            "[route.a]\nlisten = ['dns://127.0.0.1:1?fake_ip=198.18.0.0/15&state=@a', '{second}']\n"
        )
    };
    toml(&file("dns://127.0.0.1:2?fake_ip=198.18.0.0/15&state=@a")).unwrap();
    toml(&file("dns://127.0.0.1:2?fake_ip=10.0.0.0/15&state=@b")).unwrap();
    for second in [
        "dns://127.0.0.1:2?fake_ip=198.19.0.0/16&state=@a",
        "dns://127.0.0.1:2?fake_ip=198.18.0.0/15&state=@b",
        "dns://127.0.0.1:2?fake_ip=10.0.0.0/15&state=@a",
    ] {
        let text = shown(toml(&file(second)));
        assert!(
            text.starts_with("error: `dns://127.0.0.1:2` and `dns://127.0.0.1:1`"),
            "{text}"
        );
    }
}
