//! What only Shadowsocks has: users, relays, plugins, and the ways of its datagrams.

use core::fmt;
use std::path::PathBuf;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::scheme::typed::{PluginMode, RejectPolicy, Restart};
use crate::text::Secret;

/// A Shadowsocks server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsServer {
    /// The method.
    pub method: Method,
    /// Whom it serves.
    pub role: SsRole,
    /// TCP is served.
    pub tcp: bool,
    /// UDP is served; at least one of the two.
    pub udp: bool,
    /// What connections without the key see.
    pub reject: RejectPolicy,
    /// What requests from before the start see.
    pub restart: Restart,
    /// First bytes may come with the SYN of a connection (TCP Fast Open).
    pub fast_open: bool,
    /// The program between the network and this server; what it carries is served.
    pub plugin: Option<Plugin>,
    /// Where the salt filter of the AEAD edition, or of the IVs of a legacy method, is kept over
    /// restarts (SEC-R4). `None` with the other editions.
    pub state: Option<PathBuf>,
}

/// Whom a Shadowsocks server serves.
#[derive(Debug, PartialEq, Eq)]
pub enum SsRole {
    /// Everyone with this password, or base64 key of the method's length (2022 edition).
    Single(Secret),
    /// Several, each with a key of their own.
    Users {
        /// The server's own key, base64 of the method's length: users are told apart by identity
        /// headers (SIP023). `None` with the AEAD edition, where each password has to be tried.
        identity: Option<Secret>,
        /// At least one, at most [`MAX_USERS`](crate::MAX_USERS). Names and keys are unique, and
        /// no key is the identity.
        users: Vec<SsUser>,
        /// The file they came from, to be read again with [`read_users`](crate::read_users).
        file: Option<PathBuf>,
    },
    /// Nobody: connections go on to other servers, chosen by their identity header (SIP023).
    Relay {
        /// The relay's own key, base64 of the method's length.
        identity: Secret,
        /// At least one. Keys are unique, names too where there are any, and no key is the
        /// identity.
        next: Vec<RelayNext>,
    },
}

/// A user of a Shadowsocks server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsUser {
    /// 1 to 255 bytes without control characters.
    pub name: String,
    /// Password, or base64 key of the method's length (2022 edition).
    pub secret: Secret,
}

/// A server that a relay passes connections to.
#[derive(Debug, PartialEq, Eq)]
pub struct RelayNext {
    /// A name for logs: 1 to 255 bytes without control characters.
    pub name: Option<String>,
    /// The server; its port is not 0.
    pub server: Target,
    /// The key that an identity header names for this way, base64 of the method's length.
    pub secret: Secret,
}

/// A program that carries the bytes of a server or a hop in a disguise (SIP003).
#[derive(Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The program: a path, or a name that is looked up; not empty.
    pub program: String,
    /// What it finds in `SS_PLUGIN_OPTIONS`, with the escapes it was written with; may be empty.
    /// They can hold secrets, and `Debug` does not show them.
    pub options: String,
    /// What goes through it; the rest goes around it.
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
