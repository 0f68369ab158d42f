//! The laws of the codecs and the replay rules, for every method.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

mod legacy;
mod tcp_laws;
mod tcp_rules;
mod udp_laws;
mod udp_rules;
mod udp_sessions;
mod users_tcp;
mod users_udp;
