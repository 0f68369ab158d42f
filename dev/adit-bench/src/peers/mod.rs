//! The measured implementations: how each is found and started in each role.
//!
//! One file with a [`Kind`] for each; a [`Peer`] is one that is installed.

mod adit;
mod bare;
mod kcpgo;
mod kcptun;
mod kind;
mod libev;
mod openssh;
mod pproxy;
mod recipe;
mod relays;
mod russh;
mod singbox;
mod ssgo;
pub(crate) mod ssh;
mod ssrcli;
mod ssrust;
#[cfg(test)]
mod tests;
mod xray;

pub(crate) use kcptun::{SHARE, USUAL as KCPTUN};
pub(crate) use kind::{Kind, Peer, Ready, Role, Running};
use kind::{Programs, relay_key};
use recipe::Recipe;

/// All implementations that can be started, adit first.
pub(crate) const KINDS: &[Kind] = &[
    adit::KIND,
    ssrust::KIND,
    ssgo::KIND,
    singbox::KIND,
    xray::KIND,
    libev::KIND,
    ssrcli::KIND,
    pproxy::KIND,
    relays::GOST,
    relays::HEV,
    relays::MICROSOCKS,
    relays::DANTE,
    kcptun::KIND,
    kcpgo::KIND,
    openssh::KIND,
    russh::KIND,
    bare::SPLICE,
    bare::RECORDS,
];

/// Returns true for an implementation that only shows the minimum cost of the task.
pub(crate) fn is_floor(name: &str) -> bool {
    KINDS.iter().any(|kind| kind.floor && kind.name == name)
}
