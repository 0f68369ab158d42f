//! SIP003 plugins, as host and as plugin.
//!
//! A plugin is a separate program that the bytes of a Shadowsocks connection pass through. The host
//! starts it with four addresses in its environment, `SS_REMOTE_HOST`, `SS_REMOTE_PORT`,
//! `SS_LOCAL_HOST`, `SS_LOCAL_PORT`, and its options in `SS_PLUGIN_OPTIONS`:
//!
//! ```text
//! client ──▶ SS_LOCAL: plugin ──▶ SS_REMOTE: plugin ──▶ SS_LOCAL: server
//! (adit)        (loopback)            (public)            (adit, on loopback)
//! ```
//!
//! * [`PluginHost`]: starts a plugin and keeps it running. `plugin_process` is one run of it,
//!   `find_program` locates its program, `plugin_log` logs its output, `handed_over` passes it on to the process
//!   that succeeds this one;
//! * [`PluginEndpoint`]: adit as the plugin of another program, configured by [`options`].
//!
//! With SIP003u a plugin may carry datagrams too, on the same addresses: [`PluginTransports`].

mod find_program;
#[cfg(target_os = "linux")]
mod handed_over;
pub mod options;
mod plugin_error;
mod plugin_host;
mod plugin_log;
mod plugin_mode;
mod plugin_process;
mod system;

use std::fmt;
use std::net::SocketAddr;

use adit_wire::Target;

#[cfg(target_os = "linux")]
pub use handed_over::HandedOverPlugin;
pub use plugin_error::PluginError;
pub use plugin_host::PluginHost;
pub use plugin_mode::{PluginEndpoint, PluginEndpointError};

/// The configuration of a plugin.
#[derive(Clone, PartialEq, Eq)]
pub struct PluginSpec {
    /// An absolute path, or a plain name, which is searched in `ADIT_PLUGIN_DIR` and `PATH`.
    pub program: String,
    /// The options, passed on unchanged. Empty for none.
    pub options: String,
    /// The transports that it carries.
    pub mode: PluginTransports,
}

/// Omits the options, which may contain keys.
impl fmt::Debug for PluginSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The transports that a plugin carries (SIP003u). Others bypass it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PluginTransports {
    /// Streams, as in SIP003.
    #[default]
    Tcp,
    /// Datagrams only.
    Udp,
    /// Both.
    TcpAndUdp,
}

impl PluginTransports {
    const NAMES: [(Self, &'static str); 3] = [
        (Self::Tcp, "tcp"),
        (Self::Udp, "udp"),
        (Self::TcpAndUdp, "tcp+udp"),
    ];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(mode, _)| *mode == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the transports of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(mode, _)| *mode)
    }

    /// Returns true if streams pass through the plugin.
    #[must_use]
    pub const fn carries_tcp(self) -> bool {
        !matches!(self, Self::Udp)
    }

    /// Returns true if datagrams pass through the plugin.
    #[must_use]
    pub const fn carries_udp(self) -> bool {
        !matches!(self, Self::Tcp)
    }
}

/// The side of the tunnel that the plugin is on, with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginSide {
    /// It listens on the loopback address of [`PluginHost::local_addr`], and connects to the server.
    Client {
        /// The server.
        remote: Target,
    },
    /// It listens on the public address, and connects to adit.
    Server {
        /// The public address; the port is not 0.
        public: SocketAddr,
        /// The loopback address that adit listens on already.
        local: SocketAddr,
    },
}
