//! The YAML of Clash and mihomo: `proxies` and `proxy-groups`.
//!
//! Format: <https://wiki.metacubex.one/config/>. Rules, DNS and ports are settings of that program and are not
//! converted; proxy providers are not fetched.

use adit_config::GroupKind;
use adit_config::text::Problem;
use regex_lite::Regex;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::outbounds::{
    OutboundGroup, OutboundHop, OutboundList, ReadOutbound, ServerPlace, Unusable, host_key_pins,
    http_hop, list_names, probe_target, shadowsocks_hop, socks_hop, ssh_hop, ssr_hop,
};
use crate::server_entry::{self, PluginEntry, Transports};
use crate::ssr::SsrSettings;
use crate::toml_output::{RouteSet, UrlBuilder};

/// The names that every document has for the target itself, and for refusals.
const DIRECT: &str = "DIRECT";
const REFUSALS: [&str; 5] = ["REJECT", "REJECT-DROP", "PASS", "COMPATIBLE", "GLOBAL"];
/// Fields of a proxy that change nothing that adit does.
const NO_EFFECT: &[&str] = &[
    "client-fingerprint",
    "fast-open",
    "ip-version",
    "mptcp",
    "tfo",
];
/// Fields of a group that change nothing that adit does.
const GROUP_NO_EFFECT: &[&str] = &[
    "disable-udp",
    "empty-fallback",
    "expected-status",
    "hidden",
    "icon",
    "interval",
    "lazy",
    "max-failed-times",
    "timeout",
    "tolerance",
];

/// True if a text is such a document: a line of it opens one of its lists.
pub(super) fn is_clash(text: &str) -> bool {
    text.lines().any(|line| {
        let key = ["proxies", "proxy-groups"].into_iter().find_map(|key| {
            let line = line.trim_start_matches(['"', '\'']);
            line.strip_prefix(key)
        });
        let rest = key.map(|rest| rest.trim_start_matches(['"', '\'']).trim_start());
        rest.and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    })
}

/// Reads a whole document.
pub(super) fn convert_document(tree: &Json, clerk: &mut ConversionContext<'_>) -> RouteSet {
    let Some(mut top) = ObjectFields::of_object(tree, String::new(), clerk) else {
        return RouteSet::default();
    };
    let mut list = OutboundList::default();
    let proxies = top.list_field("proxies", clerk);
    list.read_outbounds(proxies, "proxies", "name", clerk, read_proxy);
    list.add_direct(DIRECT);
    for name in REFUSALS {
        list.add_skipped(name);
    }
    let mut providers = 0;
    let groups = top.list_field("proxy-groups", clerk);
    for (i, item) in groups.iter().enumerate() {
        let path = server_entry::item_path("proxy-groups", i);
        let Some(fields) = ObjectFields::of_object(item, path, clerk) else {
            return RouteSet::default();
        };
        if let Some(group) = read_group(fields, &list, &mut providers, clerk) {
            list.add_group(group, clerk);
        }
    }
    if let Some(Json::Object(entries)) = top.get("proxy-providers")
        && !entries.is_empty()
    {
        let names = list_names(entries.iter().map(|(name, _)| name.as_str()));
        let text = format!("documents of providers are not fetched: {names}");
        clerk.add_note("proxy-providers", text);
    }
    let others = top.take_unread();
    if !others.is_empty() {
        let names = list_names(others.into_iter());
        clerk.add_note(
            "",
            format!("only servers and groups are converted, not {names}"),
        );
    }
    list.into_routes("a document of Clash", clerk)
}

fn read_proxy(
    fields: &mut ObjectFields<'_>,
    _: &str,
    clerk: &mut ConversionContext<'_>,
) -> ReadOutbound {
    let kind = fields.string_field("type", clerk).unwrap_or_default();
    let before = fields.string_field("dialer-proxy", clerk);
    let before = before.map(str::to_owned);
    let hop = match kind {
        "ss" => read_shadowsocks(fields, clerk)?.into(),
        "ssr" => read_ssr(fields, clerk)?.into(),
        "socks5" => {
            refuse_tls(fields, clerk)?;
            let place = read_place(fields, None, clerk)?;
            let user = fields.string_field("username", clerk);
            let mut url = socks_hop(place, user, fields.string_field("password", clerk))?;
            if fields.bool_field("udp", clerk) == Some(false) {
                url.set_key("udp", "false");
            }
            url.into()
        }
        "http" => {
            refuse_tls(fields, clerk)?;
            let place = read_place(fields, None, clerk)?;
            let user = fields.string_field("username", clerk);
            let url = http_hop(place, user, fields.string_field("password", clerk))?;
            fields.get("udp");
            url.into()
        }
        "ssh" => {
            let place = read_place(fields, Some(22), clerk)?;
            let user = fields.string_field("username", clerk).unwrap_or("root");
            let password = fields.string_field("password", clerk);
            let pins = host_key_pins(&fields.strings_field("host-key", clerk))?;
            fields.get("host-key-algorithms");
            fields.get("udp");
            ssh_hop(place, user, password, &pins)?.into()
        }
        "direct" => OutboundHop::Direct,
        "" => return Err("`type` is missing".into()),
        other => return Err(Unusable::Type(other.to_owned())),
    };
    // Multiplexing is optional for the server.
    fields.get("smux");
    for field in fields.take_unread() {
        if !NO_EFFECT.contains(&field) {
            clerk.add_note(format!("proxies[].{field}"), "ignored");
        }
    }
    Ok(Some((hop, before)))
}

