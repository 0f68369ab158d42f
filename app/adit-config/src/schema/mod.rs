//! What a table of keys is made of: keys, the types of their values, rows. No scheme is named here.

mod choice;
mod param;
mod value;

pub use choice::{PluginMode, Prefer, Private, RejectPolicy, Restart, UdpWay};
pub use param::{EndpointRole, EndpointRoles, Param, Setting};
pub(crate) use param::{Key, both, hop, joined, listener};
pub(crate) use value::{
    Count, FilePath, Seconds, SecretValue, Tristate, Typed, Wait, Whole, words,
};
