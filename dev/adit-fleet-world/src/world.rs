//! The store, the operator and the nodes together.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet::{NodeStatus, PeriodLabel, UserTotal};
use adit_interop::store_server::StoreServer;
use adit_wire::{QuotaPeriod, UnixTime};
use anyhow::{Context, Result, ensure};

use crate::{FleetNode, NodeOptions, Operator, StoreProxy};

/// A fleet. Its processes end when it is dropped.
#[derive(Debug)]
pub struct FleetWorld {
    /// The nodes; dropped first, so that they do not report a lost store.
    pub nodes: Vec<FleetNode>,
    /// The operator.
    pub operator: Operator,
    /// The store server.
    pub store: StoreServer,
}

impl FleetWorld {
    /// Creates a realm in a store server, without nodes.
    pub fn new(store: StoreServer) -> Result<Self> {
        Ok(Self {
            nodes: Vec::new(),
            operator: Operator::create_realm(&store.url())?,
            store,
        })
    }

    /// Starts a node that reaches the store through a proxy.
    pub fn start_node_behind(
        &mut self,
        program: &Path,
        proxy: &StoreProxy,
        options: &NodeOptions,
    ) -> Result<()> {
        self.start_node(program, Some(&proxy.url()), options)
    }

    /// Starts a node that reaches the store at `url`; at its Unix socket for `None`.
    pub fn start_node(
        &mut self,
        program: &Path,
        url: Option<&str>,
        options: &NodeOptions,
    ) -> Result<()> {
        let name = format!("node-{}", self.nodes.len() + 1);
        let membership = self.operator.add_node(&name, url)?;
        let node = FleetNode::start(program, &membership, options.clone())?;
        self.nodes.push(node);
        Ok(())
    }

    /// Starts nodes of `program`.
    pub fn start_nodes(
        &mut self,
        program: &Path,
        count: usize,
        options: &NodeOptions,
    ) -> Result<()> {
        (0..count).try_for_each(|_| self.start_node(program, None, options))
    }

    /// Returns the reports of all living nodes.
    pub fn reports(&self) -> Result<Vec<NodeStatus>> {
        let nodes = self.operator.nodes()?.into_iter();
        Ok(nodes.filter_map(|node| node.status).collect())
    }

    /// Waits until `is_met` returns true.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut is_met: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<Duration> {
        let start = Instant::now();
        loop {
            match is_met(self) {
                Ok(true) => return Ok(start.elapsed()),
                outcome if start.elapsed() > limit => {
                    let why = outcome.err().map(|why| format!(": {why:#}"));
                    let why = why.unwrap_or_default();
                    ensure!(false, "not after {limit:?}: {what}{why}");
                }
                _ => sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Waits until all nodes that run have applied all changes.
    pub fn wait_for_tables(&mut self, limit: Duration) -> Result<Duration> {
        self.wait_until("all nodes have all changes", limit, |world| {
            let head = world.operator.call(|store| store.head())?;
            let up = world.nodes.iter().filter(|node| node.is_up()).count();
            let reports = world.reports()?;
            let current = reports.iter().filter(|report| report.change >= head.0);
            Ok(current.count() >= up)
        })
    }

    /// Returns what each user has used in all time.
    pub fn usage(&self) -> Result<Vec<UserTotal>> {
        let period = PeriodLabel::new(QuotaPeriod::Total, UnixTime(0));
        self.operator.usage(&period)
    }

    /// Returns the bytes that the store has counted of all users.
    pub fn counted(&self) -> Result<u64> {
        Ok(self.usage()?.iter().map(UserTotal::sum).sum())
    }

    /// Waits until the store has counted the same for three seconds, and returns it: all nodes have reported.
    pub fn settled_count(&mut self) -> Result<u64> {
        let (mut last, mut since) = (None, Instant::now());
        self.wait_until(
            "the nodes have reported their usage",
            Duration::from_secs(60),
            |world| {
                let now = Some(world.counted()?);
                if now != last {
                    (last, since) = (now, Instant::now());
                }
                Ok(since.elapsed() > Duration::from_secs(3))
            },
        )?;
        last.context("the store counts")
    }
}