fn read_place(
    fields: &mut ObjectFields<'_>,
    default_port: Option<u16>,
    clerk: &mut ConversionContext<'_>,
) -> Result<ServerPlace, Unusable> {
    ServerPlace::read(fields, ("server", "port"), default_port, clerk)
}

fn refuse_tls(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<(), Unusable> {
    for field in ["skip-cert-verify", "sni", "fingerprint"] {
        fields.get(field);
    }
    match fields.bool_field("tls", clerk) {
        Some(true) => Err("adit does not connect to proxies over TLS".into()),
        _ => Ok(()),
    }
}

fn read_shadowsocks(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let place = read_place(fields, None, clerk)?;
    let method = fields.string_field("cipher", clerk);
    let method = method.ok_or("`cipher` is missing")?;
    let password = fields.string_field("password", clerk).unwrap_or_default();
    let plugin = read_plugin(fields, clerk)?;
    let mut url = shadowsocks_hop(place, method, password, plugin, clerk)?;
    let over_tcp = fields.bool_field("udp-over-tcp", clerk) == Some(true);
    // The versions differ in their first bytes, and the server supports both.
    fields.get("udp-over-tcp-version");
    match fields.bool_field("udp", clerk) {
        Some(false) => url.set_key("udp", "false"),
        _ if over_tcp => url.set_key("udp", "over-tcp"),
        _ => {}
    }
    Ok(url)
}

fn read_ssr(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let place = read_place(fields, None, clerk)?;
    let method = fields.string_field("cipher", clerk);
    let method = match method.ok_or("`cipher` is missing")? {
        // The name of this program for it.
        "dummy" => "none",
        other => other,
    };
    let password = fields.string_field("password", clerk).unwrap_or_default();
    let mut text = |name: &str| {
        let text = fields.string_field(name, clerk);
        text.unwrap_or_default().to_owned()
    };
    let settings = SsrSettings {
        protocol: text("protocol"),
        protocol_param: text("protocol-param"),
        obfs: text("obfs"),
        obfs_param: text("obfs-param"),
        redirect: Vec::new(),
    };
    let udp = fields.bool_field("udp", clerk);
    let mut url = ssr_hop(place, method, password, settings, clerk)?;
    if udp == Some(false) {
        url.set_key("udp", "false");
    }
    Ok(url)
}

/// The SIP003 program for a plugin that is built into Clash.
fn read_plugin(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<Option<PluginEntry>, Unusable> {
    let Some(plugin) = fields.string_field("plugin", clerk) else {
        fields.get("plugin-opts");
        return Ok(None);
    };
    let mut options = Vec::new();
    let mut from = fields.object_field("plugin-opts", clerk);
    let mut text = |name: &str, clerk: &mut ConversionContext<'_>| {
        let from = from.as_mut()?;
        from.string_field(name, clerk).map(str::to_owned)
    };
    let mode = text("mode", clerk);
    let host = text("host", clerk);
    let path = text("path", clerk);
    let mut flag = |name: &str, clerk: &mut ConversionContext<'_>| {
        from.as_mut().and_then(|from| from.bool_field(name, clerk))
    };
    let name = match (plugin, mode.as_deref()) {
        ("obfs", Some(mode @ ("http" | "tls"))) => {
            options.push(format!("obfs={mode}"));
            options.extend(host.map(|host| format!("obfs-host={}", escape_option(&host))));
            "obfs-local"
        }
        ("v2ray-plugin", Some("websocket")) => {
            if flag("skip-cert-verify", clerk) == Some(true) {
                return Err("v2ray-plugin has no `skip-cert-verify`".into());
            }
            if flag("tls", clerk) == Some(true) {
                options.push("tls".to_owned());
            }
            options.extend(host.map(|host| format!("host={}", escape_option(&host))));
            options.extend(path.map(|path| format!("path={}", escape_option(&path))));
            if flag("mux", clerk) == Some(false) {
                options.push("mux=0".to_owned());
            }
            "v2ray-plugin"
        }
        ("obfs" | "v2ray-plugin", _) => {
            return Err(format!("its `mode` of the plugin `{plugin}` is not known").into());
        }
        (other, _) => return Err(format!("plugin `{other}` is not supported").into()),
    };
    if let Some(from) = &mut from {
        for field in from.take_unread() {
            clerk.add_note(format!("proxies[].plugin-opts.{field}"), "ignored");
        }
    }
    Ok(Some(PluginEntry {
        name: name.to_owned(),
        options: options.join(";"),
        mode: Transports::TcpOnly,
    }))
}

