//! The live view of a running process: its sessions, counters and events, by the API and in the dashboard.

mod access;
mod browser;
mod events;
mod fleet;
mod page;
mod sessions;
mod users;
mod world;
