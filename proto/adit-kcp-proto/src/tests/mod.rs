//! Test vectors, whole sessions over simulated links, hostile peers.

mod control;
mod corrected;
mod hostile;
mod link;
mod sessions;
mod trace;
mod vectored;

pub(crate) use crate::{ChangeError, Compat, Config, CongestionControl, KcpSession, SessionState};
pub(crate) use adit_wire::Time;
use serde_json::Value;

/// The golden file.
pub(crate) fn vectors() -> Value {
    let text = include_str!("../../vectors/arq.json");
    serde_json::from_str(text).unwrap()
}

pub(crate) fn number(value: &Value) -> u32 {
    value.as_u64().unwrap().try_into().unwrap()
}

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap().as_bytes();
    text.chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
