//! Types of Shadowsocks: servers, users, relays and plugins.

use core::fmt;
use std::path::PathBuf;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::scheme::endpoint_types::{FleetIdentity, PluginMode, RejectPolicy, RestartPolicy};
use crate::text::Secret;

/// A Shadowsocks server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsServer {
    /// The method.
    pub method: Method,
    /// The keys, and what the server does with their connections.
    pub role: SsRole,
    /// True if TCP is served. At least one of `tcp` and `udp` is true.
    pub tcp: bool,
    /// True if UDP is served.
    pub udp: bool,
    /// The reaction to connections without the key.
    pub reject: RejectPolicy,
    /// The treatment of requests from before the start.
    pub restart: RestartPolicy,
    /// True if first bytes are accepted in the SYN of a connection (TCP Fast Open).
    pub fast_open: bool,
    /// The plugin between the network and this server.
    pub plugin: Option<Plugin>,
    /// The file that keeps the filter of salts (AEAD edition) or IVs (legacy methods) across
    /// restarts (SEC-R4). `None` with the other editions.
    pub state: Option<PathBuf>,
}

/// The role of a Shadowsocks server, with its keys.
#[derive(Debug, PartialEq, Eq)]
pub enum SsRole {
    /// Serves everyone with this password, or base64 key of the method's length (2022 edition).
    Single(Secret),
    /// Serves several users, each with a separate key.
    Users {
        /// The server's own key, base64 of the method's length: users are identified by identity
        /// headers (SIP023). `None` with the AEAD edition, where each password has to be tried.
        identity: Option<Secret>,
        /// The users, at least one and at most [`MAX_USERS`](crate::MAX_USERS). Names and keys are
        /// unique, and no key is the identity.
        users: Vec<SsUser>,
        /// The file they came from. [`read_users`](crate::read_users) reads it again.
        file: Option<PathBuf>,
    },
    /// Serves the users of the fleet of [`Plan::fleet`](crate::Plan::fleet), each with a separate key.
    Fleet {
        /// The server's own key, for methods with identity headers; others try every password.
        identity: FleetIdentity,
    },
    /// Relays connections to other servers, chosen by their identity header (SIP023).
    Relay {
        /// The relay's own key, base64 of the method's length.
        identity: Secret,
        /// The servers, at least one. Keys are unique, as are names, and no key is the identity.
        next: Vec<RelayTarget>,
    },
}

/// A user of a Shadowsocks server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsUser {
    /// The name: 1 to 255 bytes without control characters.
    pub name: String,
    /// Password, or base64 key of the method's length (2022 edition).
    pub secret: Secret,
}

/// A server that a relay passes connections to.
#[derive(Debug, PartialEq, Eq)]
pub struct RelayTarget {
    /// A name for logs: 1 to 255 bytes without control characters.
    pub name: Option<String>,
    /// The server; its port is not 0.
    pub server: Target,
    /// The key by which an identity header selects this server, base64 of the method's length.
    pub secret: Secret,
}

/// A program that disguises the traffic of a server or a hop (SIP003).
#[derive(Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The program: a path, or a name that is looked up; not empty.
    pub program: String,
    /// The value of `SS_PLUGIN_OPTIONS`, with its escapes as written; may be empty. It can contain
    /// secrets, and `Debug` does not show it.
    pub options: String,
    /// The transports that go through it; the others bypass it.
    pub mode: PluginMode,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("program", &self.program)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
