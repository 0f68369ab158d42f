//! The chart of a fleet: what the calls of nodes cost the store.

use super::chart_spec::{ChartSpec, cell_bars};
use crate::figures::BetterWhen;
use crate::suite::Suite;

const CALLS: &str = "calls of the store";

pub(super) const CHARTS: &[ChartSpec] = &[ChartSpec {
    suite: Suite::Fleet,
    name: "fleet",
    title: "Processor time of the store server per call of a node",
    detail: "adit's client, one call after the other",
    unit: "CPU µs per call",
    better: BetterWhen::Less,
    groups: &[
        cell_bars(
            "usage and quotas",
            "store CPU µs",
            &[
                ("adit, a batch of one user", CALLS, "a batch of 1 user"),
                (
                    "adit, each user of a batch of 1,000",
                    CALLS,
                    "a batch of 1,000 users, per user",
                ),
            ],
        ),
        cell_bars(
            "everything else",
            "store CPU µs",
            &[
                ("adit, a change of a user", CALLS, "a change of a user"),
                (
                    "adit, a question with one change",
                    CALLS,
                    "a question for changes with one change",
                ),
                ("adit, a heartbeat", CALLS, "a heartbeat"),
                ("adit, each salt of 64", CALLS, "a salt, 64 at once"),
            ],
        ),
    ],
}];
