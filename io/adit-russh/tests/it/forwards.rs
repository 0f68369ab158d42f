//! Connections through the session, in both directions.

use adit_russh::{ChannelMsg, ChannelOpenFailure, Error};

use crate::world::World;

#[tokio::test]
async fn a_connection_that_fails_is_told() {
    let world = World::new().await.entered().await;
    let opened = world
        .client
        .channel_open_direct_tcpip("nowhere", 80, "10.0.0.1", 5)
        .await;
    assert!(matches!(
        opened,
        Err(Error::ChannelOpenFailure(ChannelOpenFailure::ConnectFailed))
    ));
    let told = world.told.lock().unwrap().last().cloned();
    assert_eq!(told.unwrap(), "nowhere:80 for 10.0.0.1:5");
    // The handler's default refuses.
    let opened = world
        .client
        .channel_open_direct_streamlocal("/a/socket")
        .await;
    assert!(matches!(
        opened,
        Err(Error::ChannelOpenFailure(
            ChannelOpenFailure::AdministrativelyProhibited
        ))
    ));
    let far = world
        .client
        .channel_open_direct_tcpip("echo", 70_000, "10.0.0.1", 5)
        .await;
    assert!(matches!(far, Err(Error::Inconsistent)));
}

#[tokio::test]
async fn what_the_server_listens_on_comes_back() {
    let mut world = World::new().await.entered().await;
    let refused = world.client.tcpip_forward("127.0.0.1", 80).await;
    assert!(matches!(refused, Err(Error::RequestDenied)));
    assert_eq!(
        world.client.tcpip_forward("127.0.0.1", 0).await.unwrap(),
        4711
    );
    let mut channel = world.arrivals.recv().await.unwrap();
    let Some(ChannelMsg::Data { data }) = channel.wait().await else {
        panic!("no bytes");
    };
    assert_eq!(&*data, b"from afar");
    assert!(matches!(channel.wait().await, Some(ChannelMsg::Eof)));
    let heard = world.heard.lock().unwrap().last().cloned();
    assert_eq!(heard.unwrap(), "127.0.0.1:4711 by 1.2.3.4:1234");
    let refused = world.client.cancel_tcpip_forward("127.0.0.1", 4711).await;
    assert!(matches!(refused, Err(Error::RequestDenied)));
    let refused = world.client.streamlocal_forward("/a/socket").await;
    assert!(matches!(refused, Err(Error::RequestDenied)));
    world.client.no_more_sessions(false).await.unwrap();
    let opened = world.client.channel_open_session().await;
    assert!(matches!(opened, Err(Error::ChannelOpenFailure(_))));
}
