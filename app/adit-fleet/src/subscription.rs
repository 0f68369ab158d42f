//! The servers that a user of the realm can choose from.

use std::cmp::Reverse;

use adit_wire::Host;
use zeroize::Zeroizing;

use crate::node_status::{NodeEntry, NodeIdentity, NodeServer};
use crate::realm_key::RealmKey;
use crate::record::FleetUser;

/// A server of a node, with the credentials of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserServer {
    /// The name for people: that of the node, and of its server if it has several.
    pub name: String,
    /// The host for clients.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The method of Shadowsocks.
    pub method: String,
    /// The user's password; in the 2022 edition the chain of keys.
    pub password: Zeroizing<String>,
}

/// Returns the Shadowsocks servers that a user can choose from: those of nodes that are
/// [listed](NodeEntry::is_listed), with the highest weight first. A user that is disabled has none.
///
/// Servers of the AEAD edition try the passwords of some users only: with `is_tried` false the user is none of them, and
/// these servers are left out.
#[must_use]
pub fn servers_of_user(
    user: &FleetUser,
    is_tried: bool,
    key: &RealmKey,
    nodes: &[NodeEntry],
) -> Vec<UserServer> {
    if user.disabled {
        return Vec::new();
    }
    let mut offered: Vec<&NodeEntry> = nodes.iter().filter(|node| node.is_listed()).collect();
    offered.sort_by_key(|node| (Reverse(node.record.weight), &node.record.name, node.id));
    let servers = offered
        .into_iter()
        .flat_map(|node| servers_of_node(user, key, node));
    let serves = |server: &UserServer| is_tried || psk_len(&server.method).is_some();
    servers.filter(serves).collect()
}

/// Returns the keys with which the path of a user's documents can be made: the one of the fleet first, then those of
/// servers.
#[must_use]
pub fn document_keys(user: &FleetUser) -> Vec<Zeroizing<String>> {
    let keys = [Some(user.subscription_key()), user.psk(16), user.psk(32)];
    keys.into_iter().flatten().collect()
}

fn servers_of_node(user: &FleetUser, key: &RealmKey, node: &NodeEntry) -> Vec<UserServer> {
    let Some(status) = &node.status else {
        return Vec::new();
    };
    // What needs more than host, port and key has a URL.
    let is_plain = |server: &&NodeServer| server.dialect == "ss" && server.url.is_empty();
    let plain: Vec<&NodeServer> = status.servers.iter().filter(is_plain).collect();
    let is_single = plain.len() == 1;
    let servers = plain.into_iter().filter_map(|server| {
        let host = match server.host.as_str() {
            "" => status.public_host.as_deref()?,
            host => host,
        };
        let name = match is_single {
            true => node.record.name.clone(),
            false => format!("{} {}", node.record.name, server.name),
        };
        Some(UserServer {
            name,
            host: Host::parse(host).ok()?,
            port: server.port,
            method: server.method.clone(),
            password: password_at(user, key, node.id, server)?,
        })
    });
    servers.collect()
}

/// Returns the password of a user at a server; `None` if an imported user has no key for its method.
fn password_at(
    user: &FleetUser,
    key: &RealmKey,
    node: u32,
    server: &NodeServer,
) -> Option<Zeroizing<String>> {
    let Some(len) = psk_len(&server.method) else {
        return Some(user.password());
    };
    let own = user.psk(len)?;
    let identity = match server.identity {
        NodeIdentity::None => return Some(own),
        NodeIdentity::Node => key.identity_psk(node, len)?,
        NodeIdentity::Shared => key.shared_psk(len)?,
    };
    Some(Zeroizing::new(format!("{}:{}", *identity, *own)))
}

