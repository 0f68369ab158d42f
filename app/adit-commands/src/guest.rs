//! adit as the SIP003 plugin of another Shadowsocks program.
//!
//! A host starts us without an argument and with `SS_REMOTE_HOST`, `SS_REMOTE_PORT`,
//! `SS_LOCAL_HOST` and `SS_LOCAL_PORT` in the environment; nothing else is read but
//! `SS_PLUGIN_OPTIONS`. On a server the option `server` is needed:
//!
//! ```text
//! ss-server … --plugin adit --plugin-opts server
//! ss-local  … --plugin adit
//! ```

use std::time::Duration;

use adit_cli::{Code, Failure};
use adit_engine::plugin::{PluginEndpoint, PluginEndpointError};
use anyhow::Context;

/// What a host asks for, if one has started us.
pub(crate) fn invitation() -> Option<Result<PluginEndpoint, PluginEndpointError>> {
    if std::env::args_os().len() > 1 {
        return None;
    }
    PluginEndpoint::from_env(|name| {
        // What is no text becomes text that fits nowhere.
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })
}

/// Forwards until the host ends us with SIGTERM.
pub(crate) fn serve(invited: Result<PluginEndpoint, PluginEndpointError>) -> Result<(), Failure> {
    let guest = invited.map_err(failure)?;
    adit_net::limits::raise_nofile();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let done = runtime.block_on(async {
        // Caught before anything listens: who sees a listener may already end it.
        let told = told_to_end().context("catching signals")?;
        tokio::select! {
            done = guest.listen_and_forward() => done.map_err(failure),
            () = told => Ok(()),
        }
    });
    adit_stream::lane::close_lanes(Duration::ZERO);
    runtime.shutdown_background();
    done
}

/// SIGTERM, or SIGINT where somebody tries it by hand.
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

fn failure(why: PluginEndpointError) -> Failure {
    let code = match why {
        PluginEndpointError::Listen { .. } => Code::Network,
        _ => Code::Config,
    };
    Failure::new(code, why.to_string())
}
