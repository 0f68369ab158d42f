//! Management of running servers, and clients that follow a subscription.
//!
//! There are nine independent parts:
//!
//! * [`manager`]: the datagram protocol of ss-manager, with one port for each server;
//! * [`api`]: the server management API v1 over HTTP, `/metrics`, and subscriptions for users;
//! * [`subscription`]: the client of a subscription, which fetches, stores and refreshes it;
//! * [`rule_sets`]: the lists of rules, which are downloaded and refreshed;
//! * [`selection_file`]: the file of the selections in manual groups;
//! * [`user_store`]: the file of the limits and the usage of users;
//! * `otlp`, with the feature of this name: the export of metrics and traces to a collector.
//! * [`webhook`]: receivers of events;
//! * `audit_log`: the record of changes through the API.
//!
//! Without the feature `management`, only [`rule_sets`], [`selection_file`] and [`user_record`] are built, and lists cannot be downloaded.
//! [`outgoing_address`] finds the address that clients connect to; [`user_record`] is the serialized form of a user.
//!
//! All of them control a running [`Engine`](adit_engine::Engine); none of them carries traffic.

#![forbid(unsafe_code)]

#[cfg(feature = "management")]
pub mod api;
#[cfg(not(feature = "management"))]
#[path = "api_left_out.rs"]
pub mod api;
#[cfg(feature = "management")]
mod api_address;
#[cfg(feature = "management")]
pub mod audit_log;
#[cfg(feature = "management")]
mod local_socket;
#[cfg(feature = "management")]
pub mod manager;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod outgoing_address;
pub mod rule_sets;
pub mod selection_file;
#[cfg(feature = "management")]
pub mod subscription;
#[cfg(not(feature = "management"))]
#[path = "subscription_left_out.rs"]
pub mod subscription;
#[cfg(all(unix, feature = "management"))]
mod unix_socket;
#[cfg(feature = "management")]
mod untrusted_text;
pub mod user_record;
#[cfg(feature = "management")]
pub mod user_store;
#[cfg(not(feature = "management"))]
#[path = "user_store_left_out.rs"]
pub mod user_store;
#[cfg(feature = "management")]
pub mod webhook;
#[cfg(not(feature = "management"))]
#[path = "webhook_left_out.rs"]
pub mod webhook;
