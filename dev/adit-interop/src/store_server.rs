//! A store server for fleets: a real `redis-server` or `valkey-server` on a Unix socket, in a folder of its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::external_tools;
use crate::ports::{Transport, wait_port, wait_socket};
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder};

/// The variable of the environment with the path of another program than [`REDIS`], for a second run of the same tests.
const PROGRAM_VARIABLE: &str = "ADIT_STORE_SERVER";
/// Debian's store server.
const REDIS: &str = "redis-server";

/// Returns a command that starts a store server: `redis-server`, or the program that `ADIT_STORE_SERVER` names.
#[must_use]
pub fn store_command() -> Command {
    Command::new(env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| REDIS.into()))
}

/// Returns a command that starts a store server with TLS: always `redis-server`, since the build of Valkey that the
/// tests install has none.
#[must_use]
pub fn tls_store_command() -> Command {
    Command::new(REDIS)
}

/// A running store server. It ends when it is dropped.
#[derive(Debug)]
pub struct StoreServer {
    process: Option<ChildProcess>,
    folder: TempFolder,
    options: Vec<String>,
    port: u16,
}

impl StoreServer {
    /// Starts a server without persistence, on a Unix socket alone.
    pub fn start() -> Result<Self> {
        Self::start_with(&["--save", "", "--appendonly", "no"], 0)
    }

    /// Starts a server that writes every command to its disk, on a Unix socket alone.
    pub fn start_persistent() -> Result<Self> {
        let options = [
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
        ];
        Self::start_with(&options, 0)
    }

    /// Starts a server with these options, on a Unix socket and, unless `port` is 0, on a TCP port of all addresses.
    pub fn start_with(options: &[&str], port: u16) -> Result<Self> {
        let mut server = Self {
            process: None,
            folder: TempFolder::new("store")?,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            port,
        };
        server.start_process()?;
        Ok(server)
    }

    fn start_process(&mut self) -> Result<()> {
        let mut command = store_command();
        command.arg("--port").arg(self.port.to_string());
        if self.port != 0 {
            command.args(["--bind", "0.0.0.0", "--protected-mode", "no"]);
        }
        command.arg("--unixsocket").arg(self.socket());
        command.arg("--dir").arg(self.folder.path());
        command.args(&self.options);
        let mut process = ChildProcess::spawn(command)?;
        process.wait_lines("eady to accept connections", 1, TEST_TIMEOUT)?;
        wait_socket(&self.socket(), TEST_TIMEOUT)?;
        if self.port != 0 {
            wait_port(Transport::Tcp, self.port, TEST_TIMEOUT)?;
        }
        self.process = Some(process);
        Ok(())
    }

    /// Returns the path of the Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("store.sock")
    }

    /// Returns the URL of the Unix socket.
    #[must_use]
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the process.
    pub fn process(&self) -> Result<&ChildProcess> {
        self.process
            .as_ref()
            .context("the store server does not run")
    }

    /// Stops its execution, as if the machine were frozen.
    pub fn stall(&self) -> Result<()> {
        self.process()?.send_signal(Signal::STOP)
    }

    /// Continues its execution.
    pub fn resume(&self) -> Result<()> {
        self.process()?.send_signal(Signal::CONT)
    }

    /// Kills the process, without a chance to write anything.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.send_signal(Signal::KILL)?;
            process.wait(TEST_TIMEOUT)?;
        }
        Ok(())
    }

    /// Kills the process, and starts it again with what it has on its disk.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.start_process()
    }

    /// Runs a command by `redis-cli`, and returns its reply.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.socket()).args(words);
        let ended = external_tools::run_to_end(command, Duration::from_secs(20))?;
        Ok(ended.expect_success()?.trim_end().to_owned())
    }

    /// Returns a number of `INFO`, such as `used_memory`.
    pub fn info(&self, name: &str) -> Result<u64> {
        let text = self.run(&["INFO"])?;
        let line = |line: &str| {
            line.strip_prefix(name)?
                .strip_prefix(':')
                .map(str::to_owned)
        };
        let value = text.lines().find_map(line);
        let value = value.with_context(|| format!("INFO has no {name}"))?;
        value.trim().parse().with_context(|| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persistent_server_keeps_its_data_when_it_is_killed() {
        let mut server = StoreServer::start_persistent().unwrap();
        assert_eq!(server.run(&["SET", "a", "1"]).unwrap(), "OK");
        server.restart().unwrap();
        assert_eq!(server.run(&["GET", "a"]).unwrap(), "1");
        assert!(server.info("used_memory").unwrap() > 100_000);
        assert!(server.info("no_such_number").is_err());
    }

    #[test]
    fn a_stalled_server_does_not_answer() {
        use std::io::{Read, Write};

        let server = StoreServer::start().unwrap();
        let mut stream = std::os::unix::net::UnixStream::connect(server.socket()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let mut reply = [0; 7];
        server.stall().unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        assert!(stream.read_exact(&mut reply).is_err());
        server.resume().unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
    }
}
