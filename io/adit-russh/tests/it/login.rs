//! Logging in, and ending sessions.

use std::sync::Arc;
use std::time::Duration;

use adit_russh::client::KeyboardInteractiveAuthResponse as Answer;
use adit_russh::keys::{HashAlg, PrivateKeyWithHashAlg};
use adit_russh::{AuthResult, ChannelMsg, Disconnect, Error, MethodKind, client, server};
use tokio::time::timeout;

use crate::world::{Guest, Host, Log, World, new_key};

fn signed(key: &adit_russh::keys::PrivateKey) -> PrivateKeyWithHashAlg {
    PrivateKeyWithHashAlg::new(Arc::new(key.clone()), None)
}

/// A handler that does not implement the host key check.
struct Trusting;

impl client::Handler for Trusting {
    type Error = Error;
}

#[tokio::test]
async fn a_handler_that_says_nothing_takes_no_key() {
    let (near, far) = tokio::io::duplex(20_000);
    let config = server::Config {
        keys: vec![new_key()],
        ..Default::default()
    };
    let host = Host::new(new_key(), Log::default());
    let server = server::run_stream(Arc::new(config), far, host)
        .await
        .unwrap();
    let refused = client::connect_stream(Arc::default(), near, Trusting).await;
    assert!(matches!(refused, Err(Error::UnknownKey)));
    // The server receives the reason.
    server.await.unwrap();
}

#[tokio::test]
async fn nothing_goes_before_the_user_is_in() {
    let mut world = World::new().await;
    let early = world.client.channel_open_session().await;
    assert!(matches!(early, Err(Error::NotAuthenticated)));
    let hash = world.client.best_supported_rsa_hash().await.unwrap();
    assert_eq!(hash, Some(Some(HashAlg::Sha512)));
    let AuthResult::Failure {
        remaining_methods,
        partial_success: false,
    } = world.client.authenticate_none("me").await.unwrap()
    else {
        panic!("in with nothing");
    };
    assert!(remaining_methods.contains(&MethodKind::PublicKey));
    assert!(!remaining_methods.contains(&MethodKind::HostBased));
    for (user, password) in [("me", "wrong"), ("other", "secret")] {
        let result = world.client.authenticate_password(user, password).await;
        assert!(!result.unwrap().success());
    }
    let other = world
        .client
        .authenticate_publickey("me", signed(&new_key()))
        .await;
    assert!(!other.unwrap().success());
    let right = world
        .client
        .authenticate_publickey("me", signed(&world.key))
        .await;
    assert!(right.unwrap().success());
    assert_eq!(*world.heard.lock().unwrap(), ["welcome"]);
    // After login no further attempt is possible.
    let again = world.client.authenticate_none("me").await;
    assert!(matches!(again, Err(Error::SendError)));
    world.client.channel_open_session().await.unwrap();
}

