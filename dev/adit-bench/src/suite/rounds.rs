//! Turns: in each round everybody is measured once, and in each round another one is the first.

use std::cell::RefCell;
use std::net::SocketAddr;

use anyhow::Result;

use crate::args::{BenchSettings, LoadAmounts};
use crate::figures::Figures;
use crate::peers::InstalledPeer;
use crate::sample_log::SampleLog;
use crate::suite::Suite;
use crate::topology::{ProcessRig, Topology};

/// Who measures nothing in between: what the load itself can do here.
pub(crate) const NO_RELAY: &str = "no relay";

/// A run: who takes part, and what came of it.
#[derive(Debug)]
pub(crate) struct BenchRun {
    pub(crate) settings: BenchSettings,
    pub(crate) peers: Vec<InstalledPeer>,
    /// Whether system calls can be counted.
    pub(crate) counts_calls: bool,
    pub(crate) journal: SampleLog,
}

/// What everybody is measured at, in turn.
pub(crate) struct RoundSpec<'a> {
    suite: Suite,
    case: &'a str,
    topology: Topology,
    among: &'a dyn Fn(&InstalledPeer) -> bool,
    /// Whether the load without a relay is measured beside the others.
    baseline: bool,
    counts_calls: bool,
    threads: &'a [Option<u32>],
}

impl<'a> RoundSpec<'a> {
    /// All who can stand like this; nothing is measured beside them, system calls are counted.
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

    /// Only those of them.
    pub(crate) const fn among(mut self, among: &'a dyn Fn(&InstalledPeer) -> bool) -> Self {
        self.among = among;
        self
    }

    /// Beside the load without a relay.
    pub(crate) const fn with_baseline(mut self) -> Self {
        self.baseline = true;
        self
    }

    /// System calls are not counted.
    pub(crate) const fn without_syscalls(mut self) -> Self {
        self.counts_calls = false;
        self
    }

    /// Each with each of these numbers of threads; `None` leaves it to the program.
    pub(crate) const fn on_threads(mut self, threads: &'a [Option<u32>]) -> Self {
        self.threads = threads;
        self
    }
}

/// Who is measured.
#[derive(Debug, Clone, Copy)]
struct RoundEntrant<'a> {
    /// None: nothing in between.
    peer: Option<&'a InstalledPeer>,
    threads: Option<u32>,
}

impl RoundEntrant<'_> {
    /// As in tables.
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
    /// Whether system calls are counted in this turn.
    pub(crate) counts_calls: bool,
    commands: RefCell<Vec<String>>,
}

/// The figures of a turn, by case.
pub(crate) type CaseFigures = Vec<(String, Figures)>;

impl RoundTurn<'_> {
    /// How much this one is asked to carry.
    pub(crate) fn amounts(&self) -> LoadAmounts {
        let slower = self.entrant.peer.map_or(1, InstalledPeer::transfer_divisor);
        self.settings.amounts().divided_by(slower)
    }

    /// Who is measured; none for the load alone.
    pub(crate) const fn peer(&self) -> Option<&InstalledPeer> {
        self.entrant.peer
    }

    /// Keeps how something was started beside the processes of the rig.
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
    /// Takes the turns of all rounds. What goes wrong is noted, and the others go on.
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
            eprintln!("{suite}: {case}: nobody here can do it");
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
