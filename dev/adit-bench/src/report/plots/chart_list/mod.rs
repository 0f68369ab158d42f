//! The charts of the documents: the message of each, and where its figures are.

mod chart_spec;
mod ciphers;
mod connections;
mod fleet;
mod kcp;
mod proxies;

use crate::suite::Suite;
pub(super) use chart_spec::{BarSource, ChartSpec, GroupSource};

/// Returns the charts of a suite.
pub(super) fn charts_of(suite: Suite) -> impl Iterator<Item = &'static ChartSpec> {
    let all = [
        proxies::CHARTS,
        connections::CHARTS,
        ciphers::CHARTS,
        kcp::CHARTS,
        fleet::CHARTS,
    ];
    let all = all.into_iter().flatten();
    all.filter(move |plot| plot.suite == suite)
}