/// A value among the options of a plugin (SIP003).
fn escape_option(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ';' | '=') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

fn read_group(
    mut fields: ObjectFields<'_>,
    list: &OutboundList,
    providers: &mut usize,
    clerk: &mut ConversionContext<'_>,
) -> Option<OutboundGroup> {
    let Some(name) = fields.string_field("name", clerk) else {
        let title = format!("`{}` is missing", fields.field_path("name"));
        clerk.add_problem(Problem::without_place(title, "every group has a name"));
        return None;
    };
    let kind = fields.string_field("type", clerk).unwrap_or_default();
    let strategy = fields.string_field("strategy", clerk);
    let (group_kind, is_chain) = match (kind, strategy) {
        ("select", _) => (GroupKind::Manual, false),
        ("url-test", _) => (GroupKind::Fastest, false),
        ("fallback", _) => (GroupKind::Failover, false),
        ("load-balance", Some("round-robin")) => (GroupKind::Spread, false),
        ("load-balance", _) => (GroupKind::SpreadByDestination, false),
        ("relay", _) => (GroupKind::Failover, true),
        (other, _) => {
            let text = format!("groups of type `{other}` are not known; failover is used");
            clerk.add_note(format!("{}.type", fields.object_path()), text);
            (GroupKind::Failover, false)
        }
    };
    let written = fields.strings_field("proxies", clerk);
    let mut members: Vec<String> = written.into_iter().map(str::to_owned).collect();
    let use_providers = fields.strings_field("use", clerk);
    let mut flag = |name: &str| fields.bool_field(name, clerk) == Some(true);
    let all = flag("include-all") | flag("include-all-proxies");
    let all_providers = flag("include-all-providers");
    if (!use_providers.is_empty() || all_providers) && *providers == 0 {
        *providers += 1;
        clerk.add_note(
            "proxy-groups[].use",
            "servers of providers are not members of the groups",
        );
    }
    let filter = fields.string_field("filter", clerk);
    let exclude = fields.string_field("exclude-filter", clerk);
    if all {
        let path = fields.object_path().to_owned();
        let filter = filter.and_then(|text| compile(text, &path, clerk));
        let exclude = exclude.and_then(|text| compile(text, &path, clerk));
        let fits = |name: &&str| {
            let any = |patterns: &[Regex]| patterns.iter().any(|one| one.is_match(name));
            filter.as_deref().is_none_or(any) && !exclude.as_deref().is_some_and(any)
        };
        members.extend(list.server_names().filter(fits).map(str::to_owned));
    }
    let check = fields.string_field("url", clerk).and_then(probe_target);
    for field in fields.take_unread() {
        if !GROUP_NO_EFFECT.contains(&field) {
            clerk.add_note(format!("proxy-groups[].{field}"), "ignored");
        }
    }
    Some(OutboundGroup {
        name: name.to_owned(),
        kind: group_kind,
        members,
        selected: None,
        check,
        is_chain,
    })
}

/// The regular expressions of a filter, separated by backquotes; `None` after a note if one is not valid here.
fn compile(text: &str, path: &str, clerk: &mut ConversionContext<'_>) -> Option<Vec<Regex>> {
    let patterns: Result<Vec<Regex>, _> = text.split('`').map(Regex::new).collect();
    if patterns.is_err() {
        let text = "the regular expression is not supported, for example because of look-around: it has no effect";
        clerk.add_note(path, text);
    }
    patterns.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised() {
        for (text, clash) in [
            ("proxies:\n", true),
            ("port: 1\nproxies: []", true),
            ("\"proxies\": [a]", true),
            ("a: b\n'proxy-groups' :\n", true),
            ("proxies\n", false),
            ("  proxies:\n", false),
            ("proxies:x", false),
            ("ss://a@b:1#proxies: 1", false),
            ("# proxies:", false),
        ] {
            assert_eq!(is_clash(text), clash, "{text}");
        }
    }

    #[test]
    fn options_of_plugins_are_escaped() {
        assert_eq!(escape_option(r"/a;b=c\"), r"/a\;b\=c\\");
    }
}
