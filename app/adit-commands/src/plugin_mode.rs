//! adit as the SIP003 plugin of another Shadowsocks program.
//!
//! The host program starts adit without an argument and with `SS_REMOTE_HOST`, `SS_REMOTE_PORT`,
//! `SS_LOCAL_HOST` and `SS_LOCAL_PORT` in the environment. Beside these, `SS_PLUGIN_OPTIONS` is read, and what every command
//! reads: `ADIT_LOG` and `ADIT_LOG_FORMAT`. A server needs the option `server`:
//!
//! ```text
//! ss-server … --plugin adit --plugin-opts server
//! ss-local  … --plugin adit
//! ```

use std::time::Duration;

use adit_cli::{Failure, FailureCode};
use adit_engine::plugin::{PluginEndpoint, PluginEndpointError};
use anyhow::Context;

/// Returns the endpoint that a host program requests, if one started adit.
pub(crate) fn endpoint_from_env() -> Option<Result<PluginEndpoint, PluginEndpointError>> {
    if std::env::args_os().len() > 1 {
        return None;
    }
    PluginEndpoint::from_env(|name| {
        // Values that are not UTF-8 become text that no option accepts.
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })
}

/// Forwards until the host program sends SIGTERM, or on Windows Ctrl-Break.
pub(crate) fn serve_endpoint(
    invited: Result<PluginEndpoint, PluginEndpointError>,
) -> Result<(), Failure> {
    let guest = invited.map_err(to_failure)?;
    adit_net::limits::raise_nofile();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let done = runtime.block_on(async {
        // Signals are caught before anything listens: a host that sees the listener may already send one.
        let told = wait_for_signal().context("catching signals")?;
        tokio::select! {
            done = guest.listen_and_forward() => done.map_err(to_failure),
            () = told => Ok(()),
        }
    });
    adit_stream::lane::close_lanes(Duration::ZERO);
    runtime.shutdown_background();
    done
}

/// Returns a future that waits for SIGTERM, or for SIGINT in a manual test.
#[cfg(unix)]
fn wait_for_signal() -> std::io::Result<impl Future<Output = ()>> {
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

/// Returns a future that waits for an event of the console. A host program without one kills its plugin.
#[cfg(windows)]
fn wait_for_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut signals = adit_cli::Signals::install()?;
    Ok(async move {
        signals.next_request().await;
    })
}

fn to_failure(why: PluginEndpointError) -> Failure {
    let code = match why {
        PluginEndpointError::Listen { .. } => FailureCode::Network,
        _ => FailureCode::Config,
    };
    Failure::new(code, why.to_string())
}
