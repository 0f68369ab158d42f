//! The implementations that are measured: how each is found and started in each role.
//!
//! One file each with a [`Kind`]; a [`Peer`] is one that is installed here.

mod adit;
mod dante;
mod libev;
mod microsocks;
mod recipe;
mod singbox;
mod ssrust;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::shadowsocks::Method;
use adit_interop::{Folder, PATIENCE, Process, Transport, free_port, loopback, wait_port};
use anyhow::{Context, Result, bail, ensure};

use crate::places;
use recipe::Recipe;

/// Every implementation that we can start, adit first.
pub(crate) const KINDS: &[Kind] = &[
    adit::KIND,
    singbox::KIND,
    ssrust::KIND,
    libev::KIND,
    microsocks::KIND,
    dante::KIND,
];

/// An implementation.
#[derive(Debug)]
pub(crate) struct Kind {
    /// As in tables and in `--only`.
    pub(crate) name: &'static str,
    /// The programs it needs; the first is asked for its version.
    programs: &'static [&'static str],
    version: fn(&Programs) -> String,
    /// None where it cannot play this role.
    recipe: fn(&Role, SocketAddr) -> Option<Recipe>,
}

/// What a process is to do. Every listener is on loopback.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// SOCKS5, straight to the destination.
    Relay,
    /// A Shadowsocks server, TCP and UDP, whose clients may reach loopback.
    Server(Method),
    /// An entry, TCP and UDP, that leads through a server to one destination.
    Forwarder {
        method: Method,
        server: SocketAddr,
        to: SocketAddr,
    },
    /// SOCKS5 through a server.
    Client { method: Method, server: SocketAddr },
}

impl Role {
    const fn has_udp(&self) -> bool {
        matches!(self, Self::Server(_) | Self::Forwarder { .. })
    }
}

/// Where the programs of one implementation are.
#[derive(Debug)]
struct Programs(Vec<(&'static str, PathBuf)>);

impl Programs {
    fn path(&self, name: &str) -> Option<&PathBuf> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, path)| path)
    }

    /// What the first of them prints when it is asked.
    fn ask(&self, args: &[&str]) -> String {
        self.0
            .first()
            .map_or_else(String::new, |(_, path)| places::output_of(path, args))
    }
}

/// An implementation that is here.
#[derive(Debug)]
pub(crate) struct Peer {
    kind: &'static Kind,
    programs: Programs,
    version: String,
}

impl Kind {
    /// Looks for its programs with `find`.
    pub(crate) fn find(&'static self, find: impl Fn(&str) -> Option<PathBuf>) -> Option<Peer> {
        let programs = self.programs.iter().map(|name| Some((*name, find(name)?)));
        let programs = Programs(programs.collect::<Option<_>>()?);
        let mut version = (self.version)(&programs);
        if version.is_empty() {
            "version unknown".clone_into(&mut version);
        }
        Some(Peer {
            kind: self,
            programs,
            version,
        })
    }
}

impl Peer {
    /// As in tables.
    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name
    }

    /// What it says of itself.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Whether it can play this role.
    pub(crate) fn plays(&self, role: &Role) -> bool {
        (self.kind.recipe)(role, loopback(1)).is_some()
    }

    /// Starts it on a free port and waits until it listens there.
    pub(crate) fn start(&self, role: &Role) -> Result<Running> {
        let at = loopback(free_port());
        let recipe = (self.kind.recipe)(role, at)
            .with_context(|| format!("{} cannot be {role:?}", self.name()))?;
        let program = self
            .programs
            .path(recipe.program)
            .context("a program it does not need")?;
        let folder = Folder::new("bench")?;
        let mut command = Command::new(program);
        command.args(&recipe.args).current_dir(folder.path());
        if let Some(config) = &recipe.config {
            command.arg(folder.write("config", config)?);
        }
        let mut process = Process::spawn(command)?;
        wait_listening(&mut process, Transport::Tcp, at.port())?;
        if role.has_udp() {
            wait_listening(&mut process, Transport::Udp, at.port())?;
        }
        Ok(Running {
            process,
            at,
            shown: recipe.shown(),
            _folder: folder,
        })
    }
}

