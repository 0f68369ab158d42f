//! Documents of Clash, sing-box and Xray: servers, chains and groups.

use adit_config::text::MemorySources;
use adit_config::{GroupKind, Hop, NamedGroup, Plan, Problem, Stage};
use adit_convert::{AllowedPlugins, ConvertOptions, Converted, Format, Role};

use crate::conversion::{notes, plan, problems};

const CLASH: &str = include_str!("../data/clash.yaml");
const SING_BOX: &str = include_str!("../data/sing-box.json");
const XRAY: &str = include_str!("../data/xray.json");

fn convert_with(
    text: &str,
    select: Option<&str>,
    plugins: &[&str],
) -> Result<Converted, Vec<Problem>> {
    let plugins = plugins.iter().map(|name| (*name).to_owned()).collect();
    let wish = ConvertOptions {
        role: None,
        plugins: AllowedPlugins::only(plugins),
        select: select.map(str::to_owned),
    };
    adit_convert::convert(text, "subscription", &wish, &MemorySources::default())
}

fn convert(text: &str) -> Converted {
    convert_with(text, None, &[]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn selected(text: &str, name: &str) -> Plan {
    let converted = convert_with(text, Some(name), &[]);
    plan(&converted.unwrap_or_else(|problems| panic!("{name}: {problems:?}")))
}

fn group(plan: &Plan) -> &NamedGroup {
    match &plan.routes[0].via.stages[..] {
        [Stage::Named(group)] => group,
        other => panic!("{other:?}"),
    }
}

/// The members with the hops before them.
fn members(group: &NamedGroup) -> Vec<String> {
    let members = group.leads.iter().zip(&group.member_names);
    let text = |(leads, name): (&Vec<Hop>, &String)| match leads.len() {
        0 => name.clone(),
        leads => format!("{leads} before {name}"),
    };
    members.map(text).collect()
}

fn assert_notes(converted: &Converted, expected: &[&str]) {
    let notes = notes(converted).join("\n");
    for said in expected {
        assert!(notes.contains(said), "{said}\n{notes}");
    }
    assert!(
        !notes.contains("p@ss") && !notes.contains("0123456"),
        "{notes}"
    );
}

#[test]
fn clash_is_read() {
    let converted = convert(CLASH);
    assert_eq!(converted.format, Format::Clash);
    assert_notes(
        &converted,
        &[
            "3 outbounds of types vmess (2), trojan (1) are not supported: `V1`, `V2`, `T1`",
            "`proxies[2]`: skipped: `proxies[2]` (`Obfs`): it starts the program `obfs-local`",
            "(`TLS`): adit does not connect to proxies over TLS",
            "the route uses `Auto`, which `🚀 节点选择` selects",
            "groups inside groups are replaced by their members",
            "groups without a member that can be used are skipped: `Nothing`",
            "not `mixed-port`, `mode`, `dns`, `base`, `rules`",
        ],
    );
    for line in [
        "# 🚀 节点选择",
        "kind = \"fastest\"\ncheck = \"www.gstatic.com:80\"",
        "check = \"probe.example:8443\"",
        "ss://aes-256-gcm:0123456@berlin.example:8388",
        "@[2001:db8::2]:8389/?udp=over-tcp#Osaka",
        "via = [\"Auto\"]",
    ] {
        assert!(
            converted.toml.contains(line),
            "{line}\n{}",
            &*converted.toml
        );
    }
    let auto = plan(&converted);
    assert_eq!(group(&auto).kind, GroupKind::Fastest);
    assert_eq!(members(group(&auto)), ["Osaka", "🇩🇪 Berlin"]);
}

#[test]
fn groups_of_clash_are_groups() {
    for (name, kind, expected) in [
        // The group itself, by both of its names; a server is selected rather than `DIRECT`.
        (
            "🚀 节点选择",
            GroupKind::Manual,
            &["Osaka", "🇩🇪 Berlin", "direct://"][..],
        ),
        (
            "group",
            GroupKind::Manual,
            &["Osaka", "🇩🇪 Berlin", "direct://"],
        ),
        (
            "Reserve",
            GroupKind::Failover,
            &["1 before Office", "Old", "Osaka", "🇩🇪 Berlin"],
        ),
        ("Turns", GroupKind::Spread, &["Osaka", "1 before Office"]),
        (
            "Sticky",
            GroupKind::SpreadByDestination,
            &["Osaka", "Shell"],
        ),
        ("Path", GroupKind::Failover, &["1 before Osaka"]),
    ] {
        let plan = selected(CLASH, name);
        let group = group(&plan);
        assert_eq!(group.kind, kind, "{name}");
        let found = members(group);
        assert_eq!(found, expected, "{name}");
        assert_eq!(group.selected, 0, "{name}");
    }
    let server = selected(CLASH, "Office");
    assert_eq!(server.routes[0].via.stages.len(), 2);
    for (name, said) in [
        ("Unknown", "no group or server is called `Unknown`"),
        ("V1", "`V1` has no servers that can be used"),
        ("Nothing", "`Nothing` has no servers that can be used"),
    ] {
        let told = problems(convert_with(CLASH, Some(name), &[]));
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn plugins_of_clash_are_programs() {
    let converted = convert_with(CLASH, None, &["obfs-local", "v2ray-plugin"]).unwrap();
    let server = |name: &str| {
        let all = convert_with(CLASH, Some(name), &["obfs-local", "v2ray-plugin"]).unwrap();
        let plan = plan(&all);
        let [Stage::Single(Hop::Server(hop))] = &plan.routes[0].via.stages[..] else {
            panic!("{:?}", plan.routes[0].via)
        };
        let plugin = hop.kind.plugin().unwrap();
        (plugin.program.clone(), plugin.options.clone())
    };
    assert_eq!(
        server("Obfs"),
        (
            "obfs-local".into(),
            r"obfs=tls;obfs-host=a\;b.example".into()
        )
    );
    assert_eq!(
        server("Web"),
        (
            "v2ray-plugin".into(),
            "tls;host=web.example;path=/ws;mux=0".into()
        )
    );
    plan(&converted);
}

#[test]
fn sing_box_is_read() {
    let converted = convert(SING_BOX);
    assert_eq!(converted.format, Format::SingBox);
    assert_notes(
        &converted,
        &[
            "1 outbound of type trojan is not supported: `trojan`",
            "(`key`): it has no password, and private keys are not taken",
            "not `log`, `route`",
        ],
    );
    let proxy = plan(&converted);
    let proxy = group(&proxy);
    assert_eq!(
        (proxy.name.as_str(), proxy.kind),
        ("proxy", GroupKind::Manual)
    );
    assert_eq!(members(proxy), ["one", "1 before two", "direct://"]);
    assert_eq!(proxy.selected, 1);
    let auto = selected(SING_BOX, "auto");
    assert_eq!(members(group(&auto)), ["one", "1 before two"]);
    assert_eq!(
        group(&auto).check.as_ref().unwrap().to_string(),
        "probe.example:443"
    );
    for (name, text) in [
        ("one", "udp=over-tcp"),
        ("two", "udp=false"),
        ("home", "socks5://me:pw@192.0.2.7:1080"),
        ("office", "http://proxy.example:3128"),
        ("shell", "host_key=SHA256:"),
        ("direct", "direct://"),
    ] {
        let converted = convert_with(SING_BOX, Some(name), &[]).unwrap();
        plan(&converted);
        let via = converted.toml.split("\nvia = ").nth(1).unwrap();
        assert!(via.contains(text), "{name}: {via}");
    }
}

#[test]
fn xray_is_read() {
    let converted = convert(XRAY);
    assert_eq!(converted.format, Format::Xray);
    assert_notes(
        &converted,
        &[
            "1 outbound of type vless is not supported: `ss-vless`",
            "(`ss-ws`): transport `ws` is not supported",
            "`direct` is not used if all members fail",
            "only balancers are converted",
        ],
    );
    let fast = plan(&converted);
    let fast = group(&fast);
    assert_eq!(
        (fast.name.as_str(), fast.kind),
        ("fast", GroupKind::Fastest)
    );
    assert_eq!(members(fast), ["ss-a", "1 before ss-b"]);
    assert_eq!(
        fast.check.as_ref().unwrap().to_string(),
        "probe.example:443"
    );
    let any = selected(XRAY, "any");
    assert_eq!(
        (group(&any).kind, members(group(&any)).len()),
        (GroupKind::Spread, 2)
    );
    // A list of whole configurations.
    let list = r#"[{"remarks": "One", "outbounds": [
        {"protocol": "shadowsocks", "tag": "proxy", "settings": {"address": "a.example", "port": 1, "method": "aes-128-gcm", "password": "pw"}},
        {"protocol": "freedom", "tag": "direct"}]},
        {"remarks": "One", "outbounds": [
        {"protocol": "shadowsocks", "tag": "proxy", "settings": {"address": "b.example", "port": 2, "method": "aes-128-gcm", "password": "pw"}}]}]"#;
    let converted = convert(list);
    assert!(
        converted.toml.contains("a.example:1/#One\"")
            || converted.toml.contains("a.example:1#One\""),
        "{}",
        &*converted.toml
    );
    assert!(
        matches!(&plan(&converted).routes[0].via.stages[..], [Stage::Group(hops)] if hops.len() == 2)
    );
    selected(list, "One (2)");
}

#[test]
fn documents_without_groups_are_failover() {
    let text = "proxies:
  - {name: a, type: socks5, server: a.example, port: 1}
  - {name: b, type: socks5, server: b.example, port: 2}
";
    let failover = plan(&convert(text));
    assert!(matches!(&failover.routes[0].via.stages[..], [Stage::Group(hops)] if hops.len() == 2));
    // Chains cannot be members of a group without a name.
    let chained = plan(&convert(
        &text.replace("port: 2", "port: 2, dialer-proxy: a"),
    ));
    assert_eq!(members(group(&chained)), ["a", "1 before b"]);
    let one = plan(&convert(
        "proxies: [{name: a, type: http, server: a.example, port: 1}]",
    ));
    assert!(matches!(&one.routes[0].via.stages[..], [Stage::Single(_)]));
}

#[test]
fn what_is_wrong_is_one_error() {
    let server = "{name: a, type: socks5, server: a.example, port: 1}";
    let groups = |groups: &str| format!("proxies: [{server}]\nproxy-groups: [{groups}]");
    let nested: Vec<String> = (0..40)
        .map(|at| format!("{{name: g{at}, type: select, proxies: [g{}]}}", at + 1))
        .collect();
    for (text, said) in [
        ("proxies: 5".to_owned(), "`proxies` is not a list"),
        ("proxies: [5]".to_owned(), "`proxies[0]` is not an object"),
        ("proxies: []".to_owned(), "the document has no servers"),
        (
            format!("proxies: [{server}]\nproxy-groups: x"),
            "`proxy-groups` is not a list",
        ),
        (groups("x"), "`proxy-groups[0]` is not an object"),
        (
            groups("{type: select, proxies: [a]}"),
            "`proxy-groups[0].name` is missing",
        ),
        (
            groups(
                "{name: x, type: select, proxies: [a, y]}, {name: y, type: select, proxies: [x]}",
            ),
            "contains itself",
        ),
        (
            groups("{name: x, type: select, proxies: [x]}"),
            "group `x` contains itself",
        ),
        (groups(&nested.join(", ")), "inside each other to a depth"),
        (
            "proxies: [{name: a, type: socks5, server: a.example, port: x}]".to_owned(),
            "`proxies[0].port` is not a port",
        ),
        (
            "proxies: [{name: a, type: socks5, server: a.example, port: 1, dialer-proxy: a}]"
                .to_owned(),
            "outbound `a` is reached through itself",
        ),
        (
            "proxies: [{name: a, type: vmess, server: a.example, port: 1}]".to_owned(),
            "1 outbound of type vmess is not supported: `a`",
        ),
        ("proxies: &x [*x]".to_owned(), "an alias inside the node"),
        ("proxies: [".to_owned(), "not YAML"),
        (
            r#"{"outbounds": [{"type": "selector", "tag": "x", "outbounds": ["x"]}]}"#.to_owned(),
            "the document has no servers",
        ),
        (
            r#"{"outbounds": [{"type": 5}]}"#.to_owned(),
            "`outbounds[0].type` is not a text",
        ),
    ] {
        let told = problems(convert_with(&text, None, &[]));
        assert!(told.contains(said), "{text}\n{told}");
        assert_eq!(told.matches("error: ").count(), 1, "{text}\n{told}");
    }
    // A server with a wrong type does not affect the others.
    let mixed = convert(&format!(
        "proxies: [{server}, {{name: b, type: ss, port: []}}, 7]"
    ));
    assert_notes(
        &mixed,
        &[
            "`proxies[1].port` is not a port",
            "`proxies[2]` is not an object",
        ],
    );
    let long = format!("proxies:\n{}", "#".repeat(17 << 20));
    let told = problems(convert_with(&long, None, &[]));
    assert!(told.contains("has more than 16777216 bytes"), "{told}");
    let wish = ConvertOptions {
        role: Some(Role::Server),
        ..ConvertOptions::default()
    };
    let as_server = adit_convert::convert(CLASH, "s", &wish, &MemorySources::default());
    assert!(problems(as_server).contains("a document of Clash is for clients"));
}

#[test]
fn a_server_of_a_list_can_be_selected() {
    let links = "ss://YWVzLTI1Ni1nY206cGFzcw@a.example:8388#one\nss://YWVzLTI1Ni1nY206cGFzcw@b.example:8388#two\n";
    let one = selected(links, "two");
    assert!(matches!(&one.routes[0].via.stages[..], [Stage::Single(_)]));
    let told = problems(convert_with(links, Some("three"), &[]));
    assert!(
        told.contains("no server is called `three`") && told.contains("`one`, `two`"),
        "{told}"
    );
}
