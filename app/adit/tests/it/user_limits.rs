//! Limits of users in every protocol that knows users, with clients of other programs, and their store.

mod kills;
mod live;
mod quotas;
pub(crate) mod world;
