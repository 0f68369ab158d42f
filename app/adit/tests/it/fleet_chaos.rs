//! A fleet under load whose nodes and store are killed, stopped, cut off and emptied at random: no user is lost, none is
//! let in wrongly, and no byte is counted twice.
//!
//! `ADIT_CHAOS_SECONDS` is the duration (60 by default), and `ADIT_CHAOS_SEED` decides what happens.

use std::env;
use std::time::Duration;

use adit_fleet_world::run_chaos;

use crate::setup::bin;

#[test]
fn users_and_counters_survive_everything() {
    let number =
        |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().expect(name));
    let (seconds, seed) = (
        number("ADIT_CHAOS_SECONDS", 60),
        number("ADIT_CHAOS_SEED", 1),
    );
    let report = run_chaos(&bin(), Duration::from_secs(seconds), seed).unwrap();
    assert_eq!(report.faults(), 0, "{report:?}");
    assert!(report.counted > 0 && report.checks > 0, "{report:?}");
    eprintln!("{report:?}");
}
