//! What brings bytes to a hop's server, or to a listener, where that is not TCP.
//!
//! ```text
//! KCP:  dialect ─▶ smux stream ─▶ one of a few sessions ─▶ UDP ─▶ session ─▶ stream ─▶ acceptor
//! FEC:  datagram ─▶ lane ─▶ UDP ─▶ lane ─▶ the listener's target
//! ```
//!
//! A hop's carrier is a connector that a dialect stands on ([`KcpCarrier`]); a listener's gives
//! streams to the same acceptors as TCP does. An end that speaks kcptun's ciphers finds out what is
//! different at the other, and does likewise where nobody asked for its own way.

mod fec;
mod kcp;
mod listen;
mod settings;

pub use fec::FecHop;
pub use kcp::KcpCarrier;
pub(crate) use listen::open;
pub use settings::SealError;
