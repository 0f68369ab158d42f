//! Plugin mode: adit as the plugin of another program (SIP003).
//!
//! A client's plugin listens on `SS_LOCAL` and connects to `SS_REMOTE`; a server's plugin listens on
//! `SS_REMOTE` and connects to `SS_LOCAL`. The module `side` detects the side, so that both ends can use
//! the same options:
//!
//! | option | meaning |
//! |---|---|
//! | `obfs=NAME` | the obfuscation of ShadowsocksR or GoQuiet; without it, bytes pass unchanged |
//! | `param=TEXT` | host names to send (client) or to accept (server) |
//! | `key=TEXT` | the key of `tls1.2_*` and `go_quiet` |
//! | `browser=chrome` | the browser whose hello `go_quiet` imitates: `chrome` or `firefox` |
//! | `redirect=RULES` | the decoys of a server, such as `www.example.com:443` |
//! | `reject=POLICY` | a server's reaction to other peers: silence by default, `reset` or `close` |
//! | `server`, `client` | the side, where it cannot be detected |
//!
//! The options of GoQuiet's own plugins (`ServerName`, `AssociationKey`, `Browser`, `WebServerAddr`) are
//! accepted too.
//!
//! The [environment](PluginEndpoint::from_env) becomes a [`PluginEndpoint`]; `forward` serves its connections; `obfs`
//! obfuscates the connection between the two plugins.

mod forward;
mod guest_options;
mod obfs;
mod side;

use std::io;

use adit_obfs::{ClientState, ParamError};
use adit_wire::{Host, Role, Target};

use self::obfs::{ObfsConfig, ObfsServer};
use super::options::{self, PluginOptionsError};

/// The environment variables of SIP003, which select plugin mode.
const VARIABLES: [&str; 4] = [
    "SS_REMOTE_HOST",
    "SS_REMOTE_PORT",
    "SS_LOCAL_HOST",
    "SS_LOCAL_PORT",
];

/// A configured plugin.
#[derive(Debug)]
pub struct PluginEndpoint {
    /// The side, if it is known already.
    side: Option<Role>,
    obfs: ObfsConfig,
    /// `SS_REMOTE`; at least one address.
    remotes: Vec<Target>,
    /// `SS_LOCAL`.
    local: Target,
}

/// The error of the plugin's environment or listeners.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginEndpointError {
    /// A variable that is not a host or a port.
    #[error("{name} is `{value}`: {why}")]
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// The value of the variable.
        value: String,
        /// The reason.
        why: &'static str,
    },
    /// The options cannot be parsed.
    #[error("SS_PLUGIN_OPTIONS: {0}")]
    Options(PluginOptionsError),
    /// An unknown option.
    #[error("SS_PLUGIN_OPTIONS: there is no option `{0}`; the options are {list}", list = guest_options::OPTION_NAMES.join(", "))]
    Unknown(String),
    /// A flag with a value, or a key without one.
    #[error("SS_PLUGIN_OPTIONS: option `{name}` {why}")]
    Value {
        /// The option.
        name: String,
        /// The reason.
        why: String,
    },
    /// An unknown obfuscation.
    #[error("SS_PLUGIN_OPTIONS: there is no obfs `{name}`, only {known}")]
    Obfs {
        /// The obfuscation that was requested.
        name: String,
        /// The obfuscations that exist.
        known: String,
    },
    /// The parameters of an obfuscation are invalid.
    #[error("SS_PLUGIN_OPTIONS: {0}")]
    Param(ParamError),
    /// An address cannot be bound.
    #[error("cannot listen on {addr}: {why}")]
    Listen {
        /// The address.
        addr: String,
        /// The error of the system.
        why: io::Error,
    },
}

impl From<PluginOptionsError> for PluginEndpointError {
    fn from(why: PluginOptionsError) -> Self {
        Self::Options(why)
    }
}

impl From<ParamError> for PluginEndpointError {
    fn from(why: ParamError) -> Self {
        Self::Param(why)
    }
}

