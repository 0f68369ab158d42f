//! The management API of `adit run --admin`, and what it does to a server that runs.

mod door;
mod told;
mod users;
mod world;
