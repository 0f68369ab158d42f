//! A realm, its nodes, and clients.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use adit_config::{OutagePolicy, Plan};
use adit_engine::{Engine, Inheritance, RuleSetTable, SharedSockets};
use adit_fleet::{
    FaultyStore, FleetUser, Grace, Membership, MemoryStore, NodeRecord, RealmInfo, RealmKey,
    RealmWriter, RecordLimits, Role, Store,
};
use adit_fleet_node::{FleetNode, NodeControl, NodeSettings};
use adit_net::system::SystemRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

/// Bound of every wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The method of keyed listeners.
pub(crate) const METHOD: &str = "2022-blake3-aes-128-gcm";

/// A realm with a store in memory.
pub(crate) struct Realm {
    pub(crate) memory: MemoryStore,
    pub(crate) key: RealmKey,
    pub(crate) writer: RealmWriter,
    folder: PathBuf,
}

impl Drop for Realm {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A node that runs in this process.
pub(crate) struct Node {
    pub(crate) engine: Arc<Engine>,
    pub(crate) control: NodeControl,
    /// The store as this node sees it.
    pub(crate) faults: FaultyStore,
    /// Its SOCKS listener.
    pub(crate) proxy: SocketAddr,
    /// Its Shadowsocks listener.
    pub(crate) keyed: SocketAddr,
    /// Another one, with the key that all nodes share.
    pub(crate) shared: SocketAddr,
}

impl Realm {
    pub(crate) async fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-fleet-node-{}-{count}", std::process::id());
        let memory = MemoryStore::new();
        let key = RealmKey::generate(&mut SystemRng);
        let cipher = adit_fleet::RecordCipher::new("test", &key);
        memory
            .create_realm(&RealmInfo::new(&cipher, 1))
            .await
            .unwrap();
        let writer = RealmWriter::new(Arc::new(memory.clone()), cipher);
        Self {
            memory,
            key,
            writer,
            folder: std::env::temp_dir().join(name),
        }
    }

    pub(crate) fn folder(&self, node: &str) -> PathBuf {
        self.folder.join(node)
    }

    pub(crate) async fn add(&self, name: &str, limits: RecordLimits) -> FleetUser {
        let mut user = FleetUser::new(0, name, *RealmWriter::new_secret());
        user.limits = limits;
        let mut users = [user];
        self.writer.add(&mut users).await.unwrap();
        let [user] = users;
        user
    }

    /// Starts a node.
    pub(crate) async fn node(&self, name: &str) -> Node {
        self.node_with(name, |_| {}).await
    }

    pub(crate) async fn node_with(&self, name: &str, set: impl FnOnce(&mut NodeSettings)) -> Node {
        let record = NodeRecord {
            name: name.to_owned(),
            ..NodeRecord::default()
        };
        let id = self.memory.add_node(&record).await.unwrap();
        let faults = FaultyStore::new(Arc::new(self.memory.clone()));
        self.start(name, id, faults, set).await
    }

    /// Starts a node, again with the same number and folder or for the first time.
    pub(crate) async fn start(
        &self,
        name: &str,
        id: u32,
        faults: FaultyStore,
        set: impl FnOnce(&mut NodeSettings),
    ) -> Node {
        let membership = Membership {
            version: Membership::VERSION,
            realm: "test".to_owned(),
            realm_key: self.key.clone(),
            role: Role::Node,
            node_id: Some(id),
            name: name.to_owned(),
            store: "memory".to_owned(),
            store_user: None,
            store_password: None,
            ca_pem: None,
        };
        let mut settings = NodeSettings {
            shared_replay_filter: false,
            replay_outage: OutagePolicy::Open,
            state: self.folder(name),
            cache_max_age: Duration::from_secs(3600),
            require_store: false,
            grace: Grace {
                bytes: 1 << 30,
                time: Duration::from_secs(3600),
            },
            open_quota: false,
            drain_grace: Duration::from_millis(300),
            drain_timeout: Duration::from_secs(5),
            subscriptions: None,
        };
        set(&mut settings);
        let store: Arc<dyn Store> = Arc::new(faults.clone());
        let mut node = FleetNode::new(store, &membership, settings).unwrap();
        let users = node.users().clone();
        let text = format!(
            "[fleet]\nmembership = \"/nowhere\"\n[route.proxy]\nlisten = \"mixed://127.0.0.1:0?users=fleet&allow_private=all\"\n\
             [route.keyed]\nlisten = \"ss://{METHOD}@127.0.0.1:0?users=fleet&allow_private=all&restart=lenient\"\n\
             [route.shared]\nlisten = \"ss://{METHOD}@127.0.0.1:0?users=fleet&identity=shared&allow_private=all&restart=lenient\"\n"
        );
        let plan = Plan::from_toml(&text, "node.toml").unwrap();
        let nothing = Inheritance::default();
        let prepared = Engine::prepare_with_fleet(&plan, RuleSetTable::default(), &nothing, users);
        let prepared = prepared.await.unwrap();
        node.share_replays(prepared.engine());
        node.open().await.unwrap();
        let engine = Arc::new(prepared.start(SharedSockets::default()));
        let control = node.follow(engine.clone(), "test");
        let at = |route: &str| {
            let all = engine.listeners();
            all.iter().find(|at| at.route == route).unwrap().addr
        };
        Node {
            proxy: at("proxy"),
            keyed: at("keyed"),
            shared: at("shared"),
            engine,
            control,
            faults,
        }
    }
}

