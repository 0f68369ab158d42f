//! Shadowsocks, sans-IO: the AEAD edition (SIP004, SIP007) and the 2022 edition (SIP022).

#![forbid(unsafe_code)]

mod method;

pub use method::{Edition, Method, UnknownMethod};
