//! The replay filter that the nodes of a realm share, at the listeners of an engine.

use std::future::ready;
use std::sync::Arc;

use adit_config::OutagePolicy;
use adit_engine::{ClaimAnswer, ClaimKind, Engine, SharedClaim, SharedReplayFilter};
use adit_fleet::replay::{ClaimBatcher, ReplayOutage, ReplayStats};
use adit_fleet::{RecordCipher, Store};

use crate::metrics::{Metric, MetricKind, to_f64};

/// Checks the requests to an engine's listeners under keys that other nodes have. `outage` is for the time in which the
/// store does not answer. The result has the figures for metrics; the engine keeps it alive.
pub(crate) fn share_replays(
    engine: &Engine,
    store: Arc<dyn Store>,
    cipher: Arc<RecordCipher>,
    outage: OutagePolicy,
) -> Arc<ClaimBatcher> {
    let outage = match outage {
        OutagePolicy::Open => ReplayOutage::Open,
        OutagePolicy::Closed => ReplayOutage::Closed,
    };
    let batcher = Arc::new(ClaimBatcher::start(store, cipher, outage));
    engine.share_replays(Some(Arc::new(RealmFilter(batcher.clone()))));
    batcher
}

/// Returns the metrics of the checks.
pub(crate) fn metrics(stats: &ReplayStats) -> [Metric; 2] {
    let results = stats.by_result();
    let results =
        results.map(|(result, count)| (vec![("result", result.to_owned())], to_f64(count)));
    [
        Metric {
            name: "adit_fleet_replay_checks_total",
            kind: MetricKind::Counter,
            help: "Requests that other nodes of the fleet were asked about, to refuse replays.",
            samples: results.into(),
        },
        Metric {
            name: "adit_fleet_replay_degraded_seconds_total",
            kind: MetricKind::Counter,
            help: "Time in which the store did not answer whether requests were replays.",
            samples: vec![(Vec::new(), stats.degraded.as_secs_f64())],
        },
    ]
}

/// The filter of a realm.
struct RealmFilter(Arc<ClaimBatcher>);

impl SharedReplayFilter for RealmFilter {
    fn claim(&self, claim: SharedClaim) -> ClaimAnswer {
        let SharedClaim { kind, name, stamp } = claim;
        match (kind, stamp) {
            (ClaimKind::SessionStart, Some(stamp)) => Box::pin(self.0.claim_session(&name, stamp)),
            (ClaimKind::SessionPacket, Some(stamp)) => {
                self.0.renew_session(&name, stamp);
                Box::pin(ready(true))
            }
            (ClaimKind::Salt, stamp) | (_, stamp @ None) => {
                Box::pin(self.0.claim_salt(&name, stamp))
            }
        }
    }
}
