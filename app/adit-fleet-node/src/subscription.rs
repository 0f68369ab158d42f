//! The servers of all nodes in the documents of the API.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use adit_admin::api::{OfferedServer, SubscriptionOffer, SubscriptionServers};
use adit_config::Secret;
use adit_engine::{BoxFuture, ByteCounts, UserLimits};
use adit_fleet::subscription::{document_keys, servers_of_user};
use adit_fleet::{FleetUser, NodeEntry, PeriodLabel, RealmKey, Store};
use adit_net::system;
use adit_shadowsocks::MAX_TRIAL_USERS;
use adit_wire::UnixTime;
use tokio::time::timeout;

use crate::directory::Directory;

/// Time that a document waits for the usage of its user.
const USAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// The documents of the users of a realm, at one of its nodes.
pub struct RealmDocuments {
    key: RealmKey,
    directory: Arc<Directory>,
    store: Arc<dyn Store>,
    /// The nodes that the store had when it answered last.
    nodes: RwLock<Arc<[NodeEntry]>>,
}

impl fmt::Debug for RealmDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealmDocuments")
            .field("nodes", &self.nodes().len())
            .finish_non_exhaustive()
    }
}

impl RealmDocuments {
    pub(crate) fn new(key: RealmKey, directory: Arc<Directory>, store: Arc<dyn Store>) -> Self {
        Self {
            key,
            directory,
            store,
            nodes: RwLock::new(Arc::default()),
        }
    }

    pub(crate) fn set_nodes(&self, nodes: Vec<NodeEntry>) {
        *self.nodes.write().unwrap_or_else(PoisonError::into_inner) = nodes.into();
    }

    /// Returns the nodes that the store had when it answered last.
    pub(crate) fn nodes(&self) -> Arc<[NodeEntry]> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes.clone()
    }

    /// Returns what a user has used in the period, over all nodes. Without the store, it is what this node knows, which
    /// has no directions.
    async fn usage_of(&self, user: &FleetUser) -> ByteCounts {
        let period = PeriodLabel::new(user.limits.period, system::unix_now());
        let ids = [user.id];
        let asked = timeout(USAGE_TIMEOUT, self.store.usage(&period, Some(&ids)));
        match asked.await {
            Ok(Ok(totals)) => {
                let own = totals.iter().find(|total| total.user == user.id);
                own.map_or_else(ByteCounts::default, |own| ByteCounts {
                    up: own.up,
                    down: own.down,
                })
            }
            _ => ByteCounts {
                up: 0,
                down: self.directory.used(user.id),
            },
        }
    }

    async fn offer_to(&self, user: &FleetUser) -> SubscriptionOffer {
        let is_tried = self.directory.is_among_first(user.id, MAX_TRIAL_USERS);
        let servers = servers_of_user(user, is_tried, &self.key, &self.nodes());
        let servers = servers.into_iter().map(|server| OfferedServer {
            name: server.name,
            host: server.host,
            port: server.port,
            method: server.method,
            password: Secret::from(server.password.as_str()),
        });
        SubscriptionOffer {
            servers: servers.collect(),
            usage: self.usage_of(user).await,
            limits: UserLimits {
                quota: user.limits.quota,
                expires: user.limits.expires.map(UnixTime),
                ..UserLimits::default()
            },
        }
    }
}

impl SubscriptionServers for RealmDocuments {
    fn offer<'a>(
        &'a self,
        name: &'a str,
        is_key: &'a (dyn Fn(&str) -> bool + Sync),
    ) -> BoxFuture<'a, Option<SubscriptionOffer>> {
        Box::pin(async move {
            let user = self.directory.user_named(name)?;
            let keys = document_keys(&user);
            // Each of them is tried.
            let fitting = keys.iter().filter(|key| is_key(key)).count();
            if fitting == 0 || user.disabled {
                return None;
            }
            Some(self.offer_to(&user).await)
        })
    }
}

#[cfg(test)]
mod tests {
    use adit_admin::api::subscription_path;
    use adit_fleet::{
        Fault, FaultyStore, MemoryStore, NodeIdentity, NodeRecord, NodeServer, NodeStatus,
        PackedUser, UsageBatch, UserUsage,
    };

