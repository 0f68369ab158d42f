//! The management API of `adit run --admin`, and its effect on a running server.

mod door;
mod status;
mod told;
mod users;
pub(crate) mod world;
