//! One real server: the laws, restarts, losses, and other realms.

use std::sync::Arc;
use std::time::Duration;

use adit_fleet::store::valkey::{ValkeyConfig, ValkeyStore};
use adit_fleet::{
    ChangeId, Feed, FeedNext, RealmInfo, RealmKey, RecordCipher, Regression, Store, StoreErrorKind,
    UsageBatch, open_store,
};
use adit_interop::store_server::StoreServer;
use adit_net::system::SystemRng;

use crate::laws::check_store_laws;
use crate::servers::{Authority, PortServer, ServerTransport, plain};
use crate::world::{REALM, add, cipher, eventually, follow, info, login, names, open, writer};

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_on_a_unix_socket() {
    let server = plain();
    check_store_laws(open(server.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_on_a_port() {
    let server = PortServer::start_server(&ServerTransport::default(), &[]).unwrap();
    check_store_laws(open_store(&server.login()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_over_tls_with_the_pinned_authority_alone() {
    let server = PortServer::start_server(&ServerTransport::tls().unwrap(), &[]).unwrap();
    let pinned = server.login();
    let url = pinned.url.clone();
    check_store_laws(open_store(&pinned).unwrap()).await;
    // Another authority, or those of the system.
    let other = adit_fleet::StoreLogin {
        ca_pem: Some(Authority::create().unwrap().certificate()),
        ..login(&url)
    };
    for wrong in [other, login(&url)] {
        let error = open_store(&wrong).unwrap().realm_info().await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unreachable, "{error}");
        assert!(error.detail.contains("certificate"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_restarted_has_everything() {
    let mut server = StoreServer::start_persistent().unwrap();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice", "bob"]).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    let batch = UsageBatch {
        number: 4,
        entries: Vec::new(),
    };
    store.add_usage(1, &batch).await.unwrap();
    server.restart().unwrap();
    // The server has lost the scripts, and the store the connection.
    eventually("the connection", || async { store.head().await.ok() }).await;
    add(&store, &["carol"]).await;
    follow(&mut feed, &store).await;
    assert_eq!(names(&feed), ["alice", "bob", "carol"]);
    assert_eq!(feed.regression(), None);
    assert_eq!(store.last_batch(1).await.unwrap(), 4);
    server.run(&["SCRIPT", "FLUSH"]).unwrap();
    add(&store, &["dave"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_server_is_noticed_and_restored() {
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice", "bob"]).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    let waiting = {
        let (store, after) = (store.clone(), feed.position());
        tokio::spawn(async move { store.changes(after, Duration::from_millis(400)).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.run(&["FLUSHALL"]).unwrap();
    let batch = waiting.await.unwrap().unwrap();
    let lost = Regression {
        held: ChangeId(2),
        found: ChangeId(0),
    };
    assert_eq!(feed.apply_batch(&batch).next, FeedNext::Regression(lost));
    let snapshot = store.snapshot().await.unwrap();
    assert_eq!(
        feed.apply_snapshot(&snapshot, false).next,
        FeedNext::Regression(lost)
    );
    assert_eq!(names(&feed), ["alice", "bob"]);
    // Another operator begins anew meanwhile, even beyond the number that this node has.
    store.create_realm(&info()).await.unwrap();
    add(&store, &["mallory-1", "mallory-2", "mallory-3"]).await;
    follow(&mut feed, &store).await;
    assert_eq!(names(&feed), ["alice", "bob"]);
    // The node writes what it has.
    store
        .restore(&info(), &feed.to_table(&mut SystemRng))
        .await
        .unwrap();
    follow(&mut feed, &store).await;
    assert_eq!(
        (names(&feed), feed.regression()),
        (vec!["alice".into(), "bob".into()], None)
    );
    let mut other = Feed::new(cipher());
    follow(&mut other, &store).await;
    assert_eq!(names(&other), ["alice", "bob"]);
    assert!(writer(&store).find("mallory-1").await.unwrap().is_none());
}

/// A wait ends without a change, and one is written before the number of the last one is read: the log has it. An empty
/// batch would have a node read everything again, without the operations that were sent to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_at_the_end_of_a_wait_is_delivered() {
    const COUNT: usize = 300;
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    let writing = store.clone();
    let writes = tokio::spawn(async move {
        for n in 0..COUNT {
            // About as long as a wait, so that many of them end between two changes.
            tokio::time::sleep(Duration::from_millis(1)).await;
            add(&writing, &[&format!("user-{n}")]).await;
        }
    });
    let (mut after, mut count) = (store.head().await.unwrap(), 0);
    while count < COUNT {
        let wait = Duration::from_millis(1);
        let batch = store.changes(after, wait).await.unwrap();
        let is_missing = batch.changes.is_empty() && batch.head > after;
        assert!(!is_missing, "{after:?} to {:?}", batch.head);
        count += batch.changes.len();
        after = batch.changes.last().map_or(after, |last| last.number);
    }
    writes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_of_another_realm_is_refused() {
    let server = plain();
    let store = open(server.url());
    let other_key = RecordCipher::new(REALM, &RealmKey::new([9; 32]));
    store
        .create_realm(&RealmInfo::new(&other_key, 1))
        .await
        .unwrap();
    let found = store.realm_info().await.unwrap();
    assert_eq!(
        found.check(&cipher()).unwrap_err().kind,
        StoreErrorKind::WrongRealm
    );
    // Its users cannot be opened.
    let realm = adit_fleet::RealmWriter::new(store.clone(), other_key);
    realm.add(&mut [crate::world::user("eve")]).await.unwrap();
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    assert!(feed.is_empty() && feed.refused() > 0);
    // A server without the realm.
    let mut elsewhere = login(server.url());
    elsewhere.realm = "elsewhere".to_owned();
    let error = open_store(&elsewhere)
        .unwrap()
        .realm_info()
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::WrongRealm);
}

/// An intruder at the server can do much with its records: none of it changes a user.
#[tokio::test(flavor = "multi_thread")]
async fn changed_records_are_refused() {
    let server = plain();
    let store = open(server.url());
    store.create_realm(&info()).await.unwrap();
    let users = add(&store, &["alice", "bob"]).await;
    let old = store.user(users[0].id).await.unwrap().unwrap();
    let mut changed = users[0].clone();
    changed.disabled = true;
    writer(&store).put(&[changed]).await.unwrap();
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    let is_disabled = |feed: &Feed| feed.user(users[0].id).unwrap().disabled;
    assert!(is_disabled(&feed));

    let raw = RawServer::connect(&server).await;
    // The old record, bob's record in alice's place, and one with a changed bit.
    let bob = store.user(users[1].id).await.unwrap().unwrap();
    let mut flipped = old.as_bytes().to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    for (forged, n) in [(old.as_bytes(), 1), (bob.as_bytes(), 2), (&flipped, 3)] {
        raw.set_user(users[0].id, forged).await;
        let step = feed.apply_snapshot(&store.snapshot().await.unwrap(), false);
        assert!(is_disabled(&feed), "{:?}", step.events);
        assert_eq!(feed.refused(), n);
    }
    // The same through the log, with the next number.
    for forged in [old.as_bytes(), bob.as_bytes(), &flipped] {
        let number = feed.position().next();
        raw.append(number, users[0].id, forged).await;
        let refused = feed.refused();
        follow(&mut feed, &store).await;
        assert!(is_disabled(&feed));
        assert_eq!((feed.position(), feed.refused()), (number, refused + 1));
    }
    // A user who disappears without a change.
    raw.delete_user(users[1].id).await;
    let step = feed.apply_snapshot(&store.snapshot().await.unwrap(), false);
    assert!(matches!(step.next, FeedNext::Regression(_)));
    assert_eq!(names(&feed), ["alice", "bob"]);
}

/// An intruder at the server, who has all rights.
struct RawServer(redis::aio::MultiplexedConnection);

impl RawServer {
    async fn connect(server: &StoreServer) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        Self(client.get_multiplexed_async_connection().await.unwrap())
    }

    async fn run(&self, command: &redis::Cmd) {
        let _: redis::Value = command.query_async(&mut self.0.clone()).await.unwrap();
    }

    async fn set_user(&self, id: u32, record: &[u8]) {
        let key = format!("adit:{{{REALM}}}:user");
        self.run(redis::cmd("HSET").arg(key).arg(id).arg(record))
            .await;
    }

    async fn delete_user(&self, id: u32) {
        let key = format!("adit:{{{REALM}}}:user");
        self.run(redis::cmd("HDEL").arg(key).arg(id)).await;
    }

    async fn append(&self, number: ChangeId, id: u32, record: &[u8]) {
        let key = |name| format!("adit:{{{REALM}}}:{name}");
        let mut append = redis::cmd("XADD");
        append.arg(key("log")).arg(format!("{number}-0"));
        append
            .arg("op")
            .arg("put")
            .arg("id")
            .arg(id)
            .arg("rec")
            .arg(record);
        self.run(&append).await;
        self.run(redis::cmd("SET").arg(key("ver")).arg(number.0))
            .await;
    }
}

/// Keys of a server with 10,000 users, and the cost of calls: the numbers in the documentation of the crate.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints measurements: cargo test -p adit-fleet --test it -- --ignored --nocapture measure"]
async fn measure_the_cost_of_calls() {
    let server = plain();
    let store: Arc<dyn Store> = Arc::new(ValkeyStore::open(
        ValkeyConfig::new(&login(server.url())).unwrap(),
    ));
    store.create_realm(&info()).await.unwrap();
    crate::measure::print_costs(&server, &store).await;
}
