//! The credentials of a user of a realm at each node, as clients need them.

use adit_admin::api::IssuedCredential;
use adit_config::link::shadowsocks_link;
use adit_config::text::escape::encode_part;
use adit_fleet::{FleetUser, NodeEntry, NodeIdentity, NodeServer, RealmKey};
use adit_shadowsocks::{Edition, Method};
use adit_wire::{Host, Target};
use zeroize::Zeroizing;

/// Returns the credentials of a user at every node that subscriptions list.
pub(in crate::command) fn credentials(
    key: &RealmKey,
    user: &FleetUser,
    nodes: &[NodeEntry],
) -> Vec<IssuedCredential> {
    let mut all = Vec::new();
    for node in nodes {
        let Some(status) = node.status.as_ref().filter(|_| node.is_listed()) else {
            continue;
        };
        let public = status.public_host.as_deref().unwrap_or_default();
        for server in &status.servers {
            let host = if server.host.is_empty() {
                public
            } else {
                &server.host
            };
            let name = format!("{}/{}", node.record.name, server.name);
            all.push(credential(key, user, node.id, server, host, name));
        }
    }
    all
}

fn credential(
    key: &RealmKey,
    user: &FleetUser,
    node: u32,
    server: &NodeServer,
    host: &str,
    name: String,
) -> IssuedCredential {
    let secret = secret_of(key, user, node, server);
    let url = secret
        .as_ref()
        .and_then(|secret| url_of(server, &user.name, secret, host));
    IssuedCredential {
        listener: name,
        note: match (&secret, &url) {
            (None, _) => Some(format!(
                "this imported user has no key for {}: `adit user rotate` makes one",
                server.method
            )),
            (_, None) => {
                Some("the node reports no address for clients: set `public_host`".to_owned())
            }
            _ => None,
        },
        secret: secret.map_or_else(String::new, |secret| secret.as_str().to_owned()),
        url,
        subscription: None,
    }
}

/// Returns the URL of a server for a user.
fn url_of(server: &NodeServer, name: &str, secret: &str, host: &str) -> Option<String> {
    let login = format!("{}:{}", encode_part(name), encode_part(secret));
    if !server.url.is_empty() {
        let (scheme, rest) = server.url.split_once("://")?;
        // The node writes its URLs without a user.
        return (!rest.contains('@')).then(|| format!("{scheme}://{login}@{rest}"));
    }
    let host = Host::parse(host).ok()?;
    if server.dialect == "ss" {
        let mut url = shadowsocks_link(server.method.parse().ok()?, secret, &host, server.port);
        if !server.udp {
            url.push_str("?udp=false");
        }
        return Some(url);
    }
    let at = Target::new(host, server.port);
    Some(format!("{}://{login}@{at}", server.dialect))
}

/// Returns the password at a server; with identity keys, that of the node before it.
fn secret_of(
    key: &RealmKey,
    user: &FleetUser,
    node: u32,
    server: &NodeServer,
) -> Option<Zeroizing<String>> {
    if server.dialect != "ss" {
        return Some(user.password());
    }
    let method: Method = server.method.parse().ok()?;
    if method.edition() != Edition::Aead2022 {
        return Some(user.password());
    }
    let own = user.psk(method.key_len())?;
    let identity = match server.identity {
        NodeIdentity::None => return Some(own),
        NodeIdentity::Node => key.identity_psk(node, method.key_len())?,
        NodeIdentity::Shared => key.shared_psk(method.key_len())?,
    };
    Some(Zeroizing::new(format!("{}:{}", *identity, *own)))
}

#[cfg(test)]
mod tests {
    use adit_config::Plan;
    use adit_fleet::{NodeRecord, NodeState, NodeStatus};

    use super::*;

    fn node(id: u32, kinds: &[(&str, &str)]) -> NodeEntry {
        let server = |(dialect, method): &(&str, &str)| NodeServer {
            name: (*dialect).to_owned(),
            port: 8388,
            dialect: (*dialect).to_owned(),
            method: (*method).to_owned(),
            identity: match method.starts_with("2022-") {
                true => NodeIdentity::Node,
                false => NodeIdentity::None,
            },
            tcp: true,
            ..NodeServer::default()
        };
        NodeEntry {
            id,
            record: NodeRecord {
                name: format!("n{id}"),
                ..NodeRecord::default()
            },
            status: Some(NodeStatus {
                public_host: Some(format!("node-{id}.example")),
                servers: kinds.iter().map(server).collect(),
                ..NodeStatus::default()
            }),
        }
    }

    #[test]
    fn urls_are_those_of_clients() {
        let key = RealmKey::new([3; 32]);
        let user = FleetUser::new(7, "an/na", [5; 32]);
        let kinds = [
            ("ss", "2022-blake3-aes-128-gcm"),
            ("ss", "aes-256-gcm"),
            ("socks5", ""),
            ("http", ""),
        ];
        let all = credentials(&key, &user, &[node(1, &kinds), node(2, &kinds)]);
        assert_eq!(all.len(), 8);
        for one in &all {
            let url = one.url.clone().unwrap();
            let words = ["mixed://127.0.0.1:0".to_owned(), url.clone()];
            Plan::from_words(&words).unwrap_or_else(|why| panic!("{url}: {why:?}"));
        }
        // Only the 2022 edition has a key for each node.
        assert_ne!(all[0].secret, all[4].secret);
        assert_eq!(all[1].secret, all[5].secret);
        assert!(all[2].url.as_ref().unwrap().contains("an%2Fna:"), "{all:?}");
        assert_eq!(all[0].listener, "n1/ss");
    }

    #[test]
    fn nodes_out_of_service_are_omitted() {
        let (key, user) = (RealmKey::new([3; 32]), FleetUser::new(7, "anna", [5; 32]));
        let mut draining = node(1, &[("socks5", "")]);
        draining.record.state = NodeState::Draining;
        let mut weightless = node(2, &[("socks5", "")]);
        weightless.record.weight = 0;
        let mut gone = node(3, &[("socks5", "")]);
        gone.status = None;
        let nodes = [draining, weightless, gone, node(4, &[("socks5", "")])];
        let all = credentials(&key, &user, &nodes);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].listener, "n4/socks5");
    }
}
