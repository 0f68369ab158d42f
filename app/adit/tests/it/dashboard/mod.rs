//! The live view of a running process: its sessions, counters and events, by the API and in the dashboard.

mod events;
mod sessions;
mod world;
