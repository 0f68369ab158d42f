//! A user-space link between two network namespaces, with limited rate, delay and loss. Programs
//! under test see a real interface, regardless of the queueing disciplines the kernel was built
//! with.
//!
//! ```text
//!  near 10.77.0.1 ── TUN ──▶ line: queue, rate ▶ loss ▶ delay ──▶ TUN ── 10.77.0.2 far
//!                        ◀────────────── another ──────────────
//! ```
//!
//! [`NamespaceLink`] creates both namespaces and moves packets between them until it is dropped; nothing of
//! them remains then, however the process ends. [`DelayLine`] is one direction, in virtual time, and a
//! [`LinkPath`] describes it. Programs started inside [`NetworkNamespace::run_inside`] stay in that namespace. Both
//! need root privileges, which [`run_as_root`] obtains for a test.

#[cfg(target_os = "linux")]
mod address_translation;
mod delay_line;
#[cfg(target_os = "linux")]
mod link;
mod link_path;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod offload;
#[cfg(target_os = "linux")]
mod root_rights;
mod split_mix;
#[cfg(target_os = "linux")]
mod tun;

pub use delay_line::{DelayLine, PacketCounts};
#[cfg(target_os = "linux")]
pub use link::{FAR, LinkCounts, NEAR, NamespaceLink};
pub use link_path::LinkPath;
#[cfg(target_os = "linux")]
pub use namespace::NetworkNamespace;
#[cfg(target_os = "linux")]
pub use root_rights::run_as_root;
pub use split_mix::SplitMix64;
