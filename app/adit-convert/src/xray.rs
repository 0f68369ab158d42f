//! The JSON of Xray and V2Ray: `outbounds`, with balancers as groups.
//!
//! Format: <https://xtls.github.io/config/outbound.html>. A subscription can also be a list of whole configurations,
//! each with one server.

use std::collections::HashMap;

use adit_config::GroupKind;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::outbounds::{
    OutboundGroup, OutboundHop, OutboundList, ReadOutbound, ServerPlace, Unusable, http_hop,
    list_names, probe_target, shadowsocks_hop, socks_hop,
};
use crate::server_entry;
use crate::sing_box::has_outbounds_with;
use crate::toml_output::{RouteSet, UrlBuilder};

/// Protocols that are not servers, and refuse or answer requests themselves.
const REFUSALS: [&str; 3] = ["blackhole", "dns", "loopback"];
/// Fields that change nothing that adit does.
const NO_EFFECT: &[&str] = &["mux", "sendThrough", "tag", "targetStrategy"];

/// Returns true if the entries are those of such a document: its outbounds have protocols.
pub(super) fn is_xray(entries: &[(String, Json)]) -> bool {
    has_outbounds_with(entries, "protocol")
}

/// Returns true if the items of a list are such documents.
pub(super) fn is_list(items: &[Json]) -> bool {
    items
        .iter()
        .any(|item| matches!(item, Json::Object(entries) if is_xray(entries)))
}

/// Reads a whole document.
pub(super) fn convert_document(tree: &Json, clerk: &mut ConversionContext<'_>) -> RouteSet {
    let mut list = OutboundList::default();
    if let Some(mut top) = ObjectFields::of_object(tree, String::new(), clerk) {
        let balancers = read_document(&mut top, &mut list, clerk);
        add_balancers(&balancers, &mut list, clerk);
        let others = top.take_unread();
        if !others.is_empty() {
            let names = list_names(others.into_iter());
            clerk.add_note(
                "",
                format!("only servers and groups are converted, not {names}"),
            );
        }
    }
    list.into_routes("a document of Xray", clerk)
}

/// Reads a list of documents, of which only the servers are used.
pub(super) fn convert_list(items: &[Json], clerk: &mut ConversionContext<'_>) -> RouteSet {
    let mut list = OutboundList::default();
    let mut numbers = HashMap::new();
    for (i, item) in items.iter().enumerate() {
        let path = server_entry::item_path("", i);
        let Some(mut top) = ObjectFields::of_object(item, path, clerk) else {
            break;
        };
        // The name of the configuration is the name of its server.
        let remarks = top.string_field("remarks", clerk);
        let base = remarks.map_or_else(|| format!("server {}", i + 1), str::to_owned);
        let path = top.field_path("outbounds");
        let outbounds = top.list_field("outbounds", clerk);
        for item in outbounds.iter().filter(|item| !is_refusal_or_direct(item)) {
            let number = numbers.entry(base.clone()).or_insert(0_usize);
            *number += 1;
            let name = match *number {
                1 => base.clone(),
                number => format!("{base} ({number})"),
            };
            let item = core::slice::from_ref(item);
            list.read_named_outbounds(item, &path, Some(&name), "tag", clerk, read_outbound);
        }
    }
    list.into_routes("a list of documents of Xray", clerk)
}

fn is_refusal_or_direct(item: &Json) -> bool {
    let Json::Object(entries) = item else {
        return false;
    };
    let protocol = entries.iter().find(|(key, _)| key == "protocol");
    let protocol = protocol.and_then(|(_, value)| value.as_str());
    protocol.is_some_and(|name| name == "freedom" || REFUSALS.contains(&name))
}

/// A balancer, whose selectors are prefixes of tags.
struct Balancer {
    group: OutboundGroup,
    prefixes: Vec<String>,
    fallback: Option<String>,
}

fn read_document(
    top: &mut ObjectFields<'_>,
    list: &mut OutboundList,
    clerk: &mut ConversionContext<'_>,
) -> Vec<Balancer> {
    let items = top.list_field("outbounds", clerk);
    list.read_outbounds(items, "outbounds", "tag", clerk, read_outbound);
    let check = ["burstObservatory", "observatory"]
        .into_iter()
        .find_map(|name| {
            let mut object = top.object_field(name, clerk)?;
            let url = object.string_field("probeURL", clerk);
            let url = url.or_else(|| object.string_field("probeUrl", clerk));
            if url.is_some() {
                return url.and_then(probe_target);
            }
            let mut ping = object.object_field("pingConfig", clerk)?;
            ping.string_field("destination", clerk)
                .and_then(probe_target)
        });
    let Some(mut routing) = top.object_field("routing", clerk) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for mut fields in server_entry::read_objects(&mut routing, "balancers", clerk) {
        let Some(tag) = fields.string_field("tag", clerk) else {
            let path = fields.object_path().to_owned();
            clerk.add_note(path, "a balancer without `tag` is skipped");
            continue;
        };
        let prefixes = fields.strings_field("selector", clerk);
        let strategy = fields.object_field("strategy", clerk);
        let strategy = strategy.and_then(|mut fields| fields.string_field("type", clerk));
        let kind = match strategy {
            Some("leastPing" | "leastLoad") => GroupKind::Fastest,
            _ => GroupKind::Spread,
        };
        let fallback = fields.string_field("fallbackTag", clerk);
        found.push(Balancer {
            group: OutboundGroup {
                name: tag.to_owned(),
                kind,
                members: Vec::new(),
                selected: None,
                check: check.clone(),
                is_chain: false,
            },
            prefixes: prefixes.into_iter().map(str::to_owned).collect(),
            fallback: fallback.map(str::to_owned),
        });
    }
    if !routing.take_unread().is_empty() {
        clerk.add_note("routing", "only balancers are converted");
    }
    found
}

