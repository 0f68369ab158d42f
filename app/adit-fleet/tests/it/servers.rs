//! Store servers of all kinds, on loopback ports and Unix sockets.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use adit_fleet::StoreLogin;
use adit_fleet::store::valkey::{AclRole, acl_rule};
use adit_interop::store_server::{StoreServer, store_command, tls_store_command};
use adit_interop::{
    ChildProcess, TEST_TIMEOUT, TempFolder, Transport, external_tools, free_port, wait_port,
};
use anyhow::Result;

use crate::world::{REALM, login};

/// Runs a command to its end, and returns its output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    external_tools::run_to_end(command, Duration::from_secs(90))?.expect_success()
}

/// A certificate authority, and the certificate of servers on this machine.
pub(crate) struct Authority {
    folder: TempFolder,
}

impl Authority {
    pub(crate) fn create() -> Result<Arc<Self>> {
        let authority = Self {
            folder: TempFolder::new("store-tls")?,
        };
        let files = [
            "ca.pem", "ca.key", "site.pem", "site.key", "request", "names",
        ];
        let [ca, ca_key, site, site_key, request, names] = files.map(|name| authority.path(name));
        let ec = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        let make = |words: &str| run("openssl", &words.split_whitespace().collect::<Vec<_>>());
        make(&format!(
            "req -x509 -days 2 -subj /CN=authority {ec} -keyout {ca_key} -out {ca}"
        ))?;
        make(&format!(
            "req -subj /CN=store {ec} -keyout {site_key} -out {request}"
        ))?;
        authority
            .folder
            .write_file("names", "subjectAltName=IP:127.0.0.1,DNS:localhost")?;
        make(&format!(
            "x509 -req -days 2 -in {request} -CA {ca} -CAkey {ca_key} -CAcreateserial -extfile {names} -out {site}"
        ))?;
        Ok(Arc::new(authority))
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns its certificate.
    pub(crate) fn certificate(&self) -> String {
        std::fs::read_to_string(self.path("ca.pem")).expect("the file was written")
    }

    /// Returns the settings of a server or a sentinel that speaks TLS alone.
    fn settings(&self, port: u16) -> Vec<[String; 2]> {
        let text = |name: &str, value: &str| [name.to_owned(), value.to_owned()];
        vec![
            text("port", "0"),
            text("tls-port", &port.to_string()),
            text("tls-cert-file", &self.path("site.pem")),
            text("tls-key-file", &self.path("site.key")),
            text("tls-ca-cert-file", &self.path("ca.pem")),
            text("tls-auth-clients", "no"),
            text("tls-replication", "yes"),
        ]
    }
}

/// The transport of a group of servers.
#[derive(Clone, Default)]
pub(crate) struct ServerTransport(Option<Arc<Authority>>);

impl ServerTransport {
    pub(crate) fn tls() -> Result<Self> {
        Ok(Self(Some(Authority::create()?)))
    }

    fn command(&self) -> Command {
        match self.0 {
            Some(_) => tls_store_command(),
            None => store_command(),
        }
    }

    fn settings(&self, port: u16) -> Vec<[String; 2]> {
        match &self.0 {
            Some(authority) => authority.settings(port),
            None => vec![["port".to_owned(), port.to_string()]],
        }
    }

    /// Returns the options of `redis-cli`.
    fn client_options(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |authority| {
            vec![
                "--tls".to_owned(),
                "--cacert".to_owned(),
                authority.path("ca.pem"),
            ]
        })
    }

    fn scheme(&self) -> &'static str {
        match self.0 {
            Some(_) => "valkeys",
            None => "valkey",
        }
    }

    /// Returns the login of a client, which trusts no other authority.
    fn login(&self, url: String) -> StoreLogin {
        StoreLogin {
            ca_pem: self.0.as_ref().map(|authority| authority.certificate()),
            ..login(url)
        }
    }
}

/// A store server on a loopback port.
pub(crate) struct PortServer {
    pub(crate) port: u16,
    transport: ServerTransport,
    process: ChildProcess,
    _folder: TempFolder,
}

