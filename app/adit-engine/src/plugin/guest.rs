//! We are the plugin of another program (SIP003).
//!
//! On a client we listen at `SS_LOCAL` and connect to `SS_REMOTE`; on a server, which the option
//! `server` says since no variable does, we listen at `SS_REMOTE` and connect to `SS_LOCAL`:
//!
//! | option | means |
//! |---|---|
//! | `server` | we are on the server's side |
//! | `obfs=plain` | bytes pass as they are; so they do without this option |
//!
//! The [environment](Guest::from_env) becomes a [`Guest`]; `forward` takes its connections; the
//! one between the two plugins is dressed by `obfs`.

mod forward;
mod obfs;

use std::fmt;
use std::io;

use adit_wire::{Host, Target};

use self::obfs::Obfs;
use super::options::{self, OptionsError};

/// The variables that make us a plugin.
const VARIABLES: [&str; 4] = [
    "SS_REMOTE_HOST",
    "SS_REMOTE_PORT",
    "SS_LOCAL_HOST",
    "SS_LOCAL_PORT",
];

/// Which side of the tunnel we are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// A plugin that has been told what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    side: Side,
    obfs: Obfs,
    listen: Vec<Target>,
    connect: Target,
}

/// Why we cannot be that plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// A variable that is no host or no port.
    #[error("{name} is `{value}`: {why}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The options cannot be read.
    #[error("SS_PLUGIN_OPTIONS: {0}")]
    Options(#[from] OptionsError),
    /// An option that we do not have.
    #[error("SS_PLUGIN_OPTIONS: there is no option `{0}`, only `server` and `obfs=NAME`")]
    Unknown(String),
    /// A flag with a value or a key without one.
    #[error("SS_PLUGIN_OPTIONS: option `{name}` {why}")]
    Value {
        /// The option.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A disguise that we do not have.
    #[error("SS_PLUGIN_OPTIONS: there is no obfs `{name}`, only {known}")]
    Obfs {
        /// As it was asked for.
        name: String,
        /// Those that we have.
        known: String,
    },
    /// An address that cannot be bound.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: String,
        /// What the system said.
        source: io::Error,
    },
}

impl GuestError {
    fn listen(addr: &Target, source: io::Error) -> Self {
        Self::Listen {
            addr: addr.to_string(),
            source,
        }
    }
}

impl Guest {
    /// What the environment asks for: None unless all four variables of SIP003 are set.
    pub fn from_env(var: impl Fn(&str) -> Option<String>) -> Option<Result<Self, GuestError>> {
        let [host, port, local_host, local_port] = VARIABLES.map(&var);
        let addresses = [host?, port?, local_host?, local_port?];
        let options = var("SS_PLUGIN_OPTIONS").unwrap_or_default();
        Some(Self::new(&addresses, &options))
    }

    fn new(addresses: &[String; 4], options: &str) -> Result<Self, GuestError> {
        let (side, obfs) = chosen(options)?;
        let [remote_host, remote_port, local_host, local_port] = addresses;
        let [remote_host_is, remote_port_is, local_host_is, local_port_is] = VARIABLES;
        let local = Target::new(
            host(local_host_is, local_host)?,
            port(local_port_is, local_port)?,
        );
        let remote_port = port(remote_port_is, remote_port)?;
        // shadowsocks-libev joins the addresses that its server was told to listen on.
        let mut remotes = remote_host
            .split('|')
            .map(|one| Ok(Target::new(host(remote_host_is, one)?, remote_port)))
            .collect::<Result<Vec<_>, GuestError>>()?;
        let is_any = |host: &Host| matches!(host, Host::Ip(ip) if ip.is_unspecified());
        let (listen, connect) = match (side, remotes.pop()) {
            (Side::Server, Some(last)) => {
                remotes.push(last);
                (remotes, local)
            }
            (Side::Client, Some(only)) if remotes.is_empty() && !is_any(&only.host) => {
                (vec![local], only)
            }
            _ => {
                return Err(GuestError::Variable {
                    name: remote_host_is,
                    value: remote_host.clone(),
                    why: "a place to listen on, so this is a server: it needs the option `server`",
                });
            }
        };
        Ok(Self {
            side,
            obfs,
            listen,
            connect,
        })
    }

