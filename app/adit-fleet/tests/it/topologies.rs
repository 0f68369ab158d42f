//! Servers that replace each other: sentinels and clusters.

use adit_fleet::{Feed, StoreErrorKind, StoreLogin, open_store};

use crate::laws::check_store_laws;
use crate::servers::{Authority, Cluster, PortServer, Sentinels, ServerTransport};
use crate::world::{REALM, add, cipher, eventually, follow, info, names, user, writer};

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_with_sentinels() {
    let sentinels = Sentinels::start(&ServerTransport::default()).unwrap();
    check_store_laws(open_store(&sentinels.login()).unwrap()).await;
}

/// Checks that a store is reached with the authority of its servers, and with no other.
async fn check_pinned_authority(pinned: StoreLogin) {
    let authority = Authority::create().unwrap();
    for ca_pem in [Some(authority.certificate()), None] {
        let wrong = StoreLogin {
            ca_pem,
            ..pinned.clone()
        };
        let error = open_store(&wrong).unwrap().realm_info().await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unreachable, "{error}");
    }
    check_store_laws(open_store(&pinned).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_and_their_servers_speak_tls() {
    let sentinels = Sentinels::start(&ServerTransport::tls().unwrap()).unwrap();
    check_pinned_authority(sentinels.login()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_of_a_cluster_speak_tls() {
    let cluster = Cluster::start(&ServerTransport::tls().unwrap()).unwrap();
    check_pinned_authority(cluster.login()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_becomes_the_master() {
    let mut sentinels = Sentinels::start(&ServerTransport::default()).unwrap();
    let store = open_store(&sentinels.login()).unwrap();
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice"]).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    // The user of a node may ask for the role of a server.
    for server in &sentinels.servers {
        server.set_node_user();
    }
    let node = open_store(&PortServer::node_login(sentinels.login())).unwrap();
    assert_eq!(node.snapshot().await.unwrap().users.len(), 1);
    // Both replicas have what was written.
    let acknowledged = sentinels.servers[0].run(&["WAIT", "2", "5000"]).unwrap();
    assert_eq!(acknowledged, "2");
    sentinels.servers[0].kill().unwrap();
    let lost = eventually("the loss", || async { store.head().await.err() }).await;
    assert_eq!(lost.kind, StoreErrorKind::Unreachable, "{lost}");
    eventually("the next master", || async {
        writer(&store).add(&mut [user("bob")]).await.ok()
    })
    .await;
    follow(&mut feed, &store).await;
    assert_eq!(names(&feed), ["alice", "bob"]);
    assert_eq!(feed.regression(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_in_a_cluster_which_loses_a_server() {
    let mut cluster = Cluster::start(&ServerTransport::default()).unwrap();
    let store = open_store(&cluster.login()).unwrap();
    check_store_laws(store.clone()).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    let before = names(&feed);
    // The user of a node may ask for the servers of the cluster.
    for server in &cluster.servers {
        server.set_node_user();
    }
    let node = open_store(&PortServer::node_login(cluster.login())).unwrap();
    add(&node, &["of-a-node"]).await;
    follow(&mut feed, &node).await;
    assert_eq!(feed.len(), before.len() + 1);
    // All keys of the realm are on one server; its replica takes over.
    let owner = cluster.owner(REALM).unwrap();
    let keys = cluster.servers[owner].run(&["DBSIZE"]).unwrap();
    assert!(keys.parse::<u64>().unwrap() > 5, "{keys}");
    cluster.servers[owner].run(&["WAIT", "2", "5000"]).unwrap();
    cluster.servers[owner].kill().unwrap();
    eventually("the replica", || async {
        writer(&store).add(&mut [user("after-failover")]).await.ok()
    })
    .await;
    follow(&mut feed, &store).await;
    assert_eq!(feed.len(), before.len() + 2);
    assert_eq!(feed.regression(), None);
}
