//! The JSON of sing-box: `outbounds`, with selectors and URL tests as groups.
//!
//! Format: <https://sing-box.sagernet.org/configuration/outbound/>.

use adit_config::GroupKind;
use adit_config::text::Problem;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::outbounds::{
    OutboundGroup, OutboundHop, OutboundList, ServerPlace, Unusable, host_key_pins, http_hop,
    list_names, probe_target, shadowsocks_hop, socks_hop, ssh_hop, ssr_hop,
};
use crate::server_entry::{PluginEntry, Transports};
use crate::ssr::SsrSettings;
use crate::toml_output::{RouteSet, UrlBuilder};

/// The URL that a test requests if the document names none.
const DEFAULT_TEST: &str = "https://www.gstatic.com/generate_204";
/// Types that are neither servers nor groups, and refuse or answer requests themselves.
const REFUSALS: [&str; 2] = ["block", "dns"];
const GROUPS: [&str; 2] = ["selector", "urltest"];
/// Fields of the connection that change nothing that adit does.
const NO_EFFECT: &[&str] = &[
    "bind_address_no_port",
    "client_version",
    "connect_timeout",
    "domain_resolver",
    "domain_strategy",
    "fallback_delay",
    "host_key_algorithms",
    "network_strategy",
    "reuse_addr",
    "tcp_fast_open",
    "tcp_multi_path",
    "udp_fragment",
];

/// Returns true if the entries are those of such a document: its outbounds have types.
pub(super) fn is_sing_box(entries: &[(String, Json)]) -> bool {
    has_outbounds_with(entries, "type")
}

/// Returns true if an outbound has this field.
pub(super) fn has_outbounds_with(entries: &[(String, Json)], field: &str) -> bool {
    let has_field = |item: &Json| match item {
        Json::Object(fields) => fields.iter().any(|(key, _)| key == field),
        _ => false,
    };
    entries.iter().any(|(key, value)| match value {
        Json::List(items) => key == "outbounds" && items.iter().any(has_field),
        _ => false,
    })
}

/// Reads a whole document.
pub(super) fn convert_document(tree: &Json, clerk: &mut ConversionContext<'_>) -> RouteSet {
    let Some(mut top) = ObjectFields::of_object(tree, String::new(), clerk) else {
        return RouteSet::default();
    };
    let mut list = OutboundList::default();
    let items = top.list_field("outbounds", clerk);
    let mut groups = Vec::new();
    let mut refusals = Vec::new();
    list.read_outbounds(items, "outbounds", "tag", clerk, |fields, tag, clerk| {
        let kind = fields.string_field("type", clerk).unwrap_or_default();
        if GROUPS.contains(&kind) {
            groups.extend(read_group(kind, tag, fields, clerk));
            return Ok(None);
        }
        if REFUSALS.contains(&kind) {
            refusals.push(tag.to_owned());
            return Ok(None);
        }
        read_outbound(kind, fields, clerk).map(Some)
    });
    for name in &refusals {
        list.add_skipped(name);
    }
    for group in groups {
        list.add_group(group, clerk);
    }
    let others = top.take_unread();
    if !others.is_empty() {
        let names = list_names(others.into_iter());
        clerk.add_note(
            "",
            format!("only servers and groups are converted, not {names}"),
        );
    }
    list.into_routes("a document of sing-box", clerk)
}

