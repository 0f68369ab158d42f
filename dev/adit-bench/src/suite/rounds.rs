//! Rounds: in each one, every implementation is measured once, starting with a different one.

use std::cell::RefCell;
use std::net::SocketAddr;

use anyhow::Result;

use crate::args::{BenchSettings, LoadAmounts};
use crate::figures::Figures;
use crate::peers::InstalledPeer;
use crate::sample_log::SampleLog;
use crate::suite::Suite;
use crate::topology::{ProcessRig, Topology};

/// Name of the measurement without a relay: what the load alone can do.
pub(crate) const NO_RELAY: &str = "no relay";

/// A run: the implementations, and the results.
#[derive(Debug)]
pub(crate) struct BenchRun {
    pub(crate) settings: BenchSettings,
    pub(crate) peers: Vec<InstalledPeer>,
    /// True if system calls can be counted.
    pub(crate) counts_calls: bool,
    pub(crate) journal: SampleLog,
}

/// The measurement that all implementations take, in turn.
pub(crate) struct RoundSpec<'a> {
    suite: Suite,
    case: &'a str,
    topology: Topology,
    among: &'a dyn Fn(&InstalledPeer) -> bool,
    /// True if the load without a relay is measured too.
    baseline: bool,
    counts_calls: bool,
    threads: &'a [Option<u32>],
}

impl<'a> RoundSpec<'a> {
    /// Selects all implementations that support the topology, without a baseline, counting system
    /// calls.
    pub(crate) fn new(suite: Suite, case: &'a str, topology: Topology) -> Self {
        Self {
            suite,
            case,
            topology,
            among: &|_| true,
            baseline: false,
            counts_calls: true,
            threads: &[None],
        }
    }

    /// Restricts the implementations.
    pub(crate) const fn among(mut self, among: &'a dyn Fn(&InstalledPeer) -> bool) -> Self {
        self.among = among;
        self
    }

    /// Adds the load without a relay.
    pub(crate) const fn with_baseline(mut self) -> Self {
        self.baseline = true;
        self
    }

    /// Turns the counting of system calls off.
    pub(crate) const fn without_syscalls(mut self) -> Self {
        self.counts_calls = false;
        self
    }

    /// Measures each with each of these numbers of threads; `None` is the program's default.
    pub(crate) const fn on_threads(mut self, threads: &'a [Option<u32>]) -> Self {
        self.threads = threads;
        self
    }
}

/// A measured implementation.
#[derive(Debug, Clone, Copy)]
struct RoundEntrant<'a> {
    /// `None` means no relay.
    peer: Option<&'a InstalledPeer>,
    threads: Option<u32>,
}

impl RoundEntrant<'_> {
    /// Returns the name in tables.
    fn name(&self) -> String {
        let name = self.peer.map_or(NO_RELAY, InstalledPeer::name);
        match self.threads {
            None => name.to_owned(),
            Some(1) => format!("{name}, 1 worker"),
            Some(count) => format!("{name}, {count} workers"),
        }
    }
}

/// One measurement of one implementation.
#[derive(Debug)]
pub(crate) struct RoundTurn<'a> {
    entrant: RoundEntrant<'a>,
    topology: Topology,
    pub(crate) settings: &'a BenchSettings,
    /// True if system calls are counted in this turn.
    pub(crate) counts_calls: bool,
    commands: RefCell<Vec<String>>,
}

/// The figures of a turn, by case.
pub(crate) type CaseFigures = Vec<(String, Figures)>;

impl RoundTurn<'_> {
    /// Returns the amounts of data for this implementation.
    pub(crate) fn amounts(&self) -> LoadAmounts {
        let slower = self.entrant.peer.map_or(1, InstalledPeer::transfer_divisor);
        self.settings.amounts().divided_by(slower)
    }

    /// Returns the measured implementation; `None` for the load alone.
    pub(crate) const fn peer(&self) -> Option<&InstalledPeer> {
        self.entrant.peer
    }

    /// Records a command line in addition to those of the rig.
    pub(crate) fn note_command(&self, command: String) {
        let mut commands = self.commands.borrow_mut();
        if !commands.contains(&command) {
            commands.push(command);
        }
    }

    /// Starts the processes that lead to `origin`.
    pub(crate) fn start_rig(&self, origin: SocketAddr) -> Result<ProcessRig> {
        let Some(peer) = self.entrant.peer else {
            return Ok(ProcessRig::direct(origin));
        };
        let rig = ProcessRig::start(peer, self.topology, origin, self.entrant.threads)?;
        self.commands.borrow_mut().extend(rig.commands());
        Ok(rig)
    }
}

impl BenchRun {
    /// Runs all rounds. Failures are recorded, and the remaining measurements continue.
    pub(crate) fn run_rounds(
        &mut self,
        contest: &RoundSpec<'_>,
        measure: impl Fn(&RoundTurn<'_>) -> Result<CaseFigures>,
    ) {
        let Self {
            settings,
            peers,
            counts_calls,
            journal,
        } = self;
        let RoundSpec {
            suite,
            case,
            topology,
            ..
        } = *contest;
        let fits = |peer: &&InstalledPeer| topology.is_supported_by(peer) && (contest.among)(peer);
        let mut everyone: Vec<RoundEntrant<'_>> = peers
            .iter()
            .filter(fits)
            .flat_map(|peer| {
                contest.threads.iter().map(|&threads| RoundEntrant {
                    peer: Some(peer),
                    threads,
                })
            })
            .collect();
        if everyone.is_empty() {
            eprintln!("{suite}: {case}: no installed implementation supports it");
            return;
        }
        if contest.baseline {
            everyone.push(RoundEntrant {
                peer: None,
                threads: None,
            });
        }
        for round in 1..=settings.rounds() {
            for &entrant in &everyone {
                let who = entrant.name();
                let turn = RoundTurn {
                    entrant,
                    topology,
                    settings,
                    counts_calls: *counts_calls && contest.counts_calls,
                    commands: RefCell::default(),
                };
                match measure(&turn) {
                    Ok(cases) => {
                        for (case, figures) in cases {
                            journal.record_outcome(suite, &case, &who, round, Ok(figures));
                        }
                    }
                    Err(why) => journal.record_outcome(suite, case, &who, round, Err(why)),
                }
                journal.record_command(suite, topology, &who, turn.commands.into_inner());
            }
            everyone.rotate_left(1);
        }
    }
}