/// Waits until somebody has the port, but not for a process that has ended.
fn wait_listening(process: &mut Process, transport: Transport, port: u16) -> Result<()> {
    let start = Instant::now();
    while let Err(why) = wait_port(transport, port, Duration::from_millis(100)) {
        if let Ok(status) = process.wait(Duration::ZERO) {
            bail!("it ended with {status} and said:\n{}", process.log());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "{why}; it said:\n{}",
            process.log()
        );
    }
    Ok(())
}

/// A started process; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    process: Process,
    at: SocketAddr,
    shown: String,
    _folder: Folder,
}

impl Running {
    /// Where it listens.
    pub(crate) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How it was started.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_interop::shadowsocks::{AES_192, AES_256, BLAKE3_AES_128};

    fn kind(name: &str) -> &'static Kind {
        KINDS.iter().find(|kind| kind.name == name).unwrap()
    }

    fn shown(name: &str, role: &Role) -> Option<String> {
        (kind(name).recipe)(role, loopback(1000)).map(|recipe| recipe.shown())
    }

    #[test]
    fn commands_are_as_the_manuals_say() {
        let server = loopback(2000);
        let forwarder = Role::Forwarder {
            method: AES_256,
            server,
            to: loopback(3000),
        };
        assert_eq!(
            shown("shadowsocks-libev", &forwarder).unwrap(),
            "ss-tunnel -s 127.0.0.1 -p 2000 -b 127.0.0.1 -l 1000 -m aes-256-gcm -k 'bar foo!@:/%?#' \
             -u -L 127.0.0.1:3000"
        );
        assert_eq!(
            shown(
                "adit",
                &Role::Client {
                    method: BLAKE3_AES_128,
                    server
                }
            )
            .unwrap(),
            format!(
                "adit run socks5://127.0.0.1:1000 {}",
                BLAKE3_AES_128.url(server)
            )
        );
        assert_eq!(
            shown("adit", &Role::Server(BLAKE3_AES_128)).unwrap(),
            format!(
                "adit run '{}?allow_private=127.0.0.0/8'",
                BLAKE3_AES_128.url(loopback(1000))
            )
        );
        let line = shown("sing-box", &Role::Relay).unwrap();
        assert!(
            line.starts_with("cat > config <<'END'\n{\"inbounds\":["),
            "{line}"
        );
        assert!(line.ends_with("\nEND\nsing-box run -c config"), "{line}");
    }

    #[test]
    fn nobody_plays_what_it_does_not_know() {
        let server = loopback(2000);
        for (name, role) in [
            ("shadowsocks-libev", Role::Server(BLAKE3_AES_128)),
            ("shadowsocks-libev", Role::Relay),
            ("shadowsocks-rust", Role::Server(AES_192)),
            ("shadowsocks-rust", Role::Relay),
            ("microsocks", Role::Server(AES_256)),
            (
                "dante",
                Role::Client {
                    method: AES_256,
                    server,
                },
            ),
        ] {
            assert_eq!(shown(name, &role), None, "{name}");
        }
    }

    #[test]
    fn a_recipe_uses_only_programs_its_kind_names() {
        let server = loopback(2000);
        let roles = [
            Role::Relay,
            Role::Server(AES_256),
            Role::Forwarder {
                method: AES_256,
                server,
                to: server,
            },
            Role::Client {
                method: AES_256,
                server,
            },
        ];
        for kind in KINDS {
            let recipes: Vec<Recipe> = roles
                .iter()
                .filter_map(|role| (kind.recipe)(role, loopback(1)))
                .collect();
            assert!(!recipes.is_empty(), "{} plays nothing", kind.name);
            for recipe in recipes {
                assert!(
                    kind.programs.contains(&recipe.program),
                    "{}",
                    recipe.program
                );
            }
        }
    }

    #[test]
    fn a_missing_program_is_no_peer() {
        assert!(kind("dante").find(|_| None).is_none());
        let here = kind("microsocks")
            .find(|_| Some(PathBuf::from("true")))
            .unwrap();
        assert_eq!(
            (here.name(), here.plays(&Role::Relay)),
            ("microsocks", true)
        );
    }

    #[test]
    fn a_process_that_ends_at_once_is_not_waited_for() {
        let peer = kind("microsocks")
            .find(|_| Some(PathBuf::from("false")))
            .unwrap();
        let start = Instant::now();
        let why = format!("{:#}", peer.start(&Role::Relay).unwrap_err());
        assert!(why.contains("exit status: 1"), "{why}");
        assert!(start.elapsed() < PATIENCE / 2);
    }
}
