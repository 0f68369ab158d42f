//! Management of running servers, and clients that follow a subscription.
//!
//! There are five independent parts:
//!
//! * [`manager`]: the datagram protocol of ss-manager, with one port for each server;
//! * [`api`]: the server management API v1 over HTTP, `/metrics`, and subscriptions for users;
//! * [`subscription`]: the client of a subscription, which fetches, stores and refreshes it;
//! * [`rule_sets`]: the lists of rules, which are downloaded and refreshed;
//! * [`selection_file`]: the file of the selections in manual groups.
//!
//! All of them control a running [`Engine`](adit_engine::Engine); none of them carries traffic.

#![forbid(unsafe_code)]

pub mod api;
mod listen_address;
mod local_listener;
pub mod manager;
pub mod rule_sets;
pub mod selection_file;
pub mod subscription;
#[cfg(unix)]
mod unix_socket;
mod untrusted_text;