fn add_balancers(
    balancers: &[Balancer],
    list: &mut OutboundList,
    clerk: &mut ConversionContext<'_>,
) {
    for balancer in balancers {
        let has_prefix = |name: &&str| {
            let mut prefixes = balancer.prefixes.iter();
            prefixes.any(|prefix| name.starts_with(prefix.as_str()))
        };
        let members = list.server_names().filter(has_prefix).map(str::to_owned);
        let members: Vec<String> = members.collect();
        if let Some(fallback) = &balancer.fallback {
            let text = format!("`{fallback}` is not used if all members fail");
            clerk.add_note("routing.balancers[].fallbackTag", text);
        }
        let group = OutboundGroup {
            name: balancer.group.name.clone(),
            members,
            check: balancer.group.check.clone(),
            selected: None,
            ..balancer.group
        };
        list.add_group(group, clerk);
    }
}

fn read_outbound(
    fields: &mut ObjectFields<'_>,
    _: &str,
    clerk: &mut ConversionContext<'_>,
) -> ReadOutbound {
    let protocol = fields.string_field("protocol", clerk).unwrap_or_default();
    if REFUSALS.contains(&protocol) {
        return Ok(None);
    }
    let mut before = None;
    if let Some(mut proxy) = fields.object_field("proxySettings", clerk) {
        before = proxy.string_field("tag", clerk).map(str::to_owned);
    }
    let settings = fields.object_field("settings", clerk);
    let hop = match protocol {
        "freedom" | "direct" => return Ok(Some((OutboundHop::Direct, None))),
        "shadowsocks" | "socks" | "http" => {
            let stream = read_stream_settings(fields, clerk)?;
            before = before.or(stream);
            let mut settings = settings.ok_or("`settings` is missing")?;
            read_server(protocol, &mut settings, clerk)?
        }
        "" => return Err("`protocol` is missing".into()),
        other => return Err(Unusable::Type(other.to_owned())),
    };
    for field in fields.take_unread() {
        if !NO_EFFECT.contains(&field) {
            clerk.add_note(format!("outbounds[].{field}"), "ignored");
        }
    }
    Ok(Some((hop.into(), before)))
}

/// Refuses transports other than TCP, and returns the outbound before this one.
fn read_stream_settings(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<Option<String>, Unusable> {
    let Some(mut stream) = fields.object_field("streamSettings", clerk) else {
        return Ok(None);
    };
    let network = stream.string_field("network", clerk).unwrap_or("raw");
    if !["raw", "tcp"].contains(&network) {
        return Err(format!("transport `{network}` is not supported").into());
    }
    let security = stream.string_field("security", clerk).unwrap_or("none");
    if security != "none" {
        return Err(format!("security `{security}` is not supported").into());
    }
    for name in ["rawSettings", "tcpSettings"] {
        let Some(mut raw) = stream.object_field(name, clerk) else {
            continue;
        };
        let header = raw.object_field("header", clerk);
        let kind = header.and_then(|mut header| header.string_field("type", clerk));
        if let Some(kind) = kind.filter(|kind| *kind != "none") {
            return Err(format!("header `{kind}` is not supported").into());
        }
    }
    let Some(mut socket) = stream.object_field("sockopt", clerk) else {
        return Ok(None);
    };
    Ok(socket.string_field("dialerProxy", clerk).map(str::to_owned))
}

/// Reads the server of an outbound: the settings themselves, or the first of `servers`.
fn read_server(
    protocol: &str,
    settings: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    if !settings.has_field("servers") {
        return read_server_fields(protocol, settings, clerk);
    }
    let mut servers = server_entry::read_objects(settings, "servers", clerk);
    if servers.len() > 1 {
        clerk.add_note(
            settings.field_path("servers"),
            "only the first server is used",
        );
    }
    let first = servers.first_mut().ok_or("it has no server")?;
    read_server_fields(protocol, first, clerk)
}

fn read_server_fields(
    protocol: &str,
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let place = ServerPlace::read(fields, ("address", "port"), None, clerk)?;
    if protocol == "shadowsocks" {
        let method = fields.string_field("method", clerk);
        let method = method.ok_or("`method` is missing")?;
        let password = fields.string_field("password", clerk).unwrap_or_default();
        let over_tcp = fields.bool_field("uot", clerk) == Some(true);
        let mut url = shadowsocks_hop(place, method, password, None, clerk)?;
        if over_tcp {
            url.set_key("udp", "over-tcp");
        }
        return Ok(url);
    }
    // The login, in the settings themselves or as the first of `users`.
    let mut users = server_entry::read_objects(fields, "users", clerk);
    let login = users.first_mut().unwrap_or(fields);
    let user = login.string_field("user", clerk);
    let password = login.string_field("pass", clerk);
    match protocol {
        "socks" => socks_hop(place, user, password),
        _ => http_hop(place, user, password),
    }
}
