//! The parts of a table of keys: keys, the types of their values, rows. This module names no scheme.

mod choice;
mod param;
mod value;

pub use choice::{PluginMode, Prefer, Private, RejectPolicy, Restart, UdpWay};
pub use param::{EndpointRole, EndpointRoles, Param, Setting};
pub(crate) use param::{Key, both, hop, joined, listener};
pub(crate) use value::{
    Count, FilePath, Seconds, SecretValue, Tristate, Typed, Wait, Whole, words,
};
