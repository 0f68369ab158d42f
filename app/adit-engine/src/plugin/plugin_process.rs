//! One run of a plugin: start, readiness and end.

use std::env;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use adit_config::SYSTEM_DNS;
use adit_net::child::guarded::{self, GuardedGroup};
#[cfg(target_os = "linux")]
use adit_net::child::guarded::{GuardedChild, HandedOverChild};
use adit_net::dial::Family;
use adit_net::{BatchUdpSocket, tcp};
use adit_wire::Host as HostName;
use tokio::time::{sleep, timeout};

use super::plugin_log::PluginLog;
use super::{PluginError, PluginSide, PluginSpec, PluginTransports, find_program, system};
use crate::dns::NameResolver;

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

/// Interval at which the name of its server is looked up again.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);

/// The parameters of a plugin, which are the same for all its runs.
#[derive(Debug)]
pub(super) struct PluginCommand {
    spec: PluginSpec,
    side: PluginSide,
    program: PathBuf,
    names: NameResolver,
}

/// A running plugin. Dropping it kills it immediately.
#[derive(Debug)]
pub(super) struct PluginProcess {
    leash: GuardedGroup,
    /// The loopback address: the plugin's own on a client, adit's on a server.
    pub(super) local: SocketAddr,
    /// The address of the server; `None` if the plugin looks its name up itself.
    pub(super) server: Option<IpAddr>,
    log: PluginLog,
}

impl PluginCommand {
    /// Checks everything that can be checked without starting the plugin.
    pub(super) fn new(
        spec: PluginSpec,
        side: PluginSide,
        names: NameResolver,
    ) -> Result<Self, PluginError> {
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
            names,
        })
    }

    /// Returns the name for logs.
    pub(super) fn name(&self) -> &str {
        &self.spec.program
    }

    #[cfg(target_os = "linux")]
    pub(super) const fn spec(&self) -> &PluginSpec {
        &self.spec
    }

    #[cfg(target_os = "linux")]
    pub(super) const fn side(&self) -> &PluginSide {
        &self.side
    }

    /// Starts the plugin and waits until it is ready.
    pub(super) async fn start_and_wait(&self) -> Result<PluginProcess, PluginError> {
        let program = || self.spec.program.clone();
        let server = self.look_up_server().await?.first().copied();
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
        let child = guarded::spawn_guarded(self.build_command(local, server)).await;
        let child = child.map_err(|why| PluginError::Start {
            program: program(),
            why,
        })?;
        let mut life = PluginProcess {
            leash: child.guard,
            local,
            server,
            log: PluginLog::start(program(), child.stdout, child.stderr),
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

    /// Returns the addresses of the server, if its name is looked up by other means than the system's resolver; empty if
    /// the plugin looks it up itself.
    async fn look_up_server(&self) -> Result<Vec<IpAddr>, PluginError> {
        let PluginSide::Client { remote } = &self.side else {
            return Ok(Vec::new());
        };
        let HostName::Name(name) = &remote.host else {
            return Ok(Vec::new());
        };
        let name = name.as_str();
        let failed = |why| PluginError::Lookup {
            program: self.spec.program.clone(),
            name: name.to_owned(),
            why,
        };
        let table = self.names.table_name(name).map_err(failed)?;
        if table.as_deref() == Some(SYSTEM_DNS) {
            return Ok(Vec::new());
        }
        let found = self.names.resolve(name, remote.port, Family::Any).await;
        let found = found.map_err(failed)?;
        Ok(found.iter().map(SocketAddr::ip).collect())
    }

    /// Waits until `server`, which a plugin was started with, is no address of its server any more.
    pub(super) async fn wait_for_other_address(&self, server: Option<IpAddr>) {
        let Some(server) = server else {
            return pending().await;
        };
        loop {
            sleep(LOOKUP_INTERVAL).await;
            let found = self.look_up_server().await.unwrap_or_default();
            if !found.is_empty() && !found.contains(&server) {
                return;
            }
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
    fn build_command(&self, local: SocketAddr, server: Option<IpAddr>) -> Command {
        let (host, port) = match &self.side {
            PluginSide::Client { remote } => match (&remote.host, server) {
                (_, Some(ip)) => (ip.to_string(), remote.port),
                (HostName::Ip(ip), None) => (ip.to_string(), remote.port),
                (HostName::Name(name), None) => (name.as_str().to_owned(), remote.port),
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
        self.leash.wait_for_exit().await.ok().flatten()
    }

    /// Returns the last line of its output, once it has ended.
    pub(super) async fn last_line(&mut self) -> Option<String> {
        // A process that left the group may keep the pipe open forever.
        let _ = timeout(LAST_OUTPUT_TIMEOUT, self.log.wait_for_end()).await;
        self.log.last_line()
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

    /// Continues to supervise a plugin of another process.
    #[cfg(target_os = "linux")]
    pub(super) fn continue_from(
        name: String,
        local: SocketAddr,
        child: HandedOverChild,
    ) -> io::Result<Self> {
        let GuardedChild {
            guard,
            stdout,
            stderr,
        } = child.supervise()?;
        Ok(Self {
            leash: guard,
            local,
            // Only listeners' plugins are handed over.
            server: None,
            log: PluginLog::start(name, stdout, stderr),
        })
    }

    /// Stops to read its output, and returns what another process needs to supervise it.
    #[cfg(target_os = "linux")]
    pub(super) async fn hand_over(&mut self) -> io::Result<HandedOverChild> {
        self.log.pause().await;
        let (stdout, stderr) = self.log.outputs().ok_or(io::ErrorKind::NotFound)?;
        self.leash.hand_over(stdout, stderr)
    }

    /// Continues to read its output after [`Self::hand_over`].
    #[cfg(target_os = "linux")]
    pub(super) fn resume(&mut self) {
        self.log.resume();
    }

    /// Leaves it to the process that it was handed over to.
    #[cfg(target_os = "linux")]
    pub(super) fn release(self) {
        self.leash.release();
    }
}
