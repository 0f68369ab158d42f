//! Store servers of all kinds, on loopback ports and Unix sockets.

use std::process::Command;
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

/// A store server on a loopback port.
pub(crate) struct PortServer {
    pub(crate) port: u16,
    process: ChildProcess,
    _folder: TempFolder,
}

impl PortServer {
    /// Starts a server with these options, or a sentinel with these lines of its file.
    fn start(port: u16, ready: &str, make: impl FnOnce(&TempFolder, &mut Command)) -> Result<Self> {
        let folder = TempFolder::new("store-port")?;
        let mut command = store_command();
        make(&folder, &mut command);
        let mut process = ChildProcess::spawn(command)?;
        process.wait_lines(ready, 1, TEST_TIMEOUT)?;
        wait_port(Transport::Tcp, port, TEST_TIMEOUT)?;
        Ok(Self {
            port,
            process,
            _folder: folder,
        })
    }

    /// Starts a server with further options.
    pub(crate) fn start_server(options: &[String]) -> Result<Self> {
        let port = free_port();
        Self::start(port, "eady to accept connections", |folder, command| {
            let port = port.to_string();
            command.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
            command.arg("--dir").arg(folder.path()).args(options);
        })
    }

    /// Ends the process at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.terminate()?;
        Ok(())
    }

    /// Runs a command of the server.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        let port = self.port.to_string();
        let arguments = [&["-p", port.as_str()], words].concat();
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
    pub(crate) fn node_login(url: String) -> StoreLogin {
        StoreLogin {
            user: Some("node".to_owned()),
            password: Some("password of the node".to_owned().into()),
            ..login(url)
        }
    }
}

/// A server with TLS alone, and the certificate of its authority.
pub(crate) struct TlsServer {
    pub(crate) port: u16,
    pub(crate) ca_pem: String,
    _process: ChildProcess,
    _folder: TempFolder,
}

impl TlsServer {
    pub(crate) fn start() -> Result<Self> {
        let folder = TempFolder::new("store-tls")?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let ec = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ];
        let [ca, ca_key, site, site_key, request, extensions] = [
            "ca.pem",
            "ca.key",
            "site.pem",
            "site.key",
            "site.csr",
            "extensions",
        ]
        .map(path);
        let make_ca = ["req", "-x509", "-days", "2", "-subj", "/CN=authority"];
        run(
            "openssl",
            &[&make_ca[..], &ec, &["-keyout", &ca_key, "-out", &ca]].concat(),
        )?;
        let make_request = ["req", "-subj", "/CN=store"];
        run(
            "openssl",
            &[
                &make_request[..],
                &ec,
                &["-keyout", &site_key, "-out", &request],
            ]
            .concat(),
        )?;
        folder.write_file("extensions", "subjectAltName=IP:127.0.0.1,DNS:localhost")?;
        run(
            "openssl",
            &[
                "x509",
                "-req",
                "-days",
                "2",
                "-in",
                &request,
                "-CA",
                &ca,
                "-CAkey",
                &ca_key,
                "-CAcreateserial",
                "-extfile",
                &extensions,
                "-out",
                &site,
            ],
        )?;
        let port = free_port();
        let mut command = tls_store_command();
        command.args([
            "--port",
            "0",
            "--tls-port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
        ]);
        command.args(["--tls-cert-file", &site, "--tls-key-file", &site_key]);
        command.args([
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "no",
            "--save",
            "",
        ]);
        command.arg("--dir").arg(folder.path());
        let mut process = ChildProcess::spawn(command)?;
        process.wait_lines("eady to accept connections", 1, TEST_TIMEOUT)?;
        Ok(Self {
            port,
            ca_pem: std::fs::read_to_string(&ca)?,
            _process: process,
            _folder: folder,
        })
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

    pub(crate) fn start() -> Result<Self> {
        let master = PortServer::start_server(&[])?;
        let follow = [
            "--replicaof".to_owned(),
            format!("127.0.0.1 {}", master.port),
        ];
        let mut servers = vec![
            PortServer::start_server(&follow)?,
            PortServer::start_server(&follow)?,
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
            sentinels.push(PortServer::start(port, "+monitor", |folder, command| {
                let service = Self::SERVICE;
                let text = format!(
                    "port {port}\nbind 127.0.0.1\ndir {}\n\
                     sentinel monitor {service} 127.0.0.1 {monitored} 2\n\
                     sentinel down-after-milliseconds {service} 1000\n\
                     sentinel failover-timeout {service} 5000\n",
                    folder.path().display()
                );
                let file = folder
                    .write_file("sentinel.conf", text)
                    .expect("a file is written");
                command.arg(file).arg("--sentinel");
            })?);
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

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self
            .sentinels
            .iter()
            .map(|sentinel| format!("127.0.0.1:{}", sentinel.port))
            .collect();
        format!("valkey+sentinel://{}/{}", hosts.join(","), Self::SERVICE)
    }
}

/// A cluster of three shards with two replicas each.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<PortServer>,
}

impl Cluster {
    pub(crate) fn start() -> Result<Self> {
        let mut servers = Vec::new();
        for _ in 0..9 {
            // The bus has a port of its own: the default one is 10000 higher, and may be none.
            let options = [
                ["--cluster-enabled", "yes"],
                ["--cluster-node-timeout", "2000"],
                ["--cluster-port", &free_port().to_string()],
            ];
            let options: Vec<String> = options
                .concat()
                .iter()
                .map(|text| (*text).to_owned())
                .collect();
            servers.push(PortServer::start_server(&options)?);
        }
        let hosts: Vec<String> = servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        let mut arguments = vec!["--cluster", "create"];
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

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self
            .servers
            .iter()
            .take(3)
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        format!("valkey+cluster://{}", hosts.join(","))
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
