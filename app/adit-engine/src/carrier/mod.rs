//! Transports other than TCP, to a hop's server or to a listener.
//!
//! ```text
//! KCP:  dialect ─▶ smux stream ─▶ one of a few sessions ─▶ UDP ─▶ session ─▶ stream ─▶ acceptor
//! FEC:  datagram ─▶ channel ─▶ UDP ─▶ channel ─▶ the listener's target
//! ```
//!
//! A hop's carrier is the connector below its dialect ([`KcpCarrier`]). A listener's carrier passes
//! streams to the same acceptors as TCP. Clients that use kcptun's ciphers detect settings of the server
//! that differ, and adopt those that were not configured.

mod carrier_control;
mod carrier_listener;
mod fec;
mod kcp;
mod settings;

pub(crate) use adit_kcp::Counters;
pub use adit_kcp::Counts as KcpCounts;
pub(crate) use carrier_control::{CarrierControl, CarrierUpdate};
pub(crate) use carrier_listener::open_carrier;
pub use fec::FecHop;
pub use kcp::KcpCarrier;
pub use settings::CarrierError;
