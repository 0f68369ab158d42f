//! adit's client with OpenSSH's server.

use adit_interop::openssh::Sshd;
use adit_ssh::client::{Client, Exit};
use tokio::io::AsyncWriteExt;

use crate::world::{BULK, a_connection_goes_through, config_for, dial, drain, enter, pour};

#[tokio::test]
async fn programs_run() {
    let sshd = Sshd::start("").unwrap();
    let session = enter(&sshd).await;
    let program = session.open_session().await.unwrap();
    let output = program
        .collect_output("echo out; echo err >&2; exit 7")
        .await
        .unwrap();
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.exit, Some(Exit::Status(7)));
    let program = session.open_session().await.unwrap();
    let output = program.collect_output("kill -TERM $$").await.unwrap();
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
    assert_eq!(control.wait_exit().await, Some(Exit::Status(0)));
}

#[tokio::test]
async fn connections_go_through() {
    let sshd = Sshd::start("").unwrap();
    let session = enter(&sshd).await;
    a_connection_goes_through(&session).await;
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