fn read_outbound(
    kind: &str,
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<(OutboundHop, Option<String>), Unusable> {
    let before = fields.string_field("detour", clerk).map(str::to_owned);
    let hop = match kind {
        "shadowsocks" => read_shadowsocks(fields, clerk)?.into(),
        "shadowsocksr" => read_ssr(fields, clerk)?.into(),
        "socks" => {
            let version = fields.string_field("version", clerk).unwrap_or("5");
            if version != "5" {
                return Err(format!("SOCKS version {version} is not supported here").into());
            }
            let place = read_place(fields, None, clerk)?;
            let user = fields.string_field("username", clerk);
            let mut url = socks_hop(place, user, fields.string_field("password", clerk))?;
            if reads_udp_over_tcp(fields, clerk) {
                return Err("SOCKS has no `udp_over_tcp` here".into());
            }
            set_network(&mut url, fields, clerk);
            url.into()
        }
        "http" => {
            if let Some(mut tls) = fields.object_field("tls", clerk)
                && tls.bool_field("enabled", clerk) == Some(true)
            {
                return Err("adit does not connect to proxies over TLS".into());
            }
            let place = read_place(fields, None, clerk)?;
            let user = fields.string_field("username", clerk);
            http_hop(place, user, fields.string_field("password", clerk))?.into()
        }
        "ssh" => {
            let place = read_place(fields, Some(22), clerk)?;
            let user = fields.string_field("user", clerk).unwrap_or("root");
            let password = fields.string_field("password", clerk);
            let pins = host_key_pins(&fields.strings_field("host_key", clerk))?;
            ssh_hop(place, user, password, &pins)?.into()
        }
        "direct" => OutboundHop::Direct,
        "" => return Err("`type` is missing".into()),
        other => return Err(Unusable::Type(other.to_owned())),
    };
    // Multiplexing is optional for the server.
    fields.get("multiplex");
    for field in fields.take_unread() {
        if !NO_EFFECT.contains(&field) {
            clerk.add_note(format!("outbounds[].{field}"), "ignored");
        }
    }
    Ok((hop, before))
}

fn read_place(
    fields: &mut ObjectFields<'_>,
    default_port: Option<u16>,
    clerk: &mut ConversionContext<'_>,
) -> Result<ServerPlace, Unusable> {
    ServerPlace::read(fields, ("server", "server_port"), default_port, clerk)
}

fn read_shadowsocks(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let place = read_place(fields, None, clerk)?;
    let method = fields.string_field("method", clerk);
    let method = method.ok_or("`method` is missing")?;
    let password = fields.string_field("password", clerk).unwrap_or_default();
    let plugin = fields.string_field("plugin", clerk);
    let options = fields.string_field("plugin_opts", clerk);
    let plugin = plugin.map(|name| PluginEntry {
        name: name.to_owned(),
        options: options.unwrap_or_default().to_owned(),
        mode: Transports::TcpOnly,
    });
    let mut url = shadowsocks_hop(place, method, password, plugin, clerk)?;
    let over_tcp = reads_udp_over_tcp(fields, clerk);
    set_network(&mut url, fields, clerk);
    if over_tcp {
        url.set_key("udp", "over-tcp");
    }
    Ok(url)
}

fn read_ssr(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let place = read_place(fields, None, clerk)?;
    let method = fields.string_field("method", clerk);
    let method = method.ok_or("`method` is missing")?;
    let password = fields.string_field("password", clerk).unwrap_or_default();
    let settings = SsrSettings::read_fields(fields, clerk);
    let mut url = ssr_hop(place, method, password, settings, clerk)?;
    set_network(&mut url, fields, clerk);
    Ok(url)
}

/// `network`: one transport alone, or both if it is missing.
fn set_network(
    url: &mut UrlBuilder,
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) {
    match fields.strings_field("network", clerk).as_slice() {
        ["tcp"] => url.set_key("udp", "false"),
        ["udp"] => clerk.add_note(
            "outbounds[].network",
            "a server for UDP alone is not known: it is used for TCP, too",
        ),
        _ => {}
    }
}

/// `udp_over_tcp`: true, or an object.
fn reads_udp_over_tcp(fields: &mut ObjectFields<'_>, clerk: &mut ConversionContext<'_>) -> bool {
    if let Some(Json::Bool(value)) = fields.get("udp_over_tcp") {
        return *value;
    }
    let object = fields.object_field("udp_over_tcp", clerk);
    object.is_some_and(|mut object| object.bool_field("enabled", clerk) == Some(true))
}

fn read_group(
    kind: &str,
    tag: &str,
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Option<OutboundGroup> {
    let members = fields.strings_field("outbounds", clerk);
    if members.is_empty() {
        let title = format!("`{}` is empty", fields.field_path("outbounds"));
        clerk.add_problem(Problem::without_place(title, "a group has members"));
        return None;
    }
    let (kind, selected, check) = if kind == "selector" {
        let selected = fields.string_field("default", clerk).map(str::to_owned);
        (GroupKind::Manual, selected, None)
    } else {
        let url = fields.string_field("url", clerk).unwrap_or(DEFAULT_TEST);
        (GroupKind::Fastest, None, probe_target(url))
    };
    Some(OutboundGroup {
        name: tag.to_owned(),
        kind,
        members: members.into_iter().map(str::to_owned).collect(),
        selected,
        check,
        is_chain: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised() {
        for (text, expected) in [
            (r#"{"outbounds": [{"type": "direct"}]}"#, true),
            (r#"{"outbounds": [{"protocol": "freedom"}]}"#, false),
            (r#"{"outbounds": []}"#, false),
            (r#"{"servers": [{"type": "x"}]}"#, false),
        ] {
            let Json::Object(entries) = crate::json::parse_strict(text, "").unwrap() else {
                panic!("no object")
            };
            assert_eq!(is_sing_box(&entries), expected, "{text}");
        }
    }
}
