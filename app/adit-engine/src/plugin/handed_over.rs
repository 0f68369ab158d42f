//! A plugin on the way from one process of adit to the next.

use std::io;
use std::net::SocketAddr;

use adit_net::child::guarded::HandedOverChild;
use tracing::{info, warn};

use super::plugin_process::PluginProcess;
use super::{PluginSide, PluginSpec};

/// The plugin of a listener, which another process can continue to supervise. Dropping it has no effect on the plugin.
#[derive(Debug)]
pub struct HandedOverPlugin {
    /// Its configuration.
    pub spec: PluginSpec,
    /// The address that it listens on.
    pub public: SocketAddr,
    /// The loopback address that it connects to.
    pub local: SocketAddr,
    /// The process.
    pub process: HandedOverChild,
}

impl HandedOverPlugin {
    /// Returns true if it runs as it would be started now.
    pub(super) fn is_the_same(&self, spec: &PluginSpec, side: &PluginSide) -> bool {
        let own = PluginSide::Server {
            public: self.public,
            local: self.local,
        };
        self.spec == *spec && own == *side
    }

    /// Continues to supervise it.
    pub(super) fn supervise(self) -> io::Result<PluginProcess> {
        PluginProcess::continue_from(self.spec.program, self.local, self.process)
    }

    /// Ends it, as no listener of the next process needs it.
    pub(crate) async fn end(self) {
        let program = self.spec.program.clone();
        match self.supervise() {
            Ok(process) => {
                info!("plugin {program} is no longer needed: it ends");
                process.terminate().await;
            }
            Err(why) => warn!("cannot end plugin {program}: {why}"),
        }
    }
}
