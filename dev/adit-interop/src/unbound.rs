//! unbound, a DNS server with datagrams, TCP, TLS and HTTPS (HTTP/2 only).

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::ports::{Transport, free_port, loopback_addr, wait_port};
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder};

/// A server on 127.0.0.1 that has only the records of its configuration. It ends when it is dropped.
#[derive(Debug)]
pub struct UnboundServer {
    plain: u16,
    tls: u16,
    https: u16,
    process: ChildProcess,
    _folder: TempFolder,
}

impl UnboundServer {
    /// Starts a server with these records, as zone files have them (`a.test. 300 A 192.0.2.7`), all below `test`;
    /// other names do not exist. The certificate and its key are PEM files.
    pub fn start(records: &[String], certificate: &Path, key: &Path) -> Result<Self> {
        let folder = TempFolder::new("unbound")?;
        let (plain, tls, https) = (free_port(), free_port(), free_port());
        let local: String = records
            .iter()
            .map(|record| format!("  local-data: '{record}'\n"))
            .collect();
        let config = format!(
            "server:\n  interface: 127.0.0.1@{plain}\n  interface: 127.0.0.1@{tls}\n  \
             interface: 127.0.0.1@{https}\n  tls-port: {tls}\n  https-port: {https}\n  \
             tls-service-pem: \"{certificate}\"\n  tls-service-key: \"{key}\"\n  \
             http-endpoint: \"/dns-query\"\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n  \
             directory: \"{folder}\"\n  pidfile: \"\"\n  use-syslog: no\n  log-queries: yes\n  \
             module-config: \"iterator\"\n  do-not-query-localhost: yes\n  \
             local-zone: \".\" static\n  local-zone: \"test.\" static\n{local}",
            certificate = certificate.display(),
            key = key.display(),
            folder = folder.path().display(),
        );
        let config = folder.write_file("unbound.conf", config)?;
        let mut command = Command::new("unbound");
        command.arg("-d").arg("-c").arg(config);
        let process = ChildProcess::spawn(command)?;
        for port in [plain, tls, https] {
            wait_port(Transport::Tcp, port, TEST_TIMEOUT)?;
        }
        Ok(Self {
            plain,
            tls,
            https,
            process,
            _folder: folder,
        })
    }

    /// Returns the address of datagrams and TCP.
    #[must_use]
    pub fn plain_addr(&self) -> SocketAddr {
        loopback_addr(self.plain)
    }

    /// Returns the address of TLS.
    #[must_use]
    pub fn tls_addr(&self) -> SocketAddr {
        loopback_addr(self.tls)
    }

    /// Returns the address of HTTPS, with the path `/dns-query`.
    #[must_use]
    pub fn https_addr(&self) -> SocketAddr {
        loopback_addr(self.https)
    }

    /// Returns its log, which has a line for each query.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.output()
    }
}
