//! The parts of the crate `ssh-key` that the examples of russh use.

pub use russh::keys::ssh_key::*;
