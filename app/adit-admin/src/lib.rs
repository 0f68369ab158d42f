//! Servers managed while they run, and clients that follow a subscription.
//!
//! Three doors, each independent of the others:
//!
//! * [`manager`]: the datagram protocol of ss-manager, one port for each server;
//! * [`api`]: the server management API v1 over HTTP, `/metrics`, and subscriptions for users;
//! * [`subscription`]: the other end of a subscription: fetched, kept, renewed.
//!
//! All of them ask an [`Engine`](adit_engine::Engine) that runs; none of them carries traffic.

#![forbid(unsafe_code)]

pub mod api;
mod listen_address;
pub mod manager;
pub mod subscription;
#[cfg(unix)]
mod unix_socket;
mod untrusted_text;
