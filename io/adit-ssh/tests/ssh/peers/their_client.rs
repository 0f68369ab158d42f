//! Other clients with adit's server.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_interop::TempFolder;
use adit_interop::openssh::generate_key;
use adit_interop::ssh_peer::SshPeer;
use adit_ssh::server::ServerConfig;
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::{Compression, Kex, KeyAlgorithm, Mac};
use adit_ssh_proto::kex::Negotiated;
use adit_ssh_proto::key::{KeySet, PublicKey, Signer};
use adit_ssh_proto::transport::StrictKex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use super::{EXCHANGES, MUCH, RENEWED, Suite};
use crate::matrix::{Choice, SMALL, choices};
use crate::server::{key, serve_seen, settings};

/// Maximum time for all jobs of one client.
const LIMIT: Duration = Duration::from_secs(120);

/// A host key that counts its signatures: one exchange hash per key exchange.
struct Counted(KeySet, Arc<AtomicUsize>);

impl Signer for Counted {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        self.0.algorithms()
    }

    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        self.0.public_blob(algorithm)
    }

    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.sign_data(algorithm, data)
    }
}

/// A connected client, as seen by adit's server.
struct Seen {
    version: String,
    strict: bool,
    negotiated: Negotiated,
}

/// An adit server and the client's files for it.
pub(super) struct Host {
    peer: SshPeer,
    // Keeps the folder with the key.
    _folder: TempFolder,
    id: PathBuf,
    addr: SocketAddr,
    exchanges: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Host {
    pub(super) async fn start(peer: SshPeer, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let folder = TempFolder::new("peer").unwrap();
        let id = generate_key(folder.path(), "id").unwrap();
        let line = fs::read_to_string(id.with_extension("pub")).unwrap();
        let (user, _) = PublicKey::from_line(&line).unwrap();
        let exchanges = Arc::new(AtomicUsize::new(0));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut config, _) = settings();
        // More than a server offers by default.
        config.transport.preferred.kex = Kex::ALL.to_vec();
        config.transport.preferred.mac = Mac::ALL.to_vec();
        let keys = KeySet::from(vec![key()]);
        config.host_keys = Arc::new(Counted(keys, Arc::clone(&exchanges)));
        change(&mut config);
        let all = Arc::clone(&seen);
        let port = serve_seen(config, user, move |connection| {
            all.lock().unwrap().push(Seen {
                version: connection.version().to_owned(),
                strict: connection.is_strict(),
                negotiated: *connection.negotiated(),
            });
        });
        Self {
            peer,
            _folder: folder,
            id,
            addr: SocketAddr::from(([127, 0, 0, 1], port.await)),
            exchanges,
            seen,
        }
    }

    pub(super) async fn does(&self, jobs: Vec<String>) {
        self.tries(jobs).await.unwrap();
    }

    async fn tries(&self, jobs: Vec<String>) -> Result<(), String> {
        let (peer, addr, id) = (self.peer, self.addr, self.id.clone());
        let done = spawn_blocking(move || peer.run_jobs(addr, &id, &jobs, LIMIT));
        done.await.unwrap().map_err(|why| format!("{why:#}"))
    }
}

fn job(choice: Choice) -> String {
    let (cipher, mac, kex, _) = choice;
    format!("echo,program=echo,bytes={SMALL},cipher={cipher},mac={mac},kex={kex}")
}

/// With each of these pairs and methods, and at least this many, bytes are echoed. `name` is in the
/// client's identification.
pub(super) async fn has_every_algorithm(
    peer: SshPeer,
    (pairs, methods): (usize, usize),
    (name, strict): (&str, bool),
) {
    let theirs = spawn_blocking(move || peer.algorithms().unwrap());
    let choices = choices(&theirs.await.unwrap(), pairs, methods);
    let host = Host::start(peer, |_| {}).await;
    host.does(choices.iter().map(|choice| job(*choice)).collect())
        .await;
    let seen = host.seen.lock().unwrap();
    assert_eq!(seen.len(), choices.len());
    for (one, (cipher, mac, kex, _)) in seen.iter().zip(choices) {
        assert!(one.version.contains(name), "{}", one.version);
        assert_eq!(one.strict, strict, "{} {cipher} {mac} {kex}", one.version);
        let (up, down) = (
            one.negotiated.client_to_server,
            one.negotiated.server_to_client,
        );
        assert_eq!(one.negotiated.kex, kex);
        assert_eq!((up.cipher, down.cipher), (cipher, cipher));
        let mac = Some(mac).filter(|_| !cipher.is_aead());
        assert_eq!((up.mac, down.mac), (mac, mac));
        assert_eq!(up.compression, Compression::None);
    }
}

/// With each of these suites bulk data is echoed while adit's server renews the keys.
pub(super) async fn takes_new_keys(peer: SshPeer, suites: &[Suite]) {
    renewed(peer, suites, Some(RENEWED), "").await;
}

/// The same while the client renews the keys itself.
pub(super) async fn makes_new_keys(peer: SshPeer, suites: &[Suite]) {
    renewed(peer, suites, None, &format!(",rekey={RENEWED}")).await;
}

async fn renewed(peer: SshPeer, suites: &[Suite], ours: Option<u64>, theirs: &str) {
    let host = Host::start(peer, |config| config.transport.rekey_bytes = ours).await;
    for (cipher, mac, kex) in suites {
        let suite = format!("cipher={cipher},mac={mac},kex={kex}");
        let before = host.exchanges.load(Ordering::Relaxed);
        host.does(vec![format!(
            "echo,program=echo,bytes={MUCH},{suite}{theirs}"
        )])
        .await;
        let made = host.exchanges.load(Ordering::Relaxed) - before;
        assert!(made >= EXCHANGES, "{suite}: {made}");
    }
}

/// Its requests for a terminal and a variable arrive, and so do both outputs and the exit status; a
/// connection reaches a target.
pub(super) async fn has_a_terminal_and_a_connection(peer: SshPeer) {
    let host = Host::start(peer, |_| {}).await;
    host.does(vec!["terminal".to_owned()]).await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let far = async {
        let (mut socket, _) = target.accept().await.unwrap();
        let mut got = Vec::new();
        socket.read_to_end(&mut got).await.unwrap();
        socket.write_all(b"pong").await.unwrap();
        got
    };
    let near = host.does(vec![format!("connection,port={port}")]);
    let (got, ()) = tokio::join!(far, near);
    assert_eq!(got, b"ping");
}

/// A server that requires strict key exchange refuses it.
pub(super) async fn is_refused_as_not_strict(peer: SshPeer) {
    let job = vec![format!("echo,program=echo,bytes={SMALL}")];
    for strict in [StrictKex::Always, StrictKex::WhenExposed] {
        let host = Host::start(peer, |config| config.transport.strict = strict).await;
        let done = host.tries(job.clone()).await;
        let came = host.seen.lock().unwrap().len();
        match strict {
            StrictKex::Always => assert!(done.is_err() && came == 0, "{done:?}"),
            _ => assert!(done.is_ok() && came == 1, "{done:?}"),
        }
    }
}
