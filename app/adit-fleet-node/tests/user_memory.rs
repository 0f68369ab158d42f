//! The memory of a node's users, in a process of its own: the system's figure for all of its anonymous pages.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{OutagePolicy, Plan};
use adit_engine::{Engine, Inheritance, RuleSetTable, SharedSockets};
use adit_fleet::{
    FleetUser, Grace, Membership, MemoryStore, NodeRecord, RealmInfo, RealmKey, RealmWriter,
    RecordCipher, Role, Store,
};
use adit_fleet_node::{FleetNode, NodeControl, NodeSettings};
use adit_net::system::SystemRng;

/// Maximum of bytes per user with one keyed listener, the allocator's share included: 307 to 313 were measured, 30 MiB
/// for all of them, and a twentieth is for what other systems do with their pages.
const LIMIT: u64 = 330;
const USERS: u32 = 100_000;

/// Returns the anonymous memory of this process, in bytes.
fn resident() -> u64 {
    adit_net::memory::release_free_pages();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1024
}

struct Realm {
    store: MemoryStore,
    key: RealmKey,
}

impl Realm {
    async fn with_users(count: u32) -> Self {
        let (store, key) = (MemoryStore::new(), RealmKey::generate(&mut SystemRng));
        let cipher = RecordCipher::new("test", &key);
        let info = RealmInfo::new(&cipher, 1);
        store.create_realm(&info).await.unwrap();
        let writer = RealmWriter::new(Arc::new(store.clone()), cipher);
        let mut users: Vec<FleetUser> = (0..count)
            .map(|n| {
                let name = format!("user{n:06}@example");
                let mut user = FleetUser::new(0, name, *RealmWriter::new_secret());
                user.limits.quota = Some(1 << 40);
                user.limits.expires = Some(4_000_000_000);
                user
            })
            .collect();
        writer.add(&mut users).await.unwrap();
        Self { store, key }
    }

    /// Starts a node with one keyed listener.
    async fn node(&self, folder: &Path) -> (Arc<Engine>, NodeControl) {
        let record = NodeRecord {
            name: "a".to_owned(),
            ..NodeRecord::default()
        };
        let id = self.store.add_node(&record).await.unwrap();
        let membership = Membership {
            version: Membership::VERSION,
            realm: "test".to_owned(),
            realm_key: self.key.clone(),
            role: Role::Node,
            node_id: Some(id),
            name: "a".to_owned(),
            store: "memory".to_owned(),
            store_user: None,
            store_password: None,
            ca_pem: None,
        };
        let settings = NodeSettings {
            state: folder.to_owned(),
            cache_max_age: Duration::from_secs(3600),
            require_store: false,
            grace: Grace {
                bytes: 1 << 30,
                time: Duration::from_secs(3600),
            },
            open_quota: false,
            shared_replay_filter: false,
            replay_outage: OutagePolicy::Open,
            drain_grace: Duration::from_millis(300),
            drain_timeout: Duration::from_secs(5),
            subscriptions: None,
        };
        let store: Arc<dyn Store> = Arc::new(self.store.clone());
        let mut node = FleetNode::new(store, &membership, settings).unwrap();
        let text = "[fleet]\nmembership = \"/nowhere\"\n[route.keyed]\n\
                    listen = \"ss://2022-blake3-aes-128-gcm@127.0.0.1:0?users=fleet\"\n";
        let plan = Plan::from_toml(text, "node.toml").unwrap();
        let (nothing, users) = (Inheritance::default(), node.users().clone());
        let prepared = Engine::prepare_with_fleet(&plan, RuleSetTable::default(), &nothing, users);
        let prepared = prepared.await.unwrap();
        node.open().await.unwrap();
        let engine = Arc::new(prepared.start(SharedSockets::default()));
        let control = node.follow(engine.clone(), "test");
        (engine, control)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_user_of_a_node_is_small() {
    adit_net::memory::limit_free_memory();
    let folder = std::env::temp_dir().join(format!("adit-user-memory-{}", std::process::id()));
    // What a first node needs whatever users it has.
    let few = Realm::with_users(10).await;
    let _first = few.node(&folder.join("few")).await;
    let many = Realm::with_users(USERS).await;
    let before = resident();
    let (_engine, control) = many.node(&folder.join("many")).await;
    // The first reports, and the copy on the disk, take a few seconds, and more on a slow machine.
    let mut each = u64::MAX;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        each = resident().saturating_sub(before) / u64::from(USERS);
        if each <= LIMIT && control.user_count() == u64::from(USERS) {
            break;
        }
    }
    eprintln!("{USERS} users: {each} bytes each");
    assert_eq!(control.user_count(), u64::from(USERS));
    assert!(each <= LIMIT, "{each} bytes each");
    std::fs::remove_dir_all(&folder).unwrap();
}
