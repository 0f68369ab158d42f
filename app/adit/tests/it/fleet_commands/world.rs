//! A store server, the home of an operator, and nodes that only report.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet::{
    ChangeId, Feed, FeedEvent, FeedNext, Membership, NodeIdentity, NodeOp, NodeServer, NodeState,
    NodeStatus, Store, StoreLogin, open_store,
};
use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::store_server::StoreServer;
use adit_interop::{TEST_TIMEOUT, TempFolder};
use adit_net::system::SystemRng;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::setup::bin;

/// A store server and an operator.
pub(super) struct World {
    store: Option<StoreServer>,
    url: String,
    folder: TempFolder,
    runtime: Runtime,
}

impl World {
    pub(super) fn start() -> Self {
        Self::start_with_acl("user default on nopass ~* &* +@all\n")
    }

    /// Starts a store server that has these logins, in a file.
    pub(super) fn start_with_acl(acl: &str) -> Self {
        let folder = TempFolder::new("fleet").unwrap();
        let file = folder.write_file("users.acl", acl).unwrap();
        Self::start_in(folder, &["--aclfile", file.to_str().unwrap()])
    }

    /// Starts a store server that keeps logins in memory.
    pub(super) fn start_without_acl_file() -> Self {
        Self::start_in(TempFolder::new("fleet").unwrap(), &[])
    }

    fn start_in(folder: TempFolder, options: &[&str]) -> Self {
        let always = ["--save", "", "--appendonly", "no"];
        let store = StoreServer::start_with(&[&always[..], options].concat(), 0).unwrap();
        let url = store.url();
        Self {
            store: Some(store),
            url,
            folder,
            runtime: Runtime::new().unwrap(),
        }
    }

    /// Replaces the data of the store server by those of a backup.
    pub(super) fn restore_backup(&mut self, dump: &str) {
        let store = self.store.as_mut().unwrap();
        store.kill().unwrap();
        fs::copy(dump, store.folder().join("dump.rdb")).unwrap();
        store.restart().unwrap();
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    pub(super) fn store(&self) -> &StoreServer {
        self.store.as_ref().unwrap()
    }

    pub(super) fn stop_store(&mut self) {
        self.store.take();
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns the path of a file in the operator's home.
    pub(super) fn home(&self, name: &str) -> String {
        self.path(&format!("home/{name}"))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        self.folder.write_file(name, text).unwrap()
    }

    pub(super) fn mode_of(&self, path: impl AsRef<Path>) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Runs a command of the operator, whose membership has its default place. Root has another one, which tests must
    /// not touch: it is named.
    pub(super) fn run(&self, args: &[&str]) -> ToolOutput {
        let (mut command, _) = self.command(args);
        command.args(self.membership_option(args));
        external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
    }

    fn command(&self, args: &[&str]) -> (Command, PathBuf) {
        let home = self.folder.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(bin());
        command
            .args(args)
            .env("HOME", &home)
            .env("NO_COLOR", "1")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("STATE_DIRECTORY");
        (command, home)
    }

    fn membership_option(&self, args: &[&str]) -> Vec<String> {
        let file = self.home(".config/adit/fleet.json");
        let names_one = |arg: &&str| {
            ["--membership", "--fleet", "--admin", "-c"]
                .iter()
                .any(|option| arg.starts_with(option))
        };
        if args.iter().any(names_one) {
            return Vec::new();
        }
        match args.first() {
            Some(&"user") => vec![format!("--fleet={file}")],
            _ => vec!["--membership".to_owned(), file],
        }
    }

    /// Runs a command without any option of the test.
    pub(super) fn run_plain(&self, args: &[&str]) -> ToolOutput {
        let (command, _) = self.command(args);
        external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
    }

    /// Returns the output of a command that succeeds.
    #[track_caller]
    pub(super) fn prints(&self, args: &[&str]) -> String {
        let done = self.run(args);
        done.expect_success()
            .unwrap_or_else(|why| panic!("{args:?}: {why}"))
    }

    /// Returns the output of a command that fails with this exit code.
    #[track_caller]
    pub(super) fn fails(&self, args: &[&str], code: i32) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(code), "{args:?}: {}", done.output);
        done.output
    }

