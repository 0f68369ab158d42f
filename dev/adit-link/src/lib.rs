//! A user-space link between two network namespaces, with limited rate, delay and loss. Programs
//! under test see a real interface, regardless of the queueing disciplines the kernel was built
//! with.
//!
//! ```text
//!  near 10.77.0.1 ── TUN ──▶ line: queue, rate ▶ loss ▶ delay ──▶ TUN ── 10.77.0.2 far
//!                        ◀────────────── another ──────────────
//! ```
//!
//! [`Link`] creates both namespaces and moves packets between them until it is dropped; nothing of
//! them remains then, however the process ends. [`Line`] is one direction, in virtual time, and a
//! [`Path`] describes it. Programs started inside [`Namespace::enter`] stay in that namespace. Both
//! need root privileges, which [`as_root`] obtains for a test.

#[cfg(target_os = "linux")]
mod address;
mod line;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod offload;
mod path;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod tun;

pub use line::{Line, Tally};
#[cfg(target_os = "linux")]
pub use link::{Counts, FAR, Link, NEAR};
#[cfg(target_os = "linux")]
pub use namespace::Namespace;
pub use path::Path;
#[cfg(target_os = "linux")]
pub use rights::as_root;
