//! SSH in the drawing of a plan.

use super::format_count;
use crate::scheme::endpoint_types::{HostTrust, SshAlgorithms, SshHop, SshServer};
use crate::text::{format_duration as time, sanitize_for_terminal};

/// Returns the lines below an SSH listener.
pub(super) fn server_lines(server: &SshServer) -> Vec<String> {
    let mut auth_methods = Vec::new();
    if let Some(path) = &server.authorized_keys {
        let path = sanitize_for_terminal(&path.display().to_string());
        let user = match &server.user {
            Some(user) => format!(" as {}", sanitize_for_terminal(user)),
            None => String::new(),
        };
        auth_methods.push(format!("keys of {path}{user}"));
    }
    if server.fleet_users {
        auth_methods.push("the users of the fleet by password".to_owned());
    }
    if !server.users.is_empty() {
        let users = format_count(server.users.len(), "user");
        auth_methods.push(format!("{users} by password"));
    }
    let host_key = sanitize_for_terminal(&server.host_key.display().to_string());
    vec![
        format!(
            "SSH{}; streams only; accepts {}",
            describe_algorithms(&server.algorithms),
            auth_methods.join(", ")
        ),
        format!(
            "host key {host_key}; keepalive after {}",
            time(server.keepalive)
        ),
    ]
}

/// Describes an SSH hop.
pub(super) fn describe_hop(hop: &SshHop) -> String {
    let mut means: Vec<String> = hop
        .keys
        .iter()
        .map(|key| format!("key {}", sanitize_for_terminal(&key.file)))
        .collect();
    if hop.agent.is_some() {
        means.push("agent".to_owned());
    }
    if hop.password.is_some() {
        means.push("password".to_owned());
    }
    let trust = match &hop.trust {
        HostTrust::Pinned(pins) => format_count(pins.len(), "pinned host key"),
        HostTrust::Known { files, accept_new } => {
            let first = files.first().map(|path| path.display().to_string());
            let new = if *accept_new {
                ", new hosts accepted"
            } else {
                ""
            };
            format!(
                "hosts in {}{new}",
                sanitize_for_terminal(&first.unwrap_or_default())
            )
        }
    };
    format!(
        "as {} by {}{}; {trust}; {} kept open",
        sanitize_for_terminal(&hop.user),
        means.join(", "),
        describe_algorithms(&hop.algorithms),
        format_count(hop.sessions, "connection"),
    )
}

/// Describes the configured algorithms by the first of each list.
fn describe_algorithms(offer: &SshAlgorithms) -> String {
    let kex = offer.kex.first().map(|one| one.name());
    let cipher = offer.cipher.first().map(|one| one.name());
    let mac = offer.mac.first().map(|one| one.name());
    let compression = offer.compression.then_some("compressed");
    let named = [kex, cipher, mac, compression].into_iter().flatten();
    named.fold(String::new(), |text, name| format!("{text}, {name}"))
}