impl PluginEndpointError {
    fn listen_error(addr: &Target, why: io::Error) -> Self {
        Self::Listen {
            addr: addr.to_string(),
            why,
        }
    }
}

impl PluginEndpoint {
    /// Reads the environment. Returns `None` unless all four variables of SIP003 are set.
    ///
    /// # Errors
    ///
    /// Returns a [`PluginEndpointError`] if a variable or the options are invalid.
    pub fn from_env(
        var: impl Fn(&str) -> Option<String>,
    ) -> Option<Result<Self, PluginEndpointError>> {
        let [host, port, local_host, local_port] = VARIABLES.map(&var);
        let addresses = [host?, port?, local_host?, local_port?];
        let options = var("SS_PLUGIN_OPTIONS").unwrap_or_default();
        Some(Self::new(&addresses, &options))
    }

    fn new(addresses: &[String; 4], options: &str) -> Result<Self, PluginEndpointError> {
        let (told, obfs) = guest_options::parse_options(options)?;
        let [remote_host, remote_port, local_host, local_port] = addresses;
        let [remote_host_is, remote_port_is, local_host_is, local_port_is] = VARIABLES;
        let local = Target::new(
            parse_host(local_host_is, local_host)?,
            parse_port(local_port_is, local_port)?,
        );
        let remote_port = parse_port(remote_port_is, remote_port)?;
        // shadowsocks-libev joins all listen addresses of its server.
        let remotes = remote_host
            .split('|')
            .map(|one| Ok(Target::new(parse_host(remote_host_is, one)?, remote_port)))
            .collect::<Result<Vec<_>, PluginEndpointError>>()?;
        let formed = side::side_by_form(&remotes);
        if told == Some(Role::Client) && formed == Some(Role::Server) {
            return Err(PluginEndpointError::Variable {
                name: remote_host_is,
                value: remote_host.clone(),
                why: "an address to listen on, so this is a server: remove the option `client`",
            });
        }
        Ok(Self {
            side: told.or(formed),
            obfs,
            remotes,
            local,
        })
    }

    /// Listens, and forwards connections forever.
    ///
    /// # Errors
    ///
    /// Returns a [`PluginEndpointError`] if it cannot listen.
    pub async fn listen_and_forward(self) -> Result<(), PluginEndpointError> {
        let Self {
            side,
            obfs,
            mut remotes,
            local,
        } = self;
        let side = match (side, remotes.as_slice()) {
            (Some(side), _) => side,
            (None, [only]) => side::side_by_probing(only, &local).await,
            (None, _) => Role::Server,
        };
        let plan = match (side, remotes.pop()) {
            (Role::Client, Some(remote)) => ForwardPlan {
                listen: vec![local],
                dresser: ObfsSide::Client(obfs.client_state(&remote)?),
                connect: remote,
            },
            (_, last) => {
                remotes.extend(last);
                ForwardPlan {
                    listen: remotes,
                    connect: local,
                    dresser: ObfsSide::Server(obfs.server_state()?),
                }
            }
        };
        forward::listen_and_forward(plan).await
    }
}

/// The addresses to listen on and to connect to, and the obfuscation.
struct ForwardPlan {
    listen: Vec<Target>,
    connect: Target,
    dresser: ObfsSide,
}

/// The obfuscation of the remote side.
enum ObfsSide {
    Client(ClientState),
    Server(ObfsServer),
}

impl ObfsSide {
    const fn role(&self) -> Role {
        match self {
            Self::Client(_) => Role::Client,
            Self::Server(_) => Role::Server,
        }
    }
}

fn parse_host(name: &'static str, text: &str) -> Result<Host, PluginEndpointError> {
    Host::parse(text).map_err(|_| PluginEndpointError::Variable {
        name,
        value: text.to_owned(),
        why: "neither an address nor a name",
    })
}

