//! ShadowsocksR in the drawing of a plan.

use adit_obfs::{ObfsKind, Strangers};
use adit_shadowsocksr::{ProtocolKind, ServerParam};

use super::server::{begins_early, carried, reaction};
use super::{counted, through};
use crate::scheme::typed::{SsrHop, SsrServer};
use crate::text::{printable, write_duration as time};

/// Returns the lines below a ShadowsocksR listener.
pub(super) fn lines(server: &SsrServer) -> Vec<String> {
    let suffix = |suffixed| if suffixed { ", or none" } else { "" };
    let strangers = suffix(server.strangers == Strangers::PassOn);
    let obfs = match server.obfs {
        ObfsKind::Plain => String::new(),
        obfs => format!(" in {obfs}{strangers}"),
    };
    let redirect = match server.redirect.len() {
        0 => String::new(),
        n => format!("{}, else ", counted(n, "redirection")),
    };
    let mut lines = vec![format!(
        "{}, {}{}{obfs}; {}; without the key: {redirect}{}",
        server.method,
        frames(server.protocol.kind),
        suffix(server.protocol.compatible),
        carried(server.tcp, server.udp),
        reaction(&server.reject),
    )];
    let param = ServerParam::parse(server.protocol.kind, server.protocol_param.expose());
    let users = param.map_or(0, |param| param.uids().count());
    lines.extend(begins_early(server.fast_open));
    if let Some(plugin) = &server.plugin {
        lines.push(through(plugin));
    }
    if users > 0 {
        lines.push(format!("{}, identified by id", counted(users, "user")));
    }
    lines
}

/// Describes a ShadowsocksR hop.
pub(super) fn hop(hop: &SsrHop) -> String {
    let obfs = match (hop.obfs, hop.obfs_param.hosts()) {
        (ObfsKind::Plain, _) => String::new(),
        (obfs, []) => format!(" in {obfs}"),
        (obfs, [host]) => format!(" in {obfs} as {}", printable(host)),
        (obfs, hosts) => format!(" in {obfs} as one of {}", counted(hosts.len(), "host")),
    };
    let wait = time(hop.first_wait);
    let frames = frames(hop.protocol);
    let plugin = hop.plugin.as_ref();
    let plugin = plugin.map_or_else(String::new, |plugin| format!("; {}", through(plugin)));
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
fn frames(kind: ProtocolKind) -> String {
    match kind {
        ProtocolKind::Origin => "without frames".to_owned(),
        kind => format!("frames of {kind}"),
    }
}