impl PortServer {
    /// Starts a server with these options, or a sentinel with these lines of its file.
    fn start(
        transport: &ServerTransport,
        port: u16,
        ready: &str,
        make: impl FnOnce(&TempFolder, &mut Command),
    ) -> Result<Self> {
        let folder = TempFolder::new("store-port")?;
        let mut command = transport.command();
        make(&folder, &mut command);
        let mut process = ChildProcess::spawn(command)?;
        process.wait_lines(ready, 1, TEST_TIMEOUT)?;
        wait_port(Transport::Tcp, port, TEST_TIMEOUT)?;
        Ok(Self {
            port,
            transport: transport.clone(),
            process,
            _folder: folder,
        })
    }

    /// Starts a server with further options.
    pub(crate) fn start_server(transport: &ServerTransport, options: &[String]) -> Result<Self> {
        let port = free_port();
        let ready = "eady to accept connections";
        Self::start(transport, port, ready, |folder, command| {
            for [name, value] in transport.settings(port) {
                command.arg(format!("--{name}")).arg(value);
            }
            command.args(["--bind", "127.0.0.1", "--save", ""]);
            command.arg("--dir").arg(folder.path()).args(options);
        })
    }

    /// Returns the login of a client of this server.
    pub(crate) fn login(&self) -> StoreLogin {
        let url = format!("{}://127.0.0.1:{}", self.transport.scheme(), self.port);
        self.transport.login(url)
    }

    /// Ends the process at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.terminate()?;
        Ok(())
    }

    /// Runs a command of the server.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        let (options, port) = (self.transport.client_options(), self.port.to_string());
        let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
        arguments.extend(["-p", port.as_str()]);
        arguments.extend(words);
        Ok(run("redis-cli", &arguments)?.trim_end().to_owned())
    }

    /// Creates the user of a node.
    pub(crate) fn set_node_user(&self) {
        let rule = acl_rule(REALM, "node", "password of the node", AclRole::Node);
        let mut words = vec!["ACL", "SETUSER"];
        words.extend(rule.iter().map(String::as_str));
        assert_eq!(self.run(&words).unwrap(), "OK");
    }

    /// Returns the login of that user.
    pub(crate) fn node_login(operator: StoreLogin) -> StoreLogin {
        StoreLogin {
            user: Some("node".to_owned()),
            password: Some("password of the node".to_owned().into()),
            ..operator
        }
    }
}

/// A master with two replicas, and three sentinels.
pub(crate) struct Sentinels {
    pub(crate) servers: Vec<PortServer>,
    sentinels: Vec<PortServer>,
}

impl Sentinels {
    /// The name of the service.
    pub(crate) const SERVICE: &str = "fleet";

    pub(crate) fn start(transport: &ServerTransport) -> Result<Self> {
        let master = PortServer::start_server(transport, &[])?;
        let follow = [
            "--replicaof".to_owned(),
            format!("127.0.0.1 {}", master.port),
        ];
        let mut servers = vec![
            PortServer::start_server(transport, &follow)?,
            PortServer::start_server(transport, &follow)?,
        ];
        let monitored = master.port;
        servers.insert(0, master);
        for replica in &servers[1..] {
            wait_for("a replica", || {
                Ok(replica
                    .run(&["INFO", "replication"])?
                    .contains("master_link_status:up"))
            })?;
        }
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            let port = free_port();
            let start = |folder: &TempFolder, command: &mut Command| {
                let service = Self::SERVICE;
                let settings = transport.settings(port);
                let lines = settings.iter().map(|line| line.join(" ") + "\n");
                let text = format!(
                    "{}bind 127.0.0.1\ndir {}\n\
                     sentinel monitor {service} 127.0.0.1 {monitored} 2\n\
                     sentinel down-after-milliseconds {service} 1000\n\
                     sentinel failover-timeout {service} 5000\n",
                    lines.collect::<String>(),
                    folder.path().display()
                );
                let file = folder
                    .write_file("sentinel.conf", text)
                    .expect("a file is written");
                command.arg(file).arg("--sentinel");
            };
            sentinels.push(PortServer::start(transport, port, "+monitor", start)?);
        }
        for sentinel in &sentinels {
            wait_for("the sentinels", || {
                let master = sentinel.run(&["SENTINEL", "MASTER", Self::SERVICE])?;
                let lines: Vec<&str> = master.lines().collect();
                let value = |name| {
                    lines
                        .iter()
                        .position(|line| *line == name)
                        .map(|at| lines[at + 1])
                };
                Ok(value("num-other-sentinels") == Some("2") && value("num-slaves") == Some("2"))
            })?;
        }
        Ok(Self { servers, sentinels })
    }

    /// Returns the login of a client.
    pub(crate) fn login(&self) -> StoreLogin {
        let hosts: Vec<String> = self
            .sentinels
            .iter()
            .map(|sentinel| format!("127.0.0.1:{}", sentinel.port))
            .collect();
        let transport = &self.servers[0].transport;
        let (scheme, hosts) = (transport.scheme(), hosts.join(","));
        transport.login(format!("{scheme}+sentinel://{hosts}/{}", Self::SERVICE))
    }
}

