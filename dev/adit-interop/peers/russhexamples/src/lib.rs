//! What the examples of russh take from the crate `ssh-key`.

pub use russh::keys::ssh_key::*;
