//! Shadowsocks servers in the drawing of a plan.

use std::path::Path;

use super::{describe_plugin, describe_seal, format_count};
use crate::scheme::endpoint_types::{FleetIdentity, RejectPolicy, RestartPolicy, SsRole, SsServer};
use crate::text::{format_target, sanitize_for_terminal};

/// Maximum number of next servers of a relay that are listed.
const NAMED: usize = 4;

/// Returns the lines below a Shadowsocks listener.
pub(super) fn server_lines(server: &SsServer) -> Vec<String> {
    let carried = transport_names(server.tcp, server.udp);
    let reject = describe_reject(&server.reject);
    let restart = match server.restart {
        RestartPolicy::Strict => "",
        RestartPolicy::Lenient => "; requests from before a restart are served",
    };
    let method = match &server.role {
        SsRole::Relay { .. } => server.method.to_string(),
        SsRole::Single(_) | SsRole::Users { .. } | SsRole::Fleet { .. } => {
            describe_seal(server.method)
        }
    };
    let mut lines = vec![format!(
        "{method}; {carried}; without the key: {reject}{restart}"
    )];
    match &server.role {
        SsRole::Single(_) => {}
        SsRole::Users {
            identity,
            users,
            file,
        } => {
            let told = match identity {
                Some(_) => "identified by identity header",
                None => "identified by trying every password",
            };
            let file = match file {
                Some(path) => format!(", from {}", printable_path(path)),
                None => String::new(),
            };
            lines.push(format!(
                "{}, {told}{file}",
                format_count(users.len(), "user")
            ));
        }
        SsRole::Fleet { identity } => {
            let told = match (server.method.has_identities(), identity) {
                (true, FleetIdentity::Node) => {
                    "identified by identity header, with a key of this node"
                }
                (true, FleetIdentity::Shared) => {
                    "identified by identity header, with a key of all nodes"
                }
                (false, _) => "identified by trying every password",
            };
            lines.push(format!("the users of the fleet, {told}"));
        }
        SsRole::Relay { next, .. } => {
            let mut names: Vec<String> = next
                .iter()
                .take(NAMED)
                .map(|next| match &next.name {
                    Some(name) => format!("{} ({})", sanitize_for_terminal(name), next.server),
                    None => next.server.to_string(),
                })
                .collect();
            if next.len() > NAMED {
                names.push(format!("{} more", next.len() - NAMED));
            }
            lines.push(format!("relay, by identity header: {}", names.join(", ")));
        }
    }
    lines.extend(fast_open_line(server.fast_open));
    if let Some(plugin) = &server.plugin {
        lines.push(describe_plugin(plugin));
    }
    if let Some(path) = &server.state {
        lines.push(format!("salts stored in {}", printable_path(path)));
    }
    lines
}

/// Returns the line about TCP Fast Open, if it is on.
pub(super) fn fast_open_line(fast_open: bool) -> Option<String> {
    fast_open.then(|| "accepts first bytes in the SYN (TCP Fast Open)".to_owned())
}

/// Returns the names of the served transports.
pub(super) const fn transport_names(tcp: bool, udp: bool) -> &'static str {
    match (tcp, udp) {
        (true, true) => "TCP and UDP",
        (true, false) => "TCP",
        _ => "UDP",
    }
}

/// Describes the reaction to a connection that is not accepted.
pub(super) fn describe_reject(reject: &RejectPolicy) -> String {
    match reject {
        RejectPolicy::Drain => "silence".to_owned(),
        RejectPolicy::Reset => "a reset".to_owned(),
        RejectPolicy::Close => "a close".to_owned(),
        RejectPolicy::Forward(target) => format!("forwarded to {}", format_target(target)),
    }
}

/// Returns a path as text that is safe for a terminal.
fn printable_path(path: &Path) -> String {
    sanitize_for_terminal(&path.display().to_string())
}
