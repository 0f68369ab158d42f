//! Nodes of a fleet with a real store server.

mod drain;
mod outages;
mod quotas;
mod replay;
mod subscription;
mod users;
mod webhooks;
mod world;
