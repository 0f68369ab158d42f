//! The implementations that are measured: how each is found and started in each role.
//!
//! One file each with a [`Kind`]; a [`Peer`] is one that is installed here.

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

/// Every implementation that we can start, adit first.
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

/// True if no one runs it: it only shows what the task costs at least.
pub(crate) fn is_floor(name: &str) -> bool {
    KINDS.iter().any(|kind| kind.floor && kind.name == name)
}