/// A cluster of three shards with two replicas each.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<PortServer>,
}

impl Cluster {
    pub(crate) fn start(transport: &ServerTransport) -> Result<Self> {
        // Between the servers of a cluster too.
        let is_tls = transport.0.is_some().then_some(["--tls-cluster", "yes"]);
        let mut servers = Vec::new();
        for _ in 0..9 {
            // The bus has a port of its own: the default one is 10000 higher, and may be none.
            let options = [
                ["--cluster-enabled", "yes"],
                ["--cluster-node-timeout", "2000"],
                ["--cluster-port", &free_port().to_string()],
            ];
            let options = options.iter().chain(&is_tls).flatten();
            let options: Vec<String> = options.map(|text| (*text).to_owned()).collect();
            servers.push(PortServer::start_server(transport, &options)?);
        }
        let hosts: Vec<String> = servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        let client = transport.client_options();
        let mut arguments: Vec<&str> = client.iter().map(String::as_str).collect();
        arguments.extend(["--cluster", "create"]);
        arguments.extend(hosts.iter().map(String::as_str));
        arguments.extend(["--cluster-replicas", "2", "--cluster-yes"]);
        run("redis-cli", &arguments)?;
        for server in &servers {
            wait_for("the cluster", || {
                Ok(server
                    .run(&["CLUSTER", "INFO"])?
                    .contains("cluster_state:ok"))
            })?;
        }
        Ok(Self { servers })
    }

    /// Returns the login of a client.
    pub(crate) fn login(&self) -> StoreLogin {
        let hosts: Vec<String> = self
            .servers
            .iter()
            .take(3)
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        let transport = &self.servers[0].transport;
        let (scheme, hosts) = (transport.scheme(), hosts.join(","));
        transport.login(format!("{scheme}+cluster://{hosts}"))
    }

    /// Returns the index of the server that has the keys of a realm.
    pub(crate) fn owner(&self, realm: &str) -> Result<usize> {
        let slot =
            self.servers[0].run(&["CLUSTER", "KEYSLOT", &format!("adit:{{{realm}}}:ver")])?;
        let slot: u16 = slot.trim().parse()?;
        let nodes = self.servers[0].run(&["CLUSTER", "NODES"])?;
        let owns = |line: &&str| {
            line.contains("master")
                && line.split_whitespace().skip(8).any(|range| {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let inside = |first: u16, last: u16| (first..=last).contains(&slot);
                    first
                        .parse()
                        .is_ok_and(|first| last.parse().is_ok_and(|last| inside(first, last)))
                })
        };
        let line = nodes.lines().find(owns).unwrap_or_default();
        let found = self
            .servers
            .iter()
            .position(|server| line.contains(&format!("127.0.0.1:{}@", server.port)));
        found.ok_or_else(|| anyhow::anyhow!("no server has the slot {slot}: {nodes}"))
    }
}

/// Waits until `check` is true.
pub(crate) fn wait_for(what: &str, check: impl Fn() -> Result<bool>) -> Result<()> {
    let since = std::time::Instant::now();
    while !check().unwrap_or(false) {
        anyhow::ensure!(since.elapsed() < 3 * TEST_TIMEOUT, "{what} is not ready");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Starts a server without persistence.
pub(crate) fn plain() -> StoreServer {
    StoreServer::start().expect("the store server runs: `cargo xtask install`")
}
