//! Servers that replace each other: sentinels and clusters.

use adit_fleet::{Feed, StoreErrorKind, open_store};

use crate::laws::check_store_laws;
use crate::servers::{Cluster, PortServer, Sentinels};
use crate::world::{REALM, add, cipher, eventually, follow, info, names, open, user, writer};

#[tokio::test(flavor = "multi_thread")]
async fn the_laws_hold_with_sentinels() {
    let sentinels = Sentinels::start().unwrap();
    check_store_laws(open(sentinels.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_becomes_the_master() {
    let mut sentinels = Sentinels::start().unwrap();
    let store = open(sentinels.url());
    store.create_realm(&info()).await.unwrap();
    add(&store, &["alice"]).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    // The user of a node may ask for the role of a server.
    for server in &sentinels.servers {
        server.set_node_user();
    }
    let node = open_store(&PortServer::node_login(sentinels.url())).unwrap();
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
    let mut cluster = Cluster::start().unwrap();
    let store = open(cluster.url());
    check_store_laws(store.clone()).await;
    let mut feed = Feed::new(cipher());
    follow(&mut feed, &store).await;
    let before = names(&feed);
    // The user of a node may ask for the servers of the cluster.
    for server in &cluster.servers {
        server.set_node_user();
    }
    let node = open_store(&PortServer::node_login(cluster.url())).unwrap();
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
