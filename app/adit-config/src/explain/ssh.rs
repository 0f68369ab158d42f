//! SSH in the drawing of a plan.

use super::counted;
use crate::scheme::typed::{HostTrust, SshHop, SshOffer, SshServer};
use crate::text::{printable, write_duration as time};

/// Returns the lines below an SSH listener.
pub(super) fn lines(server: &SshServer) -> Vec<String> {
    let mut ways = Vec::new();
    if let Some(path) = &server.authorized_keys {
        let path = printable(&path.display().to_string());
        let user = match &server.user {
            Some(user) => format!(" as {}", printable(user)),
            None => String::new(),
        };
        ways.push(format!("keys of {path}{user}"));
    }
    if !server.users.is_empty() {
        let users = counted(server.users.len(), "user");
        ways.push(format!("{users} by password"));
    }
    let host_key = printable(&server.host_key.display().to_string());
    vec![
        format!(
            "SSH{}; streams only; accepts {}",
            offer(&server.offer),
            ways.join(", ")
        ),
        format!(
            "host key {host_key}; keepalive after {}",
            time(server.keepalive)
        ),
    ]
}

/// Describes an SSH hop.
pub(super) fn hop(hop: &SshHop) -> String {
    let mut means: Vec<String> = hop
        .keys
        .iter()
        .map(|key| format!("key {}", printable(&key.file)))
        .collect();
    if hop.agent.is_some() {
        means.push("agent".to_owned());
    }
    if hop.password.is_some() {
        means.push("password".to_owned());
    }
    let trust = match &hop.trust {
        HostTrust::Pinned(pins) => counted(pins.len(), "pinned host key"),
        HostTrust::Known { files, accept_new } => {
            let first = files.first().map(|path| path.display().to_string());
            let new = if *accept_new {
                ", new hosts accepted"
            } else {
                ""
            };
            format!("hosts in {}{new}", printable(&first.unwrap_or_default()))
        }
    };
    format!(
        "as {} by {}{}; {trust}; {} kept open",
        printable(&hop.user),
        means.join(", "),
        offer(&hop.offer),
        counted(hop.sessions, "connection"),
    )
}

/// Describes the configured algorithms by the first of each list.
fn offer(offer: &SshOffer) -> String {
    let kex = offer.kex.first().map(|one| one.name());
    let cipher = offer.cipher.first().map(|one| one.name());
    let mac = offer.mac.first().map(|one| one.name());
    let compression = offer.compression.then_some("compressed");
    let named = [kex, cipher, mac, compression].into_iter().flatten();
    named.fold(String::new(), |text, name| format!("{text}, {name}"))
}