    /// Returns the result that a command prints as JSON, with the exit code `code`.
    #[track_caller]
    pub(super) fn json_of(&self, args: &[&str], code: i32) -> Value {
        let done = self.run(&[args, &["--json"]].concat());
        assert_eq!(done.code, Some(code), "{args:?}: {}", done.output);
        let text = done.output.trim();
        assert_eq!(text.lines().count(), 1, "{text}");
        let document: Value =
            serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"));
        let words: Vec<&str> = args.iter().copied().take(2).collect();
        let command = document["command"].as_str().unwrap();
        assert!(command.starts_with(&words.join(" ")), "{document}");
        check_names(&document);
        document["result"].clone()
    }

    /// Returns the result that a successful command prints as JSON.
    #[track_caller]
    pub(super) fn json(&self, args: &[&str]) -> Value {
        self.json_of(args, 0)
    }

    /// Creates the realm `main`.
    pub(super) fn init(&self) -> Value {
        self.json(&["fleet", "init", "--engine", &self.url()])
    }

    /// Adds a node that reports.
    pub(super) fn node(&self, name: &str) -> Node {
        let issued = self.json(&["fleet", "token", "--node", name]);
        let file = self.path(&format!("{name}.json"));
        let token = issued["token"].as_str().unwrap();
        self.json(&["fleet", "join", token, "--membership", &file]);
        self.node_at(name)
    }

    /// Starts a node that has joined.
    pub(super) fn node_at(&self, name: &str) -> Node {
        Node::start(self, Path::new(&self.path(&format!("{name}.json"))))
    }

    /// Enters the runtime, in which stores are opened.
    pub(super) fn runtime(&self) -> tokio::runtime::EnterGuard<'_> {
        self.runtime.enter()
    }

    pub(super) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime
            .block_on(async { timeout(TEST_TIMEOUT, work).await.unwrap() })
    }

    /// Waits until something is so.
    #[track_caller]
    pub(super) fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            sleep(Duration::from_millis(20));
        }
    }
}

/// Checks the names of a document: camel case, at any depth.
fn check_names(value: &Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let is_camel = name.starts_with(|c: char| c.is_ascii_lowercase())
                    && name.chars().all(|c| c.is_ascii_alphanumeric());
                assert!(is_camel, "`{name}`");
                check_names(value);
            }
        }
        Value::Array(values) => values.iter().for_each(check_names),
        _ => {}
    }
}

/// A node that reports, and performs operations in the simplest way: without an engine.
pub(super) struct Node {
    pub(super) membership: Membership,
    pub(super) store: Arc<dyn Store>,
    pub(super) status: Arc<Mutex<NodeStatus>>,
    pub(super) ops: Arc<Mutex<Vec<NodeOp>>>,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    fn start(world: &World, file: &Path) -> Self {
        let membership = Membership::read(file).unwrap();
        let id = membership.node_id.unwrap();
        let _inside = world.runtime.enter();
        let store = open_store(&StoreLogin::from(&membership)).unwrap();
        let server = |name: &str, dialect: &str, method: &str, port, identity| NodeServer {
            name: name.to_owned(),
            port,
            dialect: dialect.to_owned(),
            method: method.to_owned(),
            identity,
            tcp: true,
            udp: true,
            ..NodeServer::default()
        };
        let status = Arc::new(Mutex::new(NodeStatus {
            id,
            name: membership.name.clone(),
            instance: 1,
            version: "0.1.0".to_owned(),
            sessions: 3,
            up_per_second: 125_000,
            down_per_second: 1_125_000,
            public_host: Some(format!("{}.example", membership.name)),
            servers: vec![
                server(
                    "main",
                    "ss",
                    "2022-blake3-aes-128-gcm",
                    8388,
                    NodeIdentity::Node,
                ),
                server("old", "ss", "aes-256-gcm", 8389, NodeIdentity::None),
                server("proxy", "socks5", "", 1080, NodeIdentity::None),
            ],
            ..NodeStatus::default()
        }));
        let ops = Arc::new(Mutex::new(Vec::new()));
        let work = follow(
            store.clone(),
            membership.clone(),
            status.clone(),
            ops.clone(),
        );
        let task = world.runtime.spawn(work);
        let node = Self {
            membership,
            store,
            status,
            ops,
            task,
        };
        world.wait("the node reports", || {
            let nodes = world.block_on(node.store.nodes()).unwrap();
            nodes
                .iter()
                .any(|entry| entry.id == id && entry.status.is_some())
        });
        node
    }