fn parse_port(name: &'static str, text: &str) -> Result<u16, PluginEndpointError> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(PluginEndpointError::Variable {
            name,
            value: text.to_owned(),
            why: "not a port from 1 to 65535",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(addresses: [&str; 4], options: &str) -> Result<PluginEndpoint, PluginEndpointError> {
        let var = |name: &str| {
            let place = VARIABLES.iter().position(|v| *v == name);
            Some(place.map_or(options, |at| addresses[at]).to_owned())
        };
        PluginEndpoint::from_env(var).unwrap()
    }

    fn shown(addresses: [&str; 4], options: &str) -> String {
        let guest = guest(addresses, options).unwrap();
        let remotes: Vec<String> = guest.remotes.iter().map(ToString::to_string).collect();
        let side = guest
            .side
            .map_or_else(|| "?".to_owned(), |side| side.to_string());
        let obfs = guest.obfs.kind;
        format!(
            "{side}: {} and {} in {obfs}",
            guest.local,
            remotes.join(" ")
        )
    }

    #[test]
    fn both_sides_are_understood() {
        assert_eq!(
            shown(["a.example", "443", "127.0.0.1", "99"], ""),
            "?: 127.0.0.1:99 and a.example:443 in plain"
        );
        assert_eq!(
            shown(
                ["2001:db8::1", "443", "::1", "99"],
                "obfs=tls1.2_ticket_auth;key=a;client"
            ),
            "client: [::1]:99 and [2001:db8::1]:443 in tls1.2_ticket_auth"
        );
        assert_eq!(
            shown(["::0|0.0.0.0", "443", "127.0.0.1", "99"], ""),
            "server: 127.0.0.1:99 and [::]:443 0.0.0.0:443 in plain"
        );
        assert_eq!(
            shown(
                ["127.0.0.1", "443", "127.0.0.1", "99"],
                "server;obfs=go_quiet;param=bing.com;key=k"
            ),
            "server: 127.0.0.1:99 and 127.0.0.1:443 in go_quiet"
        );
        assert_eq!(
            shown(
                ["0.0.0.0", "443", "127.0.0.1", "99"],
                "WebServerAddr=a.example:443;Key=k;fast-open"
            ),
            "server: 127.0.0.1:99 and 0.0.0.0:443 in go_quiet"
        );
    }

    #[test]
    fn less_than_all_four_variables_is_no_invitation() {
        for missing in VARIABLES {
            let var = |name: &str| (name != missing).then(|| "1".to_owned());
            assert!(PluginEndpoint::from_env(var).is_none());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = ["a.example", "443", "127.0.0.1", "99"];
        for (options, told) in [
            ("fast", "no option `fast`; the options are `obfs=NAME`, "),
            ("server=1", "option `server` is a flag"),
            ("obfs", "option `obfs` needs a value"),
            ("obfs=none", "no obfs `none`, only `plain`, `http_simple`"),
            ("obfs=go_quiet_compatible", "no obfs `go_quiet_compatible`"),
            ("key", "option `key` needs a value"),
            ("param=a b", "blank or control character"),
            ("browser=lynx", "is `chrome` or `firefox`"),
            ("redirect=a*#b", "must be a plain text"),
            ("reject=forward:a:1", "is `drain`, `reset` or `close`"),
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
            (0, "0.0.0.0", "remove the option `client`"),
            (0, "1.2.3.4|5.6.7.8", "remove the option `client`"),
            (1, "0", "SS_REMOTE_PORT is `0`: not a port"),
            (2, "", "SS_LOCAL_HOST is ``"),
            (3, "65536", "SS_LOCAL_PORT is `65536`: not a port"),
        ] {
            let mut addresses = good;
            addresses[at] = value;
            let why = guest(addresses, "client").unwrap_err().to_string();
            assert!(why.contains(told), "{why}");
        }
    }

    #[tokio::test]
    async fn a_disguise_needs_its_key() {
        for obfs in ["go_quiet", "tls1.2_ticket_auth", "tls1.2_ticket_fastauth"] {
            for side in ["client", "server"] {
                let options = format!("obfs={obfs};{side}");
                let guest = guest(["192.0.2.1", "443", "127.0.0.1", "99"], &options).unwrap();
                let why = guest.listen_and_forward().await.unwrap_err().to_string();
                assert!(why.contains("needs a key"), "{why}");
            }
        }
    }
}
