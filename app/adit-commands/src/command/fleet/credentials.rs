//! The credentials of a user of a realm at each node, as clients need them.

use adit_admin::api::{IssuedCredential, subscription_path};
use adit_cli::Failure;
use adit_config::link::shadowsocks_link;
use adit_config::text::escape::encode_part;
use adit_fleet::subscription::servers_of_user;
use adit_fleet::{
    FleetUser, NodeEntry, NodeIdentity, NodeServer, RealmKey, SealedRecord, subscription_addresses,
};
use adit_shadowsocks::{Edition, MAX_TRIAL_USERS, Method};
use adit_wire::{Host, Target};
use zeroize::Zeroizing;

use super::realm::Realm;

/// The credentials of a user of a realm, and the addresses of the subscription.
pub(in crate::command) struct UserAccess {
    /// At every node that subscriptions list.
    pub(in crate::command) credentials: Vec<IssuedCredential>,
    /// The addresses, all of the same documents, or the reason why there is none.
    pub(in crate::command) subscriptions: Result<Vec<String>, &'static str>,
}

impl UserAccess {
    /// Finds what a user of a realm with these nodes has.
    pub(in crate::command) async fn find(
        realm: &Realm,
        user: &FleetUser,
        nodes: &[NodeEntry],
    ) -> Result<Self, Failure> {
        let addresses = subscription_addresses(nodes, realm.cipher());
        let is_tried = is_tried(realm, user, nodes).await?;
        Ok(Self {
            credentials: credentials(realm.key(), user, is_tried, nodes),
            subscriptions: subscriptions(realm.key(), user, is_tried, nodes, &addresses),
        })
    }
}

/// Returns true if a server tries the passwords of its users one by one, which only the first of them have.
fn tries_passwords(server: &NodeServer) -> bool {
    let method = server.method.parse::<Method>();
    server.dialect == "ss" && method.is_ok_and(|method| method.edition() == Edition::Aead)
}

/// Returns true if servers that try passwords try that of this user, who is among the first who may connect.
async fn is_tried(realm: &Realm, user: &FleetUser, nodes: &[NodeEntry]) -> Result<bool, Failure> {
    let servers = nodes.iter().flat_map(|node| &node.status);
    let mut servers = servers.flat_map(|status| &status.servers);
    // No number is assigned twice, so that a low one needs no look at the others.
    let is_early = usize::try_from(user.id).is_ok_and(|id| id <= MAX_TRIAL_USERS);
    if is_early || !servers.any(tries_passwords) {
        return Ok(true);
    }
    let snapshot = realm.ask(realm.store.snapshot()).await?;
    let before = snapshot.users.iter().filter(|(id, _)| *id < user.id);
    let is_enabled = |(id, sealed): &&(u32, SealedRecord)| {
        let known = realm.cipher().open(*id, sealed);
        known.is_ok_and(|known| !known.disabled)
    };
    Ok(before.filter(is_enabled).count() < MAX_TRIAL_USERS)
}

/// Returns the addresses of a user's subscription, below those of nodes.
fn subscriptions(
    key: &RealmKey,
    user: &FleetUser,
    is_tried: bool,
    nodes: &[NodeEntry],
    addresses: &[String],
) -> Result<Vec<String>, &'static str> {
    if addresses.is_empty() {
        return Err("no node has the address of its web server: `subscriptions` in `[fleet]`");
    }
    if user.disabled {
        return Err("the user is disabled");
    }
    if servers_of_user(user, is_tried, key, nodes).is_empty() {
        return Err("no node in service has a Shadowsocks server for this user");
    }
    let path = subscription_path(&user.name, &user.subscription_key());
    Ok(addresses.iter().map(|at| format!("{at}{path}")).collect())
}

/// Returns the credentials of a user at every node that subscriptions list. With `is_tried` false, the user is none of
/// those whose passwords are tried.
fn credentials(
    key: &RealmKey,
    user: &FleetUser,
    is_tried: bool,
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
            all.push(match is_tried || !tries_passwords(server) {
                true => credential(key, user, node.id, server, host, name),
                false => not_tried(server, name),
            });
        }
    }
    all
}

/// Returns the entry of a server that does not serve the user.
fn not_tried(server: &NodeServer, name: String) -> IssuedCredential {
    let method = &server.method;
    IssuedCredential {
        listener: name,
        note: Some(format!(
            "{method} serves the first {MAX_TRIAL_USERS} users: this one needs a server of the 2022 edition"
        )),
        secret: String::new(),
        url: None,
        subscription: None,
    }
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
        let nodes = [node(1, &kinds), node(2, &kinds)];
        let untried = credentials(&key, &user, false, &nodes);
        assert!(untried[1].note.as_ref().unwrap().contains("first 1024"));
        let with_url = untried.iter().filter(|one| one.url.is_some());
        assert_eq!(with_url.count(), 6);
        let all = credentials(&key, &user, true, &nodes);
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
    fn a_subscription_has_an_address_or_a_reason() {
        let (key, mut user) = (RealmKey::new([3; 32]), FleetUser::new(7, "an/na", [5; 32]));
        let nodes = [node(1, &[("ss", "aes-256-gcm")])];
        let at = [
            "https://a.example".to_owned(),
            "https://b.example/x".to_owned(),
        ];
        let found = subscriptions(&key, &user, true, &nodes, &at).unwrap();
        let path = subscription_path("an/na", &user.subscription_key());
        assert_eq!(found, at.clone().map(|at| format!("{at}{path}")));
        let proxies = [node(1, &[("socks5", "")])];
        let why = |user: &FleetUser, nodes: &[NodeEntry], at: &[String]| {
            subscriptions(&key, user, true, nodes, at).unwrap_err()
        };
        assert!(why(&user, &nodes, &[]).contains("`subscriptions`"));
        assert!(why(&user, &proxies, &at).contains("no node in service"));
        user.disabled = true;
        assert!(why(&user, &nodes, &at).contains("disabled"));
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
        let all = credentials(&key, &user, true, &nodes);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].listener, "n4/socks5");
    }
}
