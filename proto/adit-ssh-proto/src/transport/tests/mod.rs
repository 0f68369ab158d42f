//! Both sides of the transport in memory, with a hand-made peer where one side has to misbehave.

mod anything;
mod computation;
mod life;
mod link;
mod matrix;
mod rekey;
mod ssh_client;
mod ssh_hostile;
mod ssh_mitm;

use link::{End, Link, clear, data, host_key, pair, pair_in, settings};