impl Node {
    /// Opens a session of a user through the proxy.
    pub(crate) async fn session(&self, user: &FleetUser, to: SocketAddr) -> io::Result<TcpStream> {
        connect(self.proxy, Some((&user.name, &user.password())), to).await
    }

    /// Waits until a user may open a session.
    pub(crate) async fn admits(&self, user: &FleetUser, to: SocketAddr) -> Duration {
        let since = Instant::now();
        until("the user is accepted", async || {
            self.session(user, to).await.is_ok()
        })
        .await;
        since.elapsed()
    }

    /// Returns the value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let metrics = self.control.metrics();
        let found = metrics.iter().find(|metric| metric.name == name).unwrap();
        found.samples.first().unwrap().1
    }
}

/// A client of a keyed listener: a proxy on a free port.
pub(crate) async fn keyed_client(server: SocketAddr, key: &str) -> (Engine, SocketAddr) {
    let key = key
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    let hop = format!("ss://{METHOD}:{key}@{server}");
    let plan = Plan::from_words(&["mixed://127.0.0.1:0".to_owned(), hop]).unwrap();
    let engine = Engine::start(&plan).await.unwrap();
    let at = engine.listeners()[0].addr;
    (engine, at)
}

/// Connects through a SOCKS5 proxy.
pub(crate) async fn connect(
    proxy: SocketAddr,
    login: Option<(&str, &str)>,
    to: SocketAddr,
) -> io::Result<TcpStream> {
    request(TcpStream::connect(proxy).await?, login, to).await
}

/// Connects as a client at another address of this machine, 127.0.0.N.
#[cfg(target_os = "linux")]
pub(crate) async fn connect_from(
    n: u8,
    node: &Node,
    user: &FleetUser,
    to: SocketAddr,
) -> io::Result<TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, n], 0).into())?;
    let login = Some((user.name.as_str(), user.password()));
    let login = login
        .as_ref()
        .map(|(name, password)| (*name, password.as_str()));
    request(socket.connect(node.proxy).await?, login, to).await
}

async fn request(
    mut stream: TcpStream,
    login: Option<(&str, &str)>,
    to: SocketAddr,
) -> io::Result<TcpStream> {
    let refused = |what| io::Error::new(io::ErrorKind::PermissionDenied, what);
    stream
        .write_all(if login.is_some() {
            b"\x05\x01\x02"
        } else {
            b"\x05\x01\x00"
        })
        .await?;
    let mut two = [0; 2];
    stream.read_exact(&mut two).await?;
    if let Some((user, password)) = login {
        let mut message = vec![1, u8::try_from(user.len()).unwrap()];
        message.extend_from_slice(user.as_bytes());
        message.push(u8::try_from(password.len()).unwrap());
        message.extend_from_slice(password.as_bytes());
        stream.write_all(&message).await?;
        stream.read_exact(&mut two).await?;
        if two[1] != 0 {
            return Err(refused("login"));
        }
    }
    let SocketAddr::V4(to) = to else {
        panic!("IPv4")
    };
    let mut message = vec![5, 1, 0, 1];
    message.extend_from_slice(&to.ip().octets());
    message.extend_from_slice(&to.port().to_be_bytes());
    stream.write_all(&message).await?;
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await?;
    match reply[1] {
        0 => Ok(stream),
        _ => Err(refused("request")),
    }
}

/// A server that counts what it receives, and sends as much as it can to those that have sent `d`.
pub(crate) struct ByteServer {
    pub(crate) addr: SocketAddr,
    received: Arc<AtomicU64>,
}

impl ByteServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let count = received.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let count = count.clone();
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
                        count.fetch_add(n as u64, Ordering::Relaxed);
                    }
                });
            }
        });
        Self { addr, received }
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns what it has received once nothing more arrives.
    pub(crate) async fn settled(&self) -> u64 {
        let mut last = self.received();
        loop {
            sleep(Duration::from_millis(200)).await;
            let now = self.received();
            if now == last {
                return now;
            }
            last = now;
        }
    }
}

/// Uploads until the stream ends, at most `most` bytes.
pub(crate) async fn upload(mut stream: TcpStream, most: u64) -> u64 {
    let piece = vec![b'x'; 16 << 10];
    let mut sent = 0;
    while sent < most {
        let n = piece.len().min(usize::try_from(most - sent).unwrap());
        if stream.write_all(&piece[..n]).await.is_err() {
            break;
        }
        sent += n as u64;
    }
    let _ = stream.shutdown().await;
    sent
}

/// Waits until the other side has closed a stream.
pub(crate) async fn closed(stream: &mut TcpStream) -> Duration {
    let since = Instant::now();
    let mut buffer = [0; 1024];
    let end = async { while let Ok(1..) = stream.read(&mut buffer).await {} };
    timeout(PATIENCE, end)
        .await
        .expect("the session stays open");
    since.elapsed()
}

/// Returns true if a stream stays open for a while.
pub(crate) async fn stays_open(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    timeout(Duration::from_millis(300), stream.read(&mut byte))
        .await
        .is_err()
}

/// Waits until something is true.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, check: impl Fn() -> F) {
    let since = Instant::now();
    while !check().await {
        assert!(since.elapsed() < PATIENCE, "not so: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Returns true if the folder has the file of a node.
pub(crate) fn has_state(folder: &Path) -> bool {
    folder.join("node.state").exists()
}
