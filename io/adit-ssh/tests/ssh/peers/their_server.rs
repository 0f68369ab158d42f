//! adit's client with other servers.

use std::sync::Arc;

use adit_interop::dropbear::Dropbear;
use adit_interop::kcp_go::ListeningPeer;
use adit_interop::openssh::generate_key;
use adit_interop::ssh_peer::{AlgorithmNames, SshPeer};
use adit_interop::{BytePattern, TEST_TIMEOUT, TempFolder};
use adit_ssh::client::{Client, ClientConfig, Exit, Program, Session};
use adit_ssh_proto::algorithm::{Cipher, Compression};
use adit_ssh_proto::connection::{PtyRequest, TerminalModes, TerminalSize};
use adit_ssh_proto::transport::StrictKex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{EXCHANGES, MUCH, RENEWED, Suite};
use crate::matrix::{SMALL, choices, choose, each};
use crate::world::{a_connection_goes_through, config_of, dial, drain, pour};

/// Another server, and the client's files for it.
pub(super) struct Far {
    running: Which,
    port: u16,
}

enum Which {
    Peer(ListeningPeer, TempFolder),
    Dropbear(Dropbear),
}

impl Far {
    /// Starts a server that renews its keys after this many bytes, if it supports that.
    pub(super) fn start(peer: SshPeer, rekey: Option<u64>) -> Self {
        let folder = TempFolder::new("peer").unwrap();
        let host = generate_key(folder.path(), "host").unwrap();
        let id = generate_key(folder.path(), "id").unwrap();
        let running = peer.start_server(&host, &id.with_extension("pub"), rekey);
        let running = running.unwrap();
        Self {
            port: running.addr().port(),
            running: Which::Peer(running, folder),
        }
    }

    pub(super) fn dropbear() -> Self {
        let dropbear = Dropbear::start().unwrap();
        Self {
            port: dropbear.port(),
            running: Which::Dropbear(dropbear),
        }
    }

    pub(super) fn config(&self) -> ClientConfig {
        config_of(match &self.running {
            Which::Peer(_, folder) => folder.path(),
            Which::Dropbear(dropbear) => dropbear.folder(),
        })
    }

    pub(super) async fn enter(&self, config: ClientConfig) -> Session {
        let session = Client::connect(dial(self.port).await, config).await;
        session.unwrap_or_else(|why| panic!("{why}"))
    }
}

/// With each of these pairs and methods, and at least this many, bytes are echoed. `name` is in the
/// server's identification.
pub(super) async fn has_every_algorithm(
    far: Far,
    theirs: &AlgorithmNames,
    (pairs, methods): (usize, usize),
    name: &'static str,
) {
    let far = Arc::new(far);
    let bytes = Arc::new(BytePattern::new(2).next_bytes(SMALL));
    each(choices(theirs, pairs, methods), |choice| {
        let (far, bytes) = (Arc::clone(&far), Arc::clone(&bytes));
        async move {
            let mut config = far.config();
            choose(&mut config, choice);
            // Some have no compression.
            let (cipher, mac, kex, _) = choice;
            config.transport.preferred.compression = vec![choice.3, Compression::None];
            let session = Client::connect(dial(far.port).await, config).await;
            let session = session.unwrap_or_else(|why| panic!("{cipher} {mac} {kex}: {why}"));
            assert!(session.version().contains(name), "{}", session.version());
            assert!(session.is_strict(), "{}", session.version());
            let negotiated = session.negotiated();
            let up = negotiated.client_to_server;
            assert_eq!((negotiated.kex, up.cipher), (kex, cipher));
            assert_eq!(up.mac, Some(mac).filter(|_| !cipher.is_aead()));
            let program = session.open_session().await.unwrap();
            let (exit, got) = through_cat(program, &bytes).await;
            assert_eq!(exit, Some(Exit::Status(0)), "{cipher} {mac} {kex}");
            assert!(got == *bytes, "{cipher} {mac} {kex}: {}", got.len());
        }
    })
    .await;
}