/// Returns the length of the keys of a method of the 2022 edition, in bytes; `None` for methods with passwords.
fn psk_len(method: &str) -> Option<usize> {
    let cipher = method.strip_prefix("2022-blake3-")?;
    Some(if cipher == "aes-128-gcm" { 16 } else { 32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_status::{NodeRecord, NodeState, NodeStatus};

    fn server(name: &str, port: u16, method: &str, identity: NodeIdentity) -> NodeServer {
        NodeServer {
            name: name.to_owned(),
            port,
            dialect: "ss".to_owned(),
            method: method.to_owned(),
            identity,
            tcp: true,
            udp: true,
            ..NodeServer::default()
        }
    }

    fn node(id: u32, name: &str, weight: u32, servers: Vec<NodeServer>) -> NodeEntry {
        let record = NodeRecord {
            name: name.to_owned(),
            weight,
            ..NodeRecord::default()
        };
        let status = NodeStatus {
            id,
            public_host: Some(format!("{name}.example")),
            servers,
            ..NodeStatus::default()
        };
        NodeEntry {
            id,
            record,
            status: Some(status),
        }
    }

    const M2022: &str = "2022-blake3-aes-128-gcm";

    fn usual(name: &str) -> Vec<NodeServer> {
        vec![server(name, 8388, M2022, NodeIdentity::Node)]
    }

    fn names(servers: &[UserServer]) -> Vec<&str> {
        servers.iter().map(|server| &*server.name).collect()
    }

    #[test]
    fn each_node_has_its_own_chain_of_keys() {
        let (user, key) = (FleetUser::new(7, "anna", [3; 32]), RealmKey::new([1; 32]));
        let nodes = [
            node(1, "fra", 100, usual("in")),
            node(2, "ams", 100, usual("in")),
        ];
        let servers = servers_of_user(&user, true, &key, &nodes);
        assert_eq!(names(&servers), ["ams", "fra"]);
        for (server, id) in servers.iter().zip([2, 1]) {
            let identity = key.identity_psk(id, 16).unwrap();
            let expected = format!("{}:{}", *identity, *user.psk(16).unwrap());
            assert_eq!(*server.password, expected);
            assert_eq!(
                server.host,
                Host::parse(&format!("{}.example", server.name)).unwrap()
            );
            assert_eq!((server.port, server.method.as_str()), (8388, M2022));
        }
    }

    #[test]
    fn methods_have_their_credentials() {
        let (user, key) = (FleetUser::new(7, "anna", [3; 32]), RealmKey::new([1; 32]));
        let long = "2022-blake3-aes-256-gcm";
        let mut ssr = server("ssr", 5, "aes-256-cfb", NodeIdentity::None);
        ssr.dialect = "ssr".to_owned();
        let mut behind_plugin = server("plugin", 6, M2022, NodeIdentity::Node);
        behind_plugin.url = "ss://h:6?plugin=obfs-server".to_owned();
        let mut elsewhere = server("else", 7, "aes-256-gcm", NodeIdentity::None);
        elsewhere.host = "2001:db8::1".to_owned();
        let servers = vec![
            server("pool", 1, long, NodeIdentity::Shared),
            server("alone", 2, M2022, NodeIdentity::None),
            elsewhere,
            ssr,
            behind_plugin,
        ];
        let nodes = [node(1, "fra", 1, servers)];
        let untried = servers_of_user(&user, false, &key, &nodes);
        assert_eq!(names(&untried), ["fra pool", "fra alone"]);
        let servers = servers_of_user(&user, true, &key, &nodes);
        assert_eq!(names(&servers), ["fra pool", "fra alone", "fra else"]);
        let passwords = servers.iter().map(|server| server.password.to_string());
        let shared = key.shared_psk(32).unwrap();
        let expected = [
            format!("{}:{}", *shared, *user.psk(32).unwrap()),
            user.psk(16).unwrap().to_string(),
            user.password().to_string(),
        ];
        assert!(passwords.eq(expected));
        assert_eq!(servers[2].host, Host::parse("2001:db8::1").unwrap());
    }

    #[test]
    fn nodes_without_a_place_for_clients_are_left_out() {
        let (user, key) = (FleetUser::new(7, "anna", [3; 32]), RealmKey::new([1; 32]));
        let mut nodes: Vec<NodeEntry> = (1..=6)
            .map(|id| node(id, &format!("n{id}"), 10 * id, usual("in")))
            .collect();
        nodes[0].status = None;
        nodes[1].record.state = NodeState::Draining;
        nodes[2].status.as_mut().unwrap().state = NodeState::Drained;
        nodes[3].record.weight = 0;
        let offered = |user| servers_of_user(user, true, &key, &nodes);
        assert_eq!(names(&offered(&user)), ["n6", "n5"]);
        let disabled = FleetUser {
            disabled: true,
            ..user.clone()
        };
        assert!(offered(&disabled).is_empty());
        // A key that was imported fits one length of keys.
        let psk = user.psk(32);
        let imported = FleetUser {
            psk,
            ..user.clone()
        };
        assert!(offered(&imported).is_empty());
    }

    #[test]
    fn documents_are_found_by_each_key() {
        let user = FleetUser::new(7, "anna", [3; 32]);
        let keys = document_keys(&user);
        assert_eq!(keys[0], user.subscription_key());
        assert_eq!(keys.len(), 3);
        let psk = user.psk(16);
        let imported = FleetUser { psk, ..user };
        assert_eq!(document_keys(&imported).len(), 2);
    }
}