#[tokio::test]
async fn questions_are_asked_and_answered() {
    let mut world = World::new().await;
    let early = world
        .client
        .authenticate_keyboard_interactive_respond(vec!["42".to_owned()]);
    assert!(matches!(early.await, Err(Error::Inconsistent)));
    for (answers, right) in [
        (vec!["41"], false),
        (vec!["42", "43"], false),
        (vec!["42"], true),
    ] {
        let asked = world
            .client
            .authenticate_keyboard_interactive_start("me", None)
            .await;
        let Answer::InfoRequest {
            name,
            instructions,
            prompts,
        } = asked.unwrap()
        else {
            panic!("nothing was asked");
        };
        assert_eq!((&*name, &*instructions), ("riddle", "think"));
        assert_eq!(
            (&*prompts[0].prompt, prompts[0].echo),
            ("what is it? ", true)
        );
        let count = answers.len();
        let answers = answers.into_iter().map(str::to_owned).collect();
        let came = world
            .client
            .authenticate_keyboard_interactive_respond(answers)
            .await;
        match came {
            Ok(Answer::Success) => assert!(right),
            Ok(Answer::Failure {
                partial_success, ..
            }) => assert!(!right && !partial_success),
            // A wrong number of answers leaves the prompts open.
            Err(Error::Inconsistent) => assert_eq!(count, 2),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_user_may_need_two_methods() {
    let mut world = World::new().await;
    let half = world.client.authenticate_password("both", "secret").await;
    let AuthResult::Failure {
        remaining_methods,
        partial_success: true,
    } = half.unwrap()
    else {
        panic!("the password alone");
    };
    assert_eq!(*remaining_methods, [MethodKind::PublicKey]);
    // A method that succeeded for one user does not count for another.
    let other = world
        .client
        .authenticate_publickey("me", signed(&world.key))
        .await;
    assert!(!other.unwrap().success());
    let whole = world
        .client
        .authenticate_publickey("both", signed(&world.key))
        .await;
    assert!(whole.unwrap().success());
}

#[tokio::test]
async fn whoever_leaves_says_so() {
    // The client ends the session.
    let world = World::new().await.entered().await;
    let left = world
        .client
        .disconnect(Disconnect::ByApplication, "done", "en");
    left.await.unwrap();
    world.server.await.unwrap();
    world.client.await.unwrap();
    // The server ends the session.
    let world = World::new().await.entered().await;
    let handle = world.server.handle();
    let words = ("closing time".to_owned(), String::new());
    handle
        .disconnect(Disconnect::TooManyConnections, words.0, words.1)
        .await
        .unwrap();
    let heard = Arc::clone(&world.heard);
    world.client.await.unwrap();
    let last = heard.lock().unwrap().last().cloned().unwrap();
    assert_eq!(last, "TooManyConnections: closing time");
    // The server's handler ends the session.
    let world = World::new().await.entered().await;
    let channel = world.client.channel_open_session().await.unwrap();
    channel.data(&b"leave"[..]).await.unwrap();
    assert!(matches!(world.server.await, Err(Error::Disconnect)));
    world.client.await.unwrap();
    // Neither: the handle is dropped.
    let World { client, server, .. } = World::new().await.entered().await;
    drop(client);
    server.await.unwrap();
}

#[tokio::test]
async fn silence_ends_a_session() {
    let config = client::Config {
        inactivity_timeout: Some(Duration::from_millis(200)),
        // Keepalives do not count as activity.
        keepalive_interval: Some(Duration::from_millis(50)),
        ..Default::default()
    };
    let world = World::with(config, server::Config::default())
        .await
        .entered()
        .await;
    let heard = Arc::clone(&world.heard);
    world.client.await.unwrap();
    let last = heard.lock().unwrap().last().cloned().unwrap();
    assert!(last.starts_with("failed: the session was idle"), "{last}");
}

#[tokio::test]
async fn a_server_without_a_key_does_not_run() {
    let host = Host::new(new_key(), Log::default());
    let (_, far) = tokio::io::duplex(100);
    let refused = server::run_stream(Arc::default(), far, host).await;
    assert!(matches!(refused, Err(Error::InvalidConfig(_))));
}

#[tokio::test]
async fn two_sides_without_a_common_cipher_say_so() {
    let (near, far) = tokio::io::duplex(20_000);
    let preferred = |name| adit_russh::Preferred {
        cipher: vec![name].into(),
        ..Default::default()
    };
    let config = server::Config {
        keys: vec![new_key()],
        preferred: preferred(adit_russh::cipher::AES_128_CTR),
        ..Default::default()
    };
    let host = Host::new(new_key(), Log::default());
    let server = server::run_stream(Arc::new(config), far, host)
        .await
        .unwrap();
    let config = client::Config {
        preferred: preferred(adit_russh::cipher::AES_256_GCM),
        ..Default::default()
    };
    let (arrived, _arrivals) = tokio::sync::mpsc::channel(1);
    let guest = Guest {
        host: None,
        log: Log::default(),
        arrived,
    };
    let refused = client::connect_stream(Arc::new(config), near, guest).await;
    let kind = adit_russh::AlgorithmKind::Cipher;
    assert!(
        matches!(&refused, Err(Error::NoCommonAlgo { kind: k, ours, .. })
            if *k == kind && ours == &["aes256-gcm@openssh.com"]),
        "{refused:?}"
    );
    server.await.unwrap_err();
}

/// A task in one runtime is notified when another runtime, that of the session, shuts down.
#[tokio::test]
async fn a_runtime_that_ends_tells_whoever_waits() {
    let other = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let made = other.spawn(async {
        let config = client::Config {
            window_size: 50_000,
            ..Default::default()
        };
        let world = World::with(config, server::Config::default()).await;
        let world = world.entered().await;
        let silent = world.client.channel_open_session().await.unwrap();
        let lags = world
            .client
            .channel_open_direct_tcpip("echo", 7, "here", 1)
            .await;
        (world, silent, lags.unwrap())
    });
    let (world, mut silent, lags) = made.await.unwrap();
    let first = silent.wait().await;
    assert!(matches!(first, Some(ChannelMsg::Data { .. })), "{first:?}");
    // No one reads the echo: the windows fill, then this end has no space either.
    let much = vec![7; 8 << 20];
    let mut waiting = Box::pin(async { tokio::join!(silent.wait(), lags.data(&*much)) });
    let before = timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(before.is_err(), "they wait: {before:?}");
    other.shutdown_background();
    let told = timeout(Duration::from_secs(10), &mut waiting).await;
    let (heard, sent) = told.expect("the waiting task receives it");
    assert!(heard.is_none(), "{heard:?}");
    assert!(sent.is_err());
    let opened = world.client.channel_open_session().await;
    assert!(matches!(opened, Err(Error::Disconnect)), "{opened:?}");
}
