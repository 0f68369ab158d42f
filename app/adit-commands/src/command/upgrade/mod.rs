//! `adit upgrade`, SIGUSR2 and `POST /v1/upgrade`: a new process continues the listeners of a running one.
//!
//! ```text
//! running process                        new process
//!     start ───────────────────────────▶ reads its configuration
//!     sockets, over a channel ─────────▶ continues them, binds others: ready
//!     pauses accepting, counters ──────▶ accepts connections
//!     its connections end ─ counters ──▶
//! ```
//!
//! Until the new process accepts connections, any error leaves the running one unchanged. The listening sockets are
//! open all the time: a connection that arrives in between waits in the kernel's backlog.

mod host;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod predecessor;
mod program;
#[cfg(feature = "admin")]
mod request;
#[cfg(target_os = "linux")]
mod successor;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use host::PredecessorEnd;
pub(super) use host::{ProcessFiles, UpgradeHost, UpgradeOutcome, UpgradeTrigger};
#[cfg(target_os = "linux")]
pub(super) use predecessor::{InheritedApi, Predecessor};
pub(super) use program::program_of_this_process;
#[cfg(feature = "admin")]
pub(super) use request::{admin_of_file, api_address, run_upgrade};
#[cfg(target_os = "linux")]
pub(super) use successor::Successor;
#[cfg(not(target_os = "linux"))]
pub(super) use unsupported::{InheritedApi, Predecessor, Successor};

/// The result of a step of the handover, or the reason why it failed.
type Exchange<T> = Result<T, String>;

#[cfg(target_os = "linux")]
fn to_json(value: &impl serde::Serialize) -> Exchange<Vec<u8>> {
    serde_json::to_vec(value).map_err(|why| why.to_string())
}

#[cfg(target_os = "linux")]
async fn send(
    channel: &mut adit_net::handover::HandoverChannel,
    kind: u16,
    body: &[u8],
    fds: &[std::os::fd::BorrowedFd<'_>],
) -> Exchange<()> {
    let sent = channel.send(kind, body, fds).await;
    sent.map_err(|why| why.to_string())
}
