//! Our client with OpenSSH's server.

use adit_interop::openssh::Sshd;
use adit_session::ssh::client::{Client, Exit};
use adit_ssh::connection::Originator;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{BULK, config_for, dial, drain, enter, pour};

#[tokio::test]
async fn programs_run() {
    let sshd = Sshd::start("").unwrap();
    let session = enter(&sshd).await;
    let program = session.open_session().await.unwrap();
    let output = program
        .output("echo out; echo err >&2; exit 7")
        .await
        .unwrap();
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.exit, Some(Exit::Status(7)));
    let program = session.open_session().await.unwrap();
    let output = program.output("kill -TERM $$").await.unwrap();
    assert!(matches!(output.exit, Some(Exit::Signal { name, .. }) if name == "TERM"));
    assert!(session.rtt().is_some());
}

#[tokio::test]
async fn much_goes_up_and_comes_down() {
    let sshd = Sshd::start("").unwrap();
    let session = enter(&sshd).await;
    let program = session.open_session().await.unwrap();
    program.exec("cat").await.unwrap();
    let (control, channel, _) = program.into_parts();
    let (mut reader, mut writer) = channel.into_split();
    let up = async {
        let sum = pour(&mut writer, BULK, 1).await;
        writer.shutdown().await.unwrap();
        sum
    };
    let (sent, got) = tokio::join!(up, drain(&mut reader));
    assert_eq!(got, (BULK, sent));
    assert_eq!(control.wait().await, Some(Exit::Status(0)));
}

#[tokio::test]
async fn connections_go_through() {
    let sshd = Sshd::start("").unwrap();
    let session = enter(&sshd).await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let channel = session.direct_tcpip("127.0.0.1", port, Originator::default());
    let (channel, accepted) = tokio::join!(channel, target.accept());
    let (mut channel, (mut socket, _)) = (channel.unwrap(), accepted.unwrap());
    channel.write_all(b"ping").await.unwrap();
    channel.shutdown().await.unwrap();
    let mut got = Vec::new();
    socket.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"ping");
    socket.write_all(b"pong").await.unwrap();
    drop(socket);
    got.clear();
    channel.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"pong");
    drop(target);
    let refused = session.direct_tcpip("127.0.0.1", port, Originator::default());
    refused.await.unwrap_err();
}

#[tokio::test]
async fn keys_are_renewed_under_load() {
    for (ours, theirs) in [(Some(1 << 20), ""), (None, "RekeyLimit 1M")] {
        let sshd = Sshd::start(theirs).unwrap();
        let mut config = config_for(&sshd);
        config.transport.rekey_bytes = ours;
        let session = Client::connect(dial(sshd.port()).await, config).await;
        let program = session.unwrap().open_session().await.unwrap();
        program.exec("cat").await.unwrap();
        let (mut reader, mut writer) = program.into_channel().into_split();
        let up = async {
            let sum = pour(&mut writer, BULK / 8, 1).await;
            writer.shutdown().await.unwrap();
            sum
        };
        let (sent, got) = tokio::join!(up, drain(&mut reader));
        assert_eq!(got, (BULK / 8, sent));
    }
}
