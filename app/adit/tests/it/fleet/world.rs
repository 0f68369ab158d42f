//! A store server, a realm in it, and nodes as processes.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_fleet::{
    FleetUser, Membership, NodeEntry, NodeRecord, PeriodLabel, RealmInfo, RealmKey, RealmWriter,
    RecordLimits, Role, Store, StoreLogin, UserTotal, open_store,
};
use adit_interop::socks_client::{self, Destination};
use adit_interop::store_server::StoreServer;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use adit_net::system::{SystemRng, unix_now};
use rustix::process::Signal;
use tokio::runtime::Runtime;

use crate::setup::bin;

pub(super) const METHOD: &str = "2022-blake3-aes-128-gcm";

/// A store server with a realm.
pub(super) struct World {
    pub(super) folder: TempFolder,
    pub(super) server: StoreServer,
    pub(super) store: Arc<dyn Store>,
    pub(super) key: RealmKey,
    pub(super) writer: RealmWriter,
    runtime: Runtime,
}

/// A node as a process.
pub(super) struct Node {
    pub(super) adit: AditProcess,
    pub(super) id: u32,
    name: String,
}

impl World {
    pub(super) fn start() -> Self {
        let folder = TempFolder::new("fleet").unwrap();
        let server = StoreServer::start().unwrap();
        let key = RealmKey::generate(&mut SystemRng);
        let cipher = || adit_fleet::RecordCipher::new("test", &key);
        let runtime = Runtime::new().unwrap();
        let login = StoreLogin {
            realm: "test".to_owned(),
            url: server.url(),
            user: None,
            password: None,
            ca_pem: None,
        };
        let store = {
            let _inside = runtime.enter();
            open_store(&login).unwrap()
        };
        let info = RealmInfo::new(&cipher(), unix_now().0);
        runtime.block_on(store.create_realm(&info)).unwrap();
        let writer = RealmWriter::new(store.clone(), cipher());
        Self {
            folder,
            server,
            store,
            key,
            writer,
            runtime,
        }
    }

    pub(super) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(super) fn add(&self, name: &str, limits: RecordLimits) -> FleetUser {
        let mut user = FleetUser::new(0, name, *RealmWriter::new_secret());
        user.limits = limits;
        let mut users = [user];
        self.run(self.writer.add(&mut users)).unwrap();
        let [user] = users;
        user
    }

    pub(super) fn nodes(&self) -> Vec<NodeEntry> {
        self.run(self.store.nodes()).unwrap()
    }

    /// Returns the usage of a user over all nodes.
    pub(super) fn counted(&self, user: &FleetUser) -> u64 {
        let label = PeriodLabel::new(user.limits.period, unix_now());
        let ids = [user.id];
        let totals = self.run(self.store.usage(&label, Some(&ids))).unwrap();
        totals.first().map_or(0, UserTotal::sum)
    }

    /// Starts a node with a SOCKS and a Shadowsocks listener.
    pub(super) fn node(&self, name: &str) -> Node {
        self.node_with(name, "")
    }

    /// Starts a node with these lines in `[fleet]`.
    pub(super) fn node_with(&self, name: &str, lines: &str) -> Node {
        let record = NodeRecord {
            name: name.to_owned(),
            ..NodeRecord::default()
        };
        let id = self.run(self.store.add_node(&record)).unwrap();
        self.write_node(name, id, lines);
        self.start_node(name, id)
    }

    /// Writes the files of a node.
    pub(super) fn write_node(&self, name: &str, id: u32, lines: &str) {
        let folder = self.node_folder(name);
        std::fs::create_dir_all(&folder).unwrap();
        let membership = Membership {
            version: Membership::VERSION,
            realm: "test".to_owned(),
            realm_key: self.key.clone(),
            role: Role::Node,
            node_id: Some(id),
            name: name.to_owned(),
            store: self.server.url(),
            store_user: None,
            store_password: None,
            ca_pem: None,
        };
        membership.write(&folder.join("membership.json")).unwrap();
        let text = format!(
            "[admin]\nlisten = \"admin.sock\"\n[fleet]\nmembership = \"membership.json\"\n{lines}\n\
             [route.proxy]\nlisten = \"mixed://127.0.0.1:0?users=fleet&allow_private=all\"\n\
             [route.keyed]\nlisten = \"ss://{METHOD}@127.0.0.1:0?users=fleet&allow_private=all&restart=lenient\"\n"
        );
        std::fs::write(folder.join("adit.toml"), text).unwrap();
    }

    /// Starts a node whose files are written.
    pub(super) fn start_node(&self, name: &str, id: u32) -> Node {
        let file = self.node_folder(name).join("adit.toml");
        let args = ["run", "-c", file.to_str().unwrap()];
        let adit = AditProcess::start_with(&bin(), &args, 2).unwrap();
        Node {
            adit,
            id,
            name: name.to_owned(),
        }
    }

    pub(super) fn node_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Asks the API of a node.
    pub(super) fn ask(&self, node: &Node, path: &str) -> crate::admin::world::Reply {
        let socket = self.node_folder(&node.name).join("admin.sock");
        let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        crate::admin::world::ask(stream, &format!("GET {path}"), &["Host: localhost"], "")
    }
}

impl Node {
    pub(super) fn proxy(&self) -> SocketAddr {
        self.adit.addrs()[0]
    }

    pub(super) fn keyed(&self) -> SocketAddr {
        self.adit.addrs()[1]
    }

    /// Opens a session through the proxy.
    pub(super) fn session(&self, user: &FleetUser, to: SocketAddr) -> Option<TcpStream> {
        let password = user.password();
        let login = Some((user.name.as_str(), password.as_str()));
        let stream = socks_client::connect_through(self.proxy(), login, &Destination::Addr(to));
        let stream = stream.ok()?;
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        Some(stream)
    }

    /// Waits until a user is accepted.
    pub(super) fn admits(&self, user: &FleetUser, to: SocketAddr) -> Duration {
        let since = Instant::now();
        until("the user is accepted", || self.session(user, to).is_some());
        since.elapsed()
    }

    pub(super) fn kill(mut self) {
        self.adit.process().send_signal(Signal::KILL).unwrap();
        self.adit.process().wait(TEST_TIMEOUT).unwrap();
    }
}

/// Waits until something is true.
#[track_caller]
pub(super) fn until(what: &str, check: impl Fn() -> bool) {
    let since = Instant::now();
    while !check() {
        assert!(since.elapsed() < TEST_TIMEOUT, "not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