async fn through_cat(program: Program, bytes: &[u8]) -> (Option<Exit>, Vec<u8>) {
    program.exec("cat").await.unwrap();
    let (control, channel, _) = program.into_parts();
    let (mut reader, mut writer) = channel.into_split();
    let up = async {
        writer.write_all(bytes).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(up, reader.read_to_end(&mut got));
    read.unwrap();
    (control.wait_exit().await, got)
}

/// With each of these suites bulk data is echoed while adit's client renews the keys.
pub(super) async fn takes_new_keys(far: Far, suites: &[Suite]) {
    renewed(far, suites, Some(RENEWED)).await;
}

/// The same while the server renews the keys.
pub(super) async fn makes_new_keys(peer: SshPeer, suites: &[Suite]) {
    renewed(Far::start(peer, Some(RENEWED)), suites, None).await;
}

async fn renewed(mut far: Far, suites: &[Suite], ours: Option<u64>) {
    for (done, suite) in suites.iter().enumerate() {
        let mut config = far.config();
        config.transport.preferred.cipher = vec![suite.0];
        config.transport.preferred.mac = vec![suite.1];
        config.transport.preferred.kex = vec![suite.2];
        config.transport.rekey_bytes = ours;
        let session = far.enter(config).await;
        let program = session.open_session().await.unwrap();
        program.exec("cat").await.unwrap();
        let (control, channel, _) = program.into_parts();
        let (mut reader, mut writer) = channel.into_split();
        let up = async {
            let sum = pour(&mut writer, MUCH, 1).await;
            writer.shutdown().await.unwrap();
            sum
        };
        let (sent, got) = tokio::join!(up, drain(&mut reader));
        assert_eq!(got, (MUCH, sent), "{suite:?}");
        assert_eq!(
            control.wait_exit().await,
            Some(Exit::Status(0)),
            "{suite:?}"
        );
        // dropbear does not report its key exchanges.
        if let Which::Peer(running, _) = &mut far.running {
            let wanted = (done + 1) * EXCHANGES;
            let process = running.process();
            process.wait_lines("keys", wanted, TEST_TIMEOUT).unwrap();
        }
    }
}

/// Both outputs and the exit status arrive.
pub(super) async fn runs_programs(far: &Far) {
    let session = far.enter(far.config()).await;
    let program = session.open_session().await.unwrap();
    let output = program
        .collect_output("echo out; echo err >&2; exit 7")
        .await;
    let output = output.unwrap();
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
    assert_eq!(output.exit, Some(Exit::Status(7)));
}

/// A request for a terminal is granted; a variable is if the server accepts any.
pub(super) async fn gives_a_terminal(far: &Far, takes_variables: bool) {
    let session = far.enter(far.config()).await;
    let program = session.open_session().await.unwrap();
    let mut modes = TerminalModes::new();
    // ECHO (RFC 4254 section 8): the terminal must not echo its input.
    modes.set(53, 0);
    let size = TerminalSize {
        columns: 97,
        rows: 31,
        ..TerminalSize::default()
    };
    let term = "xterm-peer".to_owned();
    program
        .control()
        .request_pty(PtyRequest { term, size, modes })
        .await
        .unwrap();
    let taken = program.control().set_env("LC_PEER", "one two").await;
    assert_eq!(taken.is_ok(), takes_variables, "{taken:?}");
    let line = "echo $TERM ${SIZE:-$(stty size)} $LC_PEER";
    let output = program.collect_output(line).await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted = match takes_variables {
        true => "xterm-peer 31 97 one two",
        false => "xterm-peer 31 97",
    };
    assert_eq!(told.trim_end(), wanted);
    assert_eq!(output.exit, Some(Exit::Status(0)));
}

/// Connections reach their targets, and are refused without one.
pub(super) async fn connects(far: &Far) {
    let session = far.enter(far.config()).await;
    a_connection_goes_through(&session).await;
}

/// A client that does not offer strict key exchange is served, over several exchanges.
pub(super) async fn serves_clients_that_are_not_strict(far: &Far) {
    let mut config = far.config();
    config.transport.strict = StrictKex::Never;
    config.transport.preferred.cipher = vec![Cipher::Aes128Ctr];
    config.transport.rekey_bytes = Some(1 << 16);
    let session = far.enter(config).await;
    assert!(!session.is_strict());
    let bytes = BytePattern::new(3).next_bytes(4 * SMALL);
    let program = session.open_session().await.unwrap();
    let (exit, got) = through_cat(program, &bytes).await;
    assert_eq!(exit, Some(Exit::Status(0)));
    assert!(got == bytes, "{}", got.len());
}