    /// Listens, and forwards for ever. Ends with an error if it cannot listen.
    pub async fn serve(self) -> Result<(), GuestError> {
        forward::serve(self).await
    }
}

/// What the options say.
fn chosen(text: &str) -> Result<(Side, Obfs), GuestError> {
    let (mut side, mut obfs) = (Side::Client, Obfs::default());
    for (name, value) in options::parse(text)?.iter() {
        let wrong = |why| GuestError::Value {
            name: name.to_owned(),
            why,
        };
        match (name, value) {
            ("server", None) => side = Side::Server,
            ("server", Some(_)) => return Err(wrong("is a flag and takes no value")),
            ("obfs", Some(name)) => {
                obfs = Obfs::from_name(name).ok_or_else(|| GuestError::Obfs {
                    name: name.to_owned(),
                    known: Obfs::names(),
                })?;
            }
            ("obfs", None) => return Err(wrong("needs a value")),
            _ => return Err(GuestError::Unknown(name.to_owned())),
        }
    }
    Ok((side, obfs))
}

fn host(name: &'static str, text: &str) -> Result<Host, GuestError> {
    Host::parse(text).map_err(|_| GuestError::Variable {
        name,
        value: text.to_owned(),
        why: "neither an address nor a name",
    })
}

fn port(name: &'static str, text: &str) -> Result<u16, GuestError> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(GuestError::Variable {
            name,
            value: text.to_owned(),
            why: "not a port from 1 to 65535",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(addresses: [&str; 4], options: &str) -> Result<Guest, GuestError> {
        let var = |name: &str| {
            let place = VARIABLES.iter().position(|v| *v == name);
            Some(place.map_or(options, |at| addresses[at]).to_owned())
        };
        Guest::from_env(var).unwrap()
    }

    fn shown(addresses: [&str; 4], options: &str) -> String {
        let guest = guest(addresses, options).unwrap();
        let listen: Vec<String> = guest.listen.iter().map(ToString::to_string).collect();
        format!("{}: {} to {}", guest.side, listen.join(" "), guest.connect)
    }

    #[test]
    fn both_sides_are_understood() {
        assert_eq!(
            shown(["a.example", "443", "127.0.0.1", "99"], ""),
            "client: 127.0.0.1:99 to a.example:443"
        );
        assert_eq!(
            shown(["2001:db8::1", "443", "::1", "99"], "obfs=plain"),
            "client: [::1]:99 to [2001:db8::1]:443"
        );
        assert_eq!(
            shown(["::0|0.0.0.0", "443", "127.0.0.1", "99"], "server"),
            "server: [::]:443 0.0.0.0:443 to 127.0.0.1:99"
        );
    }

    #[test]
    fn less_than_all_four_variables_is_no_invitation() {
        for missing in VARIABLES {
            let var = |name: &str| (name != missing).then(|| "1".to_owned());
            assert!(Guest::from_env(var).is_none());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = ["a.example", "443", "127.0.0.1", "99"];
        for (options, told) in [
            ("fast", "no option `fast`, only `server` and `obfs=NAME`"),
            ("server=1", "option `server` is a flag"),
            ("obfs", "option `obfs` needs a value"),
            ("obfs=none", "no obfs `none`, only `plain`"),
            ("server;server", "`server` is given twice"),
            ("server\\", "in the middle of an escape"),
        ] {
            let why = guest(good, options).unwrap_err().to_string();
            assert!(
                why.starts_with("SS_PLUGIN_OPTIONS: ") && why.contains(told),
                "{why}"
            );
        }
        for (at, value, told) in [
            (0, "a b", "SS_REMOTE_HOST is `a b`: neither"),
            (0, "0.0.0.0", "it needs the option `server`"),
            (0, "1.2.3.4|5.6.7.8", "it needs the option `server`"),
            (1, "0", "SS_REMOTE_PORT is `0`: not a port"),
            (2, "", "SS_LOCAL_HOST is ``"),
            (3, "65536", "SS_LOCAL_PORT is `65536`: not a port"),
        ] {
            let mut addresses = good;
            addresses[at] = value;
            let why = guest(addresses, "").unwrap_err().to_string();
            assert!(why.contains(told), "{why}");
        }
    }
}
