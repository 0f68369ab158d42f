//! SIP003: shadowsocks-libev as the host of a plugin, and plugins that are shell scripts.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::ports::{Transport, free_port, loopback_addr, wait_port};
use crate::shadowsocks::MethodKey;
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder, external_tools};

/// A running shadowsocks-libev with a plugin.
#[derive(Debug)]
pub struct LibevPluginHost {
    addr: SocketAddr,
    process: ChildProcess,
}

impl LibevPluginHost {
    /// Starts `ss-server`, whose plugin has the public port.
    pub fn start_server(method: MethodKey, plugin: &Path, options: &str) -> Result<Self> {
        let addr = loopback_addr(free_port());
        let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
        Self::start(
            "ss-server",
            &["-s", &ip, "-p", &port],
            addr,
            method,
            plugin,
            options,
        )
    }

    /// Starts `ss-local`, whose plugin connects to the server; the SOCKS5 port is its own.
    pub fn start_socks_client(
        method: MethodKey,
        server: SocketAddr,
        plugin: &Path,
        options: &str,
    ) -> Result<Self> {
        let addr = loopback_addr(free_port());
        let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
        let (server_ip, server_port) = (server.ip().to_string(), server.port().to_string());
        let ends = ["-s", &server_ip, "-p", &server_port, "-b", &ip, "-l", &port];
        Self::start("ss-local", &ends, addr, method, plugin, options)
    }

    fn start(
        program: &str,
        ends: &[&str],
        addr: SocketAddr,
        method: MethodKey,
        plugin: &Path,
        options: &str,
    ) -> Result<Self> {
        let mut command = Command::new(external_tools::peer_path(program));
        command
            .args(ends)
            .args(["-m", method.name, "-k", method.key, "--plugin"])
            .arg(plugin);
        if !options.is_empty() {
            command.args(["--plugin-opts", options]);
        }
        let process = ChildProcess::spawn(command)?;
        let there = wait_port(Transport::Tcp, addr.port(), TEST_TIMEOUT);
        ensure!(
            there.is_ok(),
            "no process listens at {addr}:\n{}",
            process.output()
        );
        Ok(Self { addr, process })
    }

    /// Returns the address of the plugin's public port, or of the SOCKS5 port.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the running program.
    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }
}

/// A plugin that is a shell script, in a folder of its own.
///
/// Its text refers to the folder as `$HERE`; `note PID` records a process as one of its own.
#[derive(Debug)]
pub struct PluginScript {
    folder: TempFolder,
    path: PathBuf,
}

impl PluginScript {
    /// Writes the script. The name may contain anything that a file name may.
    pub fn new(name: &str, text: &str) -> Result<Self> {
        let folder = TempFolder::new("plugin")?;
        let here = folder.path().display();
        let head =
            format!("#!/bin/sh\nHERE='{here}'\nnote() {{ echo \"$1\" >> \"$HERE/pids\"; }}\n");
        let draft = folder.write_file("draft", head + text)?;
        let path = folder.path().join(name);
        // Another test may fork at any moment, and a file that any process has open for writing
        // cannot be executed. `install` does not fork.
        let mut install = Command::new("install");
        install.args(["-m", "755", "--"]).arg(draft).arg(&path);
        external_tools::run_to_end(install, TEST_TIMEOUT)?.expect_success()?;
        Ok(Self { folder, path })
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it has written into a file of its folder; empty if nothing yet.
    #[must_use]
    pub fn read_file(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }

    /// Waits a while for at least `count` recorded processes, and returns all of them.
    pub fn wait_for_pids(&self, count: usize) -> Result<Vec<u32>> {
        let start = Instant::now();
        loop {
            let text = self.read_file("pids");
            let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if pids.len() >= count {
                return Ok(pids);
            }
            ensure!(
                start.elapsed() < TEST_TIMEOUT,
                "the plugin recorded only {pids:?}"
            );
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until none of the recorded processes, at least `count`, is running.
    pub fn wait_until_gone(&self, count: usize, timeout: Duration) -> Result<()> {
        let pids = self.wait_for_pids(count)?;
        let start = Instant::now();
        loop {
            let left: Vec<&u32> = pids.iter().filter(|pid| is_running(**pid)).collect();
            if left.is_empty() {
                return Ok(());
            }
            ensure!(
                start.elapsed() < timeout,
                "the processes {left:?} are still running"
            );
            sleep(Duration::from_millis(10));
        }
    }
}

/// Repeats `attempt` until it succeeds: a host may listen before its plugin does.
pub fn retry_until_success(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    loop {
        match attempt() {
            Err(_) if start.elapsed() < TEST_TIMEOUT => sleep(Duration::from_millis(20)),
            done => return done,
        }
    }
}

/// Returns true if a process is running; a zombie is not.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    matches!(state, Some(Some(state)) if !"ZX".contains(state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::OriginServer;
    use crate::shadowsocks::AES_256;
    use crate::socks_client::{self, Destination};
    use crate::traffic::{self, CloseBehavior};

    /// The harness against peers alone: a failure here is not caused by adit.
    #[test]
    fn libev_reaches_itself_through_their_plugins() {
        for [server_plugin, server_options, client_plugin, client_options] in [
            [
                "obfs-server",
                "obfs=tls",
                "obfs-local",
                "obfs=tls;obfs-host=a.example",
            ],
            ["ss-v2ray-plugin", "server", "ss-v2ray-plugin", ""],
        ] {
            let origin = OriginServer::start().unwrap();
            let server =
                LibevPluginHost::start_server(AES_256, Path::new(server_plugin), server_options)
                    .unwrap();
            let client = LibevPluginHost::start_socks_client(
                AES_256,
                server.addr(),
                Path::new(client_plugin),
                client_options,
            )
            .unwrap();
            // Its plugin may need a moment longer than the SOCKS5 port.
            let to = Destination::Addr(origin.addr());
            retry_until_success(|| {
                traffic::check_one_byte(socks_client::connect_through(client.addr(), None, &to)?)
            })
            .unwrap();
            traffic::check_streams(CloseBehavior::OnEitherEnd, || {
                socks_client::connect_through(client.addr(), None, &to)
            })
            .unwrap();
        }
    }

    #[test]
    fn scripts_run_and_their_processes_are_known() {
        let script = PluginScript::new("a name", "note $$; sleep 600 & note $!; wait\n").unwrap();
        let process = ChildProcess::spawn(Command::new(script.path())).unwrap();
        let pids = script.wait_for_pids(2).unwrap();
        assert!(pids.iter().all(|pid| is_running(*pid)) && pids[0] == process.id());
        assert!(
            script
                .wait_until_gone(2, Duration::from_millis(50))
                .is_err()
        );
        for pid in pids.iter().rev() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        script.wait_until_gone(2, TEST_TIMEOUT).unwrap();
    }
}