    /// Changes what it reports.
    pub(super) fn report(&self, change: impl FnOnce(&mut NodeStatus)) {
        change(&mut self.status.lock().unwrap());
    }

    pub(super) fn has(&self, op: &NodeOp) -> bool {
        self.ops.lock().unwrap().contains(op)
    }
}

/// Follows the changes of the realm, and reports every moment.
async fn follow(
    store: Arc<dyn Store>,
    membership: Membership,
    status: Arc<Mutex<NodeStatus>>,
    ops: Arc<Mutex<Vec<NodeOp>>>,
) {
    let id = membership.node_id.unwrap();
    let mut feed = Feed::new(membership.cipher());
    let mut versions: HashMap<String, u32> = HashMap::new();
    let mut has_snapshot = false;
    loop {
        let step = match has_snapshot {
            false => match store.snapshot().await {
                Ok(snapshot) => {
                    has_snapshot = true;
                    Some(feed.apply_snapshot(&snapshot, false))
                }
                Err(_) => None,
            },
            true => match store
                .changes(feed.read_after(), Duration::from_millis(50))
                .await
            {
                Ok(batch) => Some(feed.apply_batch(&batch)),
                Err(_) => None,
            },
        };
        let Some(step) = step else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if step.next == FeedNext::Snapshot
            && let Ok(snapshot) = store.snapshot().await
        {
            feed.apply_snapshot(&snapshot, false);
        }
        for event in step.events {
            let FeedEvent::Node { node, op, .. } = event else {
                continue;
            };
            if node != id {
                continue;
            }
            match &op {
                NodeOp::Drain => {
                    let mut status = status.lock().unwrap();
                    if status.state == NodeState::Active {
                        status.state = NodeState::Draining;
                    }
                }
                NodeOp::Undrain => status.lock().unwrap().state = NodeState::Active,
                NodeOp::Upgrade { program } => {
                    let mut status = status.lock().unwrap();
                    match program.as_deref() {
                        Some("missing") => status.upgrade = Some("no such file".to_owned()),
                        program => {
                            status.instance += 1;
                            status.version = program.unwrap_or("0.2.0").to_owned();
                            let name = status.version.clone();
                            *versions.entry(name).or_default() += 1;
                        }
                    }
                }
                NodeOp::Restore => {
                    let info = adit_fleet::RealmInfo::new(&membership.cipher(), 1);
                    let _ = store.restore(&info, &feed.to_table(&mut SystemRng)).await;
                }
                _ => {}
            }
            ops.lock().unwrap().push(op);
        }
        let report = {
            let mut status = status.lock().unwrap();
            status.change = feed.position().0;
            status.users = u64::try_from(feed.len()).unwrap();
            status.degraded = feed
                .regression()
                .map(|lost| format!("the store went back to change {}", lost.found));
            status.clone()
        };
        let _ = store.heartbeat(&report).await;
        if feed.position() == ChangeId(0) {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}