    use super::*;
    use crate::directory::DirectoryChange;

    fn node(id: u32) -> NodeEntry {
        let server = NodeServer {
            name: "in".to_owned(),
            host: format!("n{id}.example"),
            port: 8388,
            dialect: "ss".to_owned(),
            method: "2022-blake3-aes-256-gcm".to_owned(),
            identity: NodeIdentity::Node,
            ..NodeServer::default()
        };
        NodeEntry {
            id,
            record: NodeRecord {
                name: format!("n{id}"),
                weight: 100,
                ..NodeRecord::default()
            },
            status: Some(NodeStatus {
                id,
                servers: vec![server],
                ..NodeStatus::default()
            }),
        }
    }

    fn documents(user: &FleetUser) -> (RealmDocuments, FaultyStore) {
        let key = RealmKey::new([1; 32]);
        let directory = Arc::new(Directory::new(key.clone(), 1));
        let packed = PackedUser::new(user).unwrap();
        directory.put(user.id, &packed, &mut DirectoryChange::default());
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let documents = RealmDocuments::new(key, directory, Arc::new(store.clone()));
        documents.set_nodes(vec![node(1), node(2)]);
        (documents, store)
    }

    /// Offers what the path of `key` opens.
    async fn offer(documents: &RealmDocuments, name: &str, key: &str) -> Option<SubscriptionOffer> {
        let path = subscription_path(name, key);
        let is_key = |key: &str| subscription_path(name, key) == path;
        documents.offer(name, &is_key).await
    }

    fn anna() -> FleetUser {
        let mut user = FleetUser::new(7, "anna", [3; 32]);
        user.limits.quota = Some(100);
        user.limits.expires = Some(1_900_000_000);
        user
    }

    #[tokio::test]
    async fn a_key_of_the_user_opens_the_servers_of_all_nodes() {
        let user = anna();
        let (documents, store) = documents(&user);
        let usage = UsageBatch {
            number: 1,
            entries: vec![UserUsage {
                user: 7,
                period: PeriodLabel::new(user.limits.period, system::unix_now()),
                up: 3,
                down: 4,
            }],
        };
        store.add_usage(2, &usage).await.unwrap();
        for key in document_keys(&user) {
            let offer = offer(&documents, "anna", &key).await.unwrap();
            let passwords = offer
                .servers
                .iter()
                .map(|server| server.password.expose().to_owned());
            let own = user.psk(32).unwrap();
            let chains = [1, 2].map(|id| {
                let identity = documents.key.identity_psk(id, 32).unwrap();
                format!("{}:{}", *identity, *own)
            });
            assert!(passwords.eq(chains));
            assert_eq!((offer.usage.up, offer.usage.down), (3, 4));
            assert_eq!(offer.limits.quota, Some(100));
            assert_eq!(offer.limits.expires, Some(UnixTime(1_900_000_000)));
        }
        let other = offer(&documents, "anna", &user.password()).await;
        assert!(other.is_none(), "no key of documents");
        assert!(
            offer(&documents, "bert", &user.subscription_key())
                .await
                .is_none()
        );
        documents.set_nodes(Vec::new());
        let empty = offer(&documents, "anna", &user.subscription_key()).await;
        assert!(empty.unwrap().servers.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn documents_do_not_need_the_store() {
        let user = anna();
        let (documents, store) = documents(&user);
        documents.directory.set_used(7, 40);
        for fault in [Fault::LostRequest, Fault::Delay(Duration::from_secs(3600))] {
            store.set_outage(Some(fault));
            let offer = offer(&documents, "anna", &user.subscription_key())
                .await
                .unwrap();
            assert_eq!((offer.servers.len(), offer.usage.sum()), (2, 40));
        }
    }

    #[tokio::test]
    async fn a_disabled_user_has_no_document() {
        let user = FleetUser {
            disabled: true,
            ..anna()
        };
        let (documents, _) = documents(&user);
        assert!(
            offer(&documents, "anna", &user.subscription_key())
                .await
                .is_none()
        );
    }
}
