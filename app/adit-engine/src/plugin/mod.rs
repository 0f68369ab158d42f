//! SIP003 plugins, from both sides.
//!
//! A plugin is another program through which the bytes of a Shadowsocks connection pass. The host
//! starts it with four addresses in its environment, `SS_REMOTE_HOST`, `SS_REMOTE_PORT`,
//! `SS_LOCAL_HOST`, `SS_LOCAL_PORT`, and its options in `SS_PLUGIN_OPTIONS`:
//!
//! ```text
//! client ──▶ SS_LOCAL: plugin ──▶ SS_REMOTE: plugin ──▶ SS_LOCAL: server
//!  (we)      (loopback)           (public)              (we, on loopback)
//! ```
//!
//! * [`Host`]: we start a plugin and keep it running. One life of it is `life`; where its
//!   program is, `find`; what it prints goes through `log`;
//! * [`Guest`]: we are the plugin of another program. Its [`options`] say as what.
//!
//! With SIP003u a plugin takes datagrams too, at the same addresses: [`Mode`].

mod error;
mod find;
mod guest;
mod host;
mod life;
mod log;
pub mod options;

use std::fmt;
use std::net::SocketAddr;

use adit_wire::Target;

pub use error::PluginError;
pub use guest::{Guest, GuestError};
pub use host::Host;

/// A plugin as it was configured.
#[derive(Clone, PartialEq, Eq)]
pub struct Spec {
    /// An absolute path, or a plain name: then it is looked for in `ADIT_PLUGIN_DIR` and `PATH`.
    pub program: String,
    /// Its options, passed on as they are. Empty: none.
    pub options: String,
    /// What it carries.
    pub mode: Mode,
}

/// Options may hold keys.
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// What a plugin carries (SIP003u). The rest goes the direct way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Streams, as SIP003 has it.
    #[default]
    Tcp,
    /// Datagrams only.
    Udp,
    /// Both.
    TcpAndUdp,
}

impl Mode {
    /// Whether streams go through the plugin.
    #[must_use]
    pub const fn tcp(self) -> bool {
        !matches!(self, Self::Udp)
    }

    /// Whether datagrams go through the plugin.
    #[must_use]
    pub const fn udp(self) -> bool {
        !matches!(self, Self::Tcp)
    }
}

/// Which side of the tunnel the plugin is on, and the addresses that it has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// It listens on loopback, where [`Host::local`] says, and connects to the server.
    Client {
        /// The server.
        remote: Target,
    },
    /// It listens on the public address and connects to us.
    Server {
        /// The public address; the port is not 0.
        public: SocketAddr,
        /// Where we listen already, on loopback.
        local: SocketAddr,
    },
}
