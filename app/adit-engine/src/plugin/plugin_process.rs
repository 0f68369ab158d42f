//! One run of a plugin: start, readiness and end.

use std::env;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use adit_net::child::{self, ChildGuard};
use adit_net::{BatchUdpSocket, tcp};
use adit_wire::Host as HostName;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::plugin_log::{self, LastLines};
use super::{PluginError, PluginSide, PluginSpec, PluginTransports, find_program, system};

/// Maximum time until a plugin accepts connections.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a plugin without streams must run to count as ready.
const MIN_UPTIME: Duration = Duration::from_millis(500);
/// Time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time to wait for its end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time to wait for its last output.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(300);
/// Number of attempts to find a port that is free for streams and datagrams.
const PORT_TRIES: usize = 16;
/// The first and the longest pause between two checks of its port.
const CHECK_PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

/// The parameters of a plugin, which are the same for all its runs.
#[derive(Debug)]
pub(super) struct PluginCommand {
    spec: PluginSpec,
    side: PluginSide,
    program: PathBuf,
}

/// A running plugin. Dropping it kills it immediately.
#[derive(Debug)]
pub(super) struct PluginProcess {
    leash: ChildGuard,
    /// The loopback address: the plugin's own on a client, adit's on a server.
    pub(super) local: SocketAddr,
    log: JoinHandle<()>,
    last: LastLines,
}

impl PluginCommand {
    /// Checks everything that can be checked without starting the plugin.
    pub(super) fn new(spec: PluginSpec, side: PluginSide) -> Result<Self, PluginError> {
        let program = find_program::find_program(&spec.program)?;
        if spec.options.contains('\0') {
            return Err(PluginError::Options(spec.program));
        }
        if matches!(&side, PluginSide::Server { public, .. } if public.port() == 0) {
            return Err(PluginError::NoPort(spec.program));
        }
        Ok(Self {
            spec,
            side,
            program,
        })
    }

    /// Returns the name for logs.
    pub(super) fn name(&self) -> &str {
        &self.spec.program
    }

    /// Starts the plugin and waits until it is ready.
    pub(super) async fn start_and_wait(&self) -> Result<PluginProcess, PluginError> {
        let program = || self.spec.program.clone();
        let (local, listens) = match &self.side {
            PluginSide::Client { .. } => {
                let local = find_free_port(self.spec.mode).map_err(|why| PluginError::Port {
                    program: program(),
                    why,
                })?;
                (local, local)
            }
            PluginSide::Server { public, local } => {
                self.check_addr_unused(*public)?;
                (*local, *public)
            }
        };
        let child = child::spawn_guarded(self.build_command(local)).await;
        let child = child.map_err(|why| PluginError::Start {
            program: program(),
            why,
        })?;
        let last = LastLines::default();
        let log = plugin_log::log_output(program(), child.stdout, child.stderr, last.clone());
        let mut life = PluginProcess {
            leash: child.guard,
            local,
            log: tokio::spawn(log),
            last,
        };
        let ready = wait_until_ready(listens, self.spec.mode);
        tokio::select! {
            biased;
            status = life.wait_for_exit() => Err(PluginError::Exited {
                program: program(),
                status,
                last: life.last_line().await,
            }),
            done = timeout(READY_TIMEOUT, ready) => match done {
                Ok(()) => Ok(life),
                Err(_) => {
                    life.terminate().await;
                    Err(PluginError::Silent { program: program(), addr: listens, waited: READY_TIMEOUT })
                }
            },
        }
    }

    /// Checks that no other program uses the plugin's address. Other errors are ignored: the plugin may have
    /// privileges that adit does not have.
    fn check_addr_unused(&self, public: SocketAddr) -> Result<(), PluginError> {
        let taken = |result: io::Result<()>| {
            result.is_err_and(|e: io::Error| e.kind() == io::ErrorKind::AddrInUse)
        };
        let mode = self.spec.mode;
        if mode.carries_tcp() && taken(tcp::listen(public).map(drop))
            || mode.carries_udp() && taken(BatchUdpSocket::bind(public).map(drop))
        {
            return Err(PluginError::InUse {
                program: self.spec.program.clone(),
                addr: public,
            });
        }
        Ok(())
    }

    /// Returns the command without arguments. Its environment consists of the variables of SIP003, the search
    /// path and the locale, and nothing else (SEC-E6).
    fn build_command(&self, local: SocketAddr) -> Command {
        let (host, port) = match &self.side {
            PluginSide::Client { remote } => match &remote.host {
                HostName::Ip(ip) => (ip.to_string(), remote.port),
                HostName::Name(name) => (name.as_str().to_owned(), remote.port),
            },
            PluginSide::Server { public, .. } => (public.ip().to_string(), public.port()),
        };
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .envs(env::vars_os().filter(|(name, _)| system::is_inherited_variable(name)))
            .env("SS_REMOTE_HOST", host)
            .env("SS_REMOTE_PORT", port.to_string())
            .env("SS_LOCAL_HOST", local.ip().to_string())
            .env("SS_LOCAL_PORT", local.port().to_string());
        if !self.spec.options.is_empty() {
            command.env("SS_PLUGIN_OPTIONS", &self.spec.options);
        }
        command
    }
}

/// Returns a port of 127.0.0.1 that is free at the moment.
fn find_free_port(mode: PluginTransports) -> io::Result<SocketAddr> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut tries = 0;
    loop {
        let holder = tcp::listen(any)?;
        let addr = holder.local_addr()?;
        if !mode.carries_udp() {
            return Ok(addr);
        }
        match BatchUdpSocket::bind(addr) {
            Ok(_) => return Ok(addr),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && tries < PORT_TRIES => tries += 1,
            Err(e) => return Err(e),
        }
    }
}

/// Waits until connections are accepted at `addr`. For datagrams there is no such signal: a plugin
/// without streams must have run for [`MIN_UPTIME`].
async fn wait_until_ready(addr: SocketAddr, mode: PluginTransports) {
    if !mode.carries_tcp() {
        return sleep(MIN_UPTIME).await;
    }
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let addr = SocketAddr::new(ip, addr.port());
    let [mut pause, longest] = CHECK_PAUSES;
    loop {
        // If nothing listens, a socket may connect to itself, with this port as its own.
        if let Ok(Ok(io)) = timeout(longest * 10, tcp::connect(addr)).await
            && io.local_addr().ok() != Some(addr)
        {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

impl PluginProcess {
    /// Waits for the end; returns `None` if the system does not report the status. Has to be called until
    /// it returns.
    ///
    /// # Cancel safety
    ///
    /// This function is cancel-safe.
    pub(super) async fn wait_for_exit(&mut self) -> Option<ExitStatus> {
        self.leash.wait_for_exit().await.ok()
    }

    /// Returns the last line of its output, once it has ended.
    pub(super) async fn last_line(&mut self) -> Option<String> {
        // A process that left the group may keep the pipe open forever.
        let _ = timeout(LAST_OUTPUT_TIMEOUT, &mut self.log).await;
        self.last.last_line()
    }

    /// Ends it: SIGTERM to the process group, SIGKILL after 2 s.
    pub(super) async fn terminate(mut self) {
        self.leash.terminate();
        if timeout(TERM_TIMEOUT, self.leash.wait_for_exit())
            .await
            .is_err()
        {
            self.leash.kill();
            let _ = timeout(KILL_TIMEOUT, self.leash.wait_for_exit()).await;
        }
        let _ = self.last_line().await;
    }
}

impl Drop for PluginProcess {
    fn drop(&mut self) {
        self.log.abort();
    }
}
