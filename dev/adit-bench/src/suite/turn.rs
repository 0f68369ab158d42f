//! Rounds: in each one, every implementation is measured once, starting with a different one.

use std::cell::RefCell;
use std::net::SocketAddr;

use anyhow::Result;

use crate::args::{Amounts, Settings};
use crate::figure::Figures;
use crate::journal::Journal;
use crate::peers::Peer;
use crate::suite::Suite;
use crate::topology::{Rig, Topology};

/// Name of the measurement without a relay: what the load alone can do.
pub(crate) const NO_RELAY: &str = "no relay";

/// A run: the implementations, and the results.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) settings: Settings,
    pub(crate) peers: Vec<Peer>,
    /// True if system calls can be counted.
    pub(crate) counts_calls: bool,
    pub(crate) journal: Journal,
}

/// The measurement that all implementations take, in turn.
pub(crate) struct Contest<'a> {
    suite: Suite,
    case: &'a str,
    topology: Topology,
    among: &'a dyn Fn(&Peer) -> bool,
    /// True if the load without a relay is measured too.
    baseline: bool,
    counts_calls: bool,
    threads: &'a [Option<u32>],
}

impl<'a> Contest<'a> {
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
    pub(crate) const fn among(mut self, among: &'a dyn Fn(&Peer) -> bool) -> Self {
        self.among = among;
        self
    }

    /// Adds the load without a relay.
    pub(crate) const fn with_baseline(mut self) -> Self {
        self.baseline = true;
        self
    }

    /// Turns the counting of system calls off.
    pub(crate) const fn uncounted(mut self) -> Self {
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
struct Entrant<'a> {
    /// `None` means no relay.
    peer: Option<&'a Peer>,
    threads: Option<u32>,
}

impl Entrant<'_> {
    /// Returns the name in tables.
    fn name(&self) -> String {
        let name = self.peer.map_or(NO_RELAY, Peer::name);
        match self.threads {
            None => name.to_owned(),
            Some(1) => format!("{name}, 1 worker"),
            Some(count) => format!("{name}, {count} workers"),
        }
    }
}

/// One measurement of one implementation.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    entrant: Entrant<'a>,
    topology: Topology,
    pub(crate) settings: &'a Settings,
    /// True if system calls are counted in this turn.
    pub(crate) counts_calls: bool,
    commands: RefCell<Vec<String>>,
}

/// The figures of a turn, by case.
pub(crate) type Cases = Vec<(String, Figures)>;

impl Turn<'_> {
    /// Returns the amounts of data for this implementation.
    pub(crate) fn amounts(&self) -> Amounts {
        let slower = self.entrant.peer.map_or(1, Peer::slower);
        self.settings.amounts().divided(slower)
    }

    /// Returns the measured implementation; `None` for the load alone.
    pub(crate) const fn peer(&self) -> Option<&Peer> {
        self.entrant.peer
    }

    /// Records a command line in addition to those of the rig.
    pub(crate) fn note(&self, command: String) {
        let mut commands = self.commands.borrow_mut();
        if !commands.contains(&command) {
            commands.push(command);
        }
    }

    /// Starts the processes that lead to `origin`.
    pub(crate) fn start(&self, origin: SocketAddr) -> Result<Rig> {
        let Some(peer) = self.entrant.peer else {
            return Ok(Rig::straight(origin));
        };
        let rig = Rig::start(peer, self.topology, origin, self.entrant.threads)?;
        self.commands.borrow_mut().extend(rig.commands());
        Ok(rig)
    }
}

impl Bench {
    /// Runs all rounds. Failures are recorded, and the remaining measurements continue.
    pub(crate) fn alternate(
        &mut self,
        contest: &Contest<'_>,
        measure: impl Fn(&Turn<'_>) -> Result<Cases>,
    ) {
        let Self {
            settings,
            peers,
            counts_calls,
            journal,
        } = self;
        let Contest {
            suite,
            case,
            topology,
            ..
        } = *contest;
        let fits = |peer: &&Peer| topology.suits(peer) && (contest.among)(peer);
        let mut everyone: Vec<Entrant<'_>> = peers
            .iter()
            .filter(fits)
            .flat_map(|peer| {
                contest.threads.iter().map(|&threads| Entrant {
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
            everyone.push(Entrant {
                peer: None,
                threads: None,
            });
        }
        for round in 1..=settings.rounds() {
            for &entrant in &everyone {
                let who = entrant.name();
                let turn = Turn {
                    entrant,
                    topology,
                    settings,
                    counts_calls: *counts_calls && contest.counts_calls,
                    commands: RefCell::default(),
                };
                match measure(&turn) {
                    Ok(cases) => {
                        for (case, figures) in cases {
                            journal.keep(suite, &case, &who, round, Ok(figures));
                        }
                    }
                    Err(why) => journal.keep(suite, case, &who, round, Err(why)),
                }
                journal.note(suite, topology, &who, turn.commands.into_inner());
            }
            everyone.rotate_left(1);
        }
    }
}
