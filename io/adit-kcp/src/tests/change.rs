//! Settings that change while a listener runs.

use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::{Config, KcpListener, KcpStream, Settings};

const LONG: Duration = Duration::from_secs(10);

fn settings(password: &[u8], mtu: usize) -> Settings {
    let key = PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, password).unwrap();
    let mut settings = Settings::new(Config::fast3());
    settings.key = Some(Arc::new(key));
    settings.mtu = mtu;
    settings
}

async fn open(listener: &mut KcpListener, with: Settings) -> (KcpStream, KcpStream) {
    let to = listener.local_addr().unwrap();
    let mut near = KcpStream::connect(to, with).await.unwrap();
    near.write_all(b"hello").await.unwrap();
    near.flush().await.unwrap();
    let (mut far, _) = timeout(LONG, listener.accept()).await.unwrap().unwrap();
    let mut text = [0; 5];
    timeout(LONG, far.read_exact(&mut text))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&text, b"hello");
    (near, far)
}

async fn exchange(near: &mut KcpStream, far: &mut KcpStream) {
    let text: Vec<u8> = (0..200_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut got = vec![0; text.len()];
    let send = async {
        near.write_all(&text).await.unwrap();
        near.flush().await.unwrap();
    };
    let receive = async { far.read_exact(&mut got).await.unwrap() };
    timeout(LONG, async { tokio::join!(send, receive) })
        .await
        .unwrap();
    assert!(got == text);
}

#[tokio::test]
async fn open_sessions_keep_their_settings_and_new_ones_have_others() {
    let any = "127.0.0.1:0".parse().unwrap();
    let mut listener = KcpListener::bind(any, settings(b"one", 1200)).unwrap();
    let at = listener.local_addr().unwrap();
    let (mut near, mut far) = open(&mut listener, settings(b"one", 1200)).await;

    // The key is ignored.
    listener.update_settings(settings(b"two", 1400)).unwrap();
    let (mut later, mut later_far) = open(&mut listener, settings(b"one", 1400)).await;
    assert_eq!(listener.local_addr().unwrap(), at);
    exchange(&mut near, &mut far).await;
    exchange(&mut later, &mut later_far).await;

    assert!(listener.update_settings(settings(b"one", 9000)).is_err());
    exchange(&mut far, &mut near).await;
}

#[tokio::test]
async fn with_another_key_sessions_end_and_the_port_stays() {
    let any = "127.0.0.1:0".parse().unwrap();
    let mut listener = KcpListener::bind(any, settings(b"one", 1200)).unwrap();
    let (_near, mut far) = open(&mut listener, settings(b"one", 1200)).await;
    listener.replace_settings(settings(b"two", 1200)).unwrap();
    let end = timeout(LONG, far.read(&mut [0; 9])).await.unwrap();
    assert!(end.is_err(), "{end:?}");
    let (mut near, mut far) = open(&mut listener, settings(b"two", 1200)).await;
    exchange(&mut near, &mut far).await;
}
