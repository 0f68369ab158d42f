//! Programs: requests and their replies, bytes, ends.

use std::time::Duration;

use adit_russh::{
    Channel, ChannelMsg, Limits, Preferred, Pty, Sig, cipher, client, compression, mac, server,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::World;

/// Returns all received messages as text; adjacent bytes of one kind are joined.
async fn all(channel: &mut Channel<client::Msg>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    while let Some(message) = channel.wait().await {
        words.push(match message {
            ChannelMsg::Data { data } => format!("out {}", String::from_utf8_lossy(&data)),
            ChannelMsg::ExtendedData { data, ext } => {
                format!("{ext} {}", String::from_utf8_lossy(&data))
            }
            other => format!("{other:?}"),
        });
    }
    words
}

#[tokio::test]
async fn a_program_runs_to_its_end() {
    let world = World::new().await.entered().await;
    let mut channel = world.client.channel_open_session().await.unwrap();
    channel.exec(true, "echo").await.unwrap();
    let words = all(&mut channel).await;
    let expected = [
        "out hello ",
        "Success",
        "out echo",
        "1 oh",
        "ExitStatus { exit_status: 7 }",
        "Eof",
        "Close",
    ];
    assert_eq!(words, expected);
    // In a closed channel everything is dropped while the session lives.
    channel.eof().await.unwrap();
    channel.data(&b"late"[..]).await.unwrap();
    channel.exec(true, "late").await.unwrap();
    channel.close().await.unwrap();
    let mut other = world.client.channel_open_session().await.unwrap();
    other.exec(true, "no").await.unwrap();
    assert!(matches!(other.wait().await, Some(ChannelMsg::Data { .. })));
    assert!(matches!(other.wait().await, Some(ChannelMsg::Failure)));
    other.close().await.unwrap();
    assert_eq!(all(&mut other).await, ["Close"]);
}

#[tokio::test]
async fn a_terminal_is_asked_for() {
    let world = World::new().await.entered().await;
    let mut channel = world.client.channel_open_session().await.unwrap();
    let modes = [(Pty::ECHO, 0)];
    channel
        .request_pty(true, "xterm", 80, 24, 0, 0, &modes)
        .await
        .unwrap();
    channel.set_env(true, "LANG", "C").await.unwrap();
    channel.window_change(100, 30, 0, 0).await.unwrap();
    channel.exec(false, "wait").await.unwrap();
    channel.signal(Sig::TERM).await.unwrap();
    let words = all(&mut channel).await;
    assert_eq!(words[..3], ["out hello ", "Success", "Failure"]);
    assert!(
        words[3].starts_with("ExitSignal { signal_name: TERM"),
        "{words:?}"
    );
    let told = world.told.lock().unwrap().clone();
    assert_eq!(told, ["in", "xterm 80x24 [(ECHO, 0)]", "LANG=C", "100x30"]);
}

/// Bulk data in both directions through small windows, with every kind of data message and key
/// re-exchanges.
#[tokio::test]
async fn bytes_go_both_ways() {
    let lists = [
        (cipher::AES_128_CTR, mac::UMAC_64_ETM, compression::NONE),
        (cipher::AES_256_CTR, mac::UMAC_128, compression::ZLIB_LEGACY),
        (
            cipher::CHACHA20_POLY1305,
            mac::HMAC_SHA256,
            compression::NONE,
        ),
    ];
    for (cipher, mac, compression) in lists {
        let config = client::Config {
            preferred: Preferred {
                cipher: vec![cipher].into(),
                mac: vec![mac].into(),
                compression: vec![compression].into(),
                ..Default::default()
            },
            limits: Limits::new(1 << 18, 1 << 18, Duration::from_secs(60)),
            window_size: 30_000,
            maximum_packet_size: 7_000,
            ..Default::default()
        };
        let server = server::Config {
            window_size: 40_000,
            preferred: Preferred::COMPRESSED,
            ..Default::default()
        };
        let world = World::with(config, server).await.entered().await;
        let opened = world
            .client
            .channel_open_direct_tcpip("echo", 7, "here", 1)
            .await;
        let (mut reader, mut writer) = tokio::io::split(opened.unwrap().into_stream());
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 253) as u8).collect();
        let mut got = Vec::new();
        let up = async {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let (_, done) = tokio::join!(up, reader.read_to_end(&mut got));
        done.unwrap();
        assert!(got == sent, "{} of {}", got.len(), sent.len());
    }
}

/// An unread channel holds back only itself.
#[tokio::test]
async fn a_channel_that_lags_keeps_none_from_going_on() {
    let config = client::Config {
        window_size: 50_000,
        ..Default::default()
    };
    let world = World::with(config, server::Config::default())
        .await
        .entered()
        .await;
    let lags = world
        .client
        .channel_open_direct_tcpip("echo", 7, "here", 1)
        .await
        .unwrap();
    let (mut read, write) = lags.split();
    let much = vec![7; 600_000];
    let feeding = tokio::spawn(async move { write.data(&*much).await.map(|()| write) });
    let quick = world
        .client
        .channel_open_direct_tcpip("echo", 7, "here", 2)
        .await
        .unwrap();
    let mut quick = quick.into_stream();
    for _ in 0..50 {
        quick.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        quick.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"ping");
    }
    let mut total = 0;
    while total < 600_000 {
        match read.wait().await.unwrap() {
            ChannelMsg::Data { data } => total += data.len(),
            ChannelMsg::WindowAdjusted { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    feeding.await.unwrap().unwrap().eof().await.unwrap();
    world.client.rekey_soon().await.unwrap();
    world.client.send_ping().await.unwrap();
}

/// Messages of a channel's handler and of a handle arrive in order.
#[tokio::test]
async fn halves_and_handles_speak_to_the_same_channel() {
    let world = World::new().await.entered().await;
    let channel = world.client.channel_open_session().await.unwrap();
    let id = channel.id();
    channel.exec(false, "wait").await.unwrap();
    channel.data_bytes(&b"one "[..]).await.unwrap();
    world.client.data(id, &b"two"[..]).await.unwrap();
    let (mut read, write) = channel.split();
    let mut got = String::new();
    let mut reader = read.make_reader();
    let mut piece = [0; 100];
    while got != "hello one two" {
        let n = reader.read(&mut piece).await.unwrap();
        got.push_str(std::str::from_utf8(&piece[..n]).unwrap());
    }
    drop(reader);
    assert!(write.extended_data(2, &b"x"[..]).await.is_err());
    let mut writer = write.make_writer();
    writer.write_all(b"three").await.unwrap();
    let mut reader = read.make_reader();
    let n = reader.read(&mut piece).await.unwrap();
    assert_eq!(&piece[..n], b"three");
    write.close().await.unwrap();
    assert_eq!(reader.read(&mut piece).await.unwrap(), 0);
}
