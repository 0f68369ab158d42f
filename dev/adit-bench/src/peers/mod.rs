//! The measured implementations: how each is found and started in each role.
//!
//! One file with a [`PeerKind`] for each; a [`InstalledPeer`] is one that is installed.

mod adit;
mod bare_programs;
mod kcpgo;
mod kcptun;
mod libev;
mod openssh;
mod peer_kind;
mod pproxy;
mod russh;
mod singbox;
mod socks_relays;
mod ssgo;
pub(crate) mod ssh_common;
mod ssrcli;
mod ssrust;
mod start_recipe;
#[cfg(test)]
mod tests;
mod xray;

pub(crate) use kcptun::{DEFAULT_OPTIONS as KCPTUN, TRANSFER_DIVISOR};
pub(crate) use peer_kind::{InstalledPeer, PeerKind, PeerRole, PreparedCommand, RunningPeer};
use peer_kind::{ProgramPaths, relay_key};
use start_recipe::StartRecipe;

/// All implementations that can be started, adit first.
pub(crate) const KINDS: &[PeerKind] = &[
    adit::KIND,
    adit::BEFORE,
    ssrust::KIND,
    ssgo::KIND,
    singbox::KIND,
    xray::KIND,
    libev::KIND,
    ssrcli::KIND,
    pproxy::KIND,
    socks_relays::GOST,
    socks_relays::HEV,
    socks_relays::MICROSOCKS,
    socks_relays::DANTE,
    kcptun::KIND,
    kcpgo::KIND,
    openssh::KIND,
    russh::KIND,
    bare_programs::SPLICE,
    bare_programs::RECORDS,
];

/// The name of the older build of adit, which is measured only with `--before`.
pub(crate) const BEFORE: &str = adit::BEFORE.name;

/// Returns true for an implementation that only shows the minimum cost of the task.
pub(crate) fn is_floor(name: &str) -> bool {
    KINDS.iter().any(|kind| kind.is_floor && kind.name == name)
}
