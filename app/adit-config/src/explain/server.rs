//! Shadowsocks servers in the drawing of a plan.

use std::path::Path;

use super::{counted, seal, through};
use crate::scheme::typed::{RejectPolicy, Restart, SsRole, SsServer};
use crate::text::{printable, write_target};

/// Maximum number of next servers of a relay that are listed.
const NAMED: usize = 4;

/// Returns the lines below a Shadowsocks listener.
pub(super) fn lines(server: &SsServer) -> Vec<String> {
    let carried = carried(server.tcp, server.udp);
    let reject = reaction(&server.reject);
    let restart = match server.restart {
        Restart::Strict => "",
        Restart::Lenient => "; requests from before a restart are served",
    };
    let method = match &server.role {
        SsRole::Relay { .. } => server.method.to_string(),
        SsRole::Single(_) | SsRole::Users { .. } => seal(server.method),
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
                Some(path) => format!(", from {}", shown(path)),
                None => String::new(),
            };
            lines.push(format!("{}, {told}{file}", counted(users.len(), "user")));
        }
        SsRole::Relay { next, .. } => {
            let mut names: Vec<String> = next
                .iter()
                .take(NAMED)
                .map(|next| match &next.name {
                    Some(name) => format!("{} ({})", printable(name), next.server),
                    None => next.server.to_string(),
                })
                .collect();
            if next.len() > NAMED {
                names.push(format!("{} more", next.len() - NAMED));
            }
            lines.push(format!("relay, by identity header: {}", names.join(", ")));
        }
    }
    lines.extend(begins_early(server.fast_open));
    if let Some(plugin) = &server.plugin {
        lines.push(through(plugin));
    }
    if let Some(path) = &server.state {
        lines.push(format!("salts stored in {}", shown(path)));
    }
    lines
}

/// Returns the line about TCP Fast Open, if it is on.
pub(super) fn begins_early(fast_open: bool) -> Option<String> {
    fast_open.then(|| "accepts first bytes in the SYN (TCP Fast Open)".to_owned())
}

/// Returns the names of the served transports.
pub(super) const fn carried(tcp: bool, udp: bool) -> &'static str {
    match (tcp, udp) {
        (true, true) => "TCP and UDP",
        (true, false) => "TCP",
        _ => "UDP",
    }
}

/// Describes the reaction to a connection that is not accepted.
pub(super) fn reaction(reject: &RejectPolicy) -> String {
    match reject {
        RejectPolicy::Drain => "silence".to_owned(),
        RejectPolicy::Reset => "a reset".to_owned(),
        RejectPolicy::Close => "a close".to_owned(),
        RejectPolicy::Forward(target) => format!("forwarded to {}", write_target(target)),
    }
}

/// Returns a path as text that is safe for a terminal.
fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}
