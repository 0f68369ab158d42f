//! The carriers of this build.

use crate::family::Family;
use crate::scheme::definition::Carrier;
use crate::scheme::{fec_carrier, kcp};

/// All carriers, in the order of the reference.
pub(crate) static CARRIERS: &[&Carrier] = match Family::Kcp.is_built() {
    true => &[&kcp::CARRIER, &fec_carrier::CARRIER],
    false => &[],
};
/// The carriers of dialects that need a stream.
pub(super) const STREAM_CARRIERS: &[&Carrier] = match Family::Kcp.is_built() {
    true => &[&kcp::CARRIER],
    false => &[],
};
/// The carriers of dialects of datagrams.
pub(super) const DATAGRAM_CARRIERS: &[&Carrier] = match Family::Kcp.is_built() {
    true => &[&fec_carrier::CARRIER],
    false => &[],
};
/// The names of the carriers that this build leaves out.
pub(super) const LEFT_OUT_CARRIERS: &[&str] = match Family::Kcp.is_built() {
    true => &[],
    false => &[kcp::CARRIER.name, fec_carrier::CARRIER.name],
};
