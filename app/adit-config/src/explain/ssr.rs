//! ShadowsocksR in the drawing of a plan.

use adit_obfs::{ObfsKind, UnrecognizedPolicy};
use adit_shadowsocksr::{ProtocolKind, ServerParam};

use super::server::{describe_reject, fast_open_line, transport_names};
use super::{describe_plugin, format_count};
use crate::scheme::endpoint_types::{SsrHop, SsrServer};
use crate::text::{format_duration as time, sanitize_for_terminal};

/// Returns the lines below a ShadowsocksR listener.
pub(super) fn server_lines(server: &SsrServer) -> Vec<String> {
    let suffix = |suffixed| if suffixed { ", or none" } else { "" };
    let strangers = suffix(server.strangers == UnrecognizedPolicy::PassOn);
    let obfs = match server.obfs {
        ObfsKind::Plain => String::new(),
        obfs => format!(" in {obfs}{strangers}"),
    };
    let redirect = match server.redirect.len() {
        0 => String::new(),
        n => format!("{}, else ", format_count(n, "redirection")),
    };
    let mut lines = vec![format!(
        "{}, {}{}{obfs}; {}; without the key: {redirect}{}",
        server.method,
        describe_frames(server.protocol.kind),
        suffix(server.protocol.compatible),
        transport_names(server.tcp, server.udp),
        describe_reject(&server.reject),
    )];
    let param = ServerParam::parse(server.protocol.kind, server.protocol_param.expose());
    let users = param.map_or(0, |param| param.user_ids().count());
    lines.extend(fast_open_line(server.fast_open));
    if let Some(plugin) = &server.plugin {
        lines.push(describe_plugin(plugin));
    }
    if server.fleet_users {
        lines.push("the users of the fleet, identified by id".to_owned());
    }
    if users > 0 {
        lines.push(format!("{}, identified by id", format_count(users, "user")));
    }
    lines
}

/// Describes a ShadowsocksR hop.
pub(super) fn describe_hop(hop: &SsrHop) -> String {
    let obfs = match (hop.obfs, hop.obfs_param.hosts()) {
        (ObfsKind::Plain, _) => String::new(),
        (obfs, []) => format!(" in {obfs}"),
        (obfs, [host]) => format!(" in {obfs} as {}", sanitize_for_terminal(host)),
        (obfs, hosts) => format!(" in {obfs} as one of {}", format_count(hosts.len(), "host")),
    };
    let wait = time(hop.first_wait);
    let frames = describe_frames(hop.protocol);
    let plugin = hop.plugin.as_ref();
    let plugin = plugin.map_or_else(String::new, |plugin| {
        format!("; {}", describe_plugin(plugin))
    });
    let syn = if hop.fast_open {
        ", sends them with the SYN"
    } else {
        ""
    };
    format!(
        "{}, {frames}{obfs}{plugin}; waits {wait} for first bytes{syn}",
        hop.method
    )
}

/// Describes the frames of a protocol.
fn describe_frames(kind: ProtocolKind) -> String {
    match kind {
        ProtocolKind::Origin => "without frames".to_owned(),
        kind => format!("frames of {kind}"),
    }
}
