//! A fleet in virtual time: nodes with the leases, batches and feed of adit-fleet around its store in memory, with
//! messages that take time, are lost or find no recipient, and processes that are killed.
//!
//! ```text
//! flows ──▶ SimNode (leases, UsageBatches, Feed) ──request──▶ StorePort (MemoryStore)
//!   │            ▲                                  │ delay, loss, partition
//!   ▼            └───────────────reply──────────────┘
//! Ledger: what was really moved ──▶ Outcome
//! ```
//!
//! A simulation has one thread and one random generator: the same [`Scenario`] has the same [`Outcome`].

mod event_queue;
mod fleet;
mod ledger;
mod node_table;
mod outcome;
mod scenario;
mod sim_node;
mod store_port;
#[cfg(test)]
mod tests;
mod user_table;

use anyhow::Result;

pub(crate) use outcome::Outcome;
pub(crate) use scenario::{Faults, Flow, MILLISECOND, SECOND, Scenario};

/// Runs a scenario to its end.
pub(crate) fn simulate(scenario: &Scenario) -> Result<Outcome> {
    fleet::Fleet::run(scenario)
}
