//! Turns: in each round everybody is measured once, and in each round another one is the first.

use std::cell::RefCell;
use std::net::SocketAddr;

use anyhow::Result;

use crate::args::Settings;
use crate::figure::{Figures, Metric, short};
use crate::journal::{Failure, Journal, Sample};
use crate::peers::Peer;
use crate::suite::Suite;
use crate::topology::{Rig, Topology};

/// Who measures nothing in between: what the load itself can do here.
pub(crate) const NO_RELAY: &str = "no relay";

/// A run: who takes part, and what came of it.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) settings: Settings,
    pub(crate) peers: Vec<Peer>,
    /// Whether system calls can be counted.
    pub(crate) strace: bool,
    pub(crate) journal: Journal,
}

/// Whether the load without a relay is measured beside the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    With,
    Without,
}

/// One measurement of one implementation.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// None: nothing in between.
    peer: Option<&'a Peer>,
    topology: Topology,
    pub(crate) settings: &'a Settings,
    /// Whether this is the round in which system calls are counted.
    pub(crate) counts_calls: bool,
    commands: RefCell<Vec<String>>,
}

/// The figures of a turn, by case.
pub(crate) type Cases = Vec<(String, Figures)>;

impl Turn<'_> {
    /// Starts the processes that lead to `origin`.
    pub(crate) fn start(&self, origin: SocketAddr) -> Result<Rig> {
        let Some(peer) = self.peer else {
            return Ok(Rig::straight(origin));
        };
        let rig = Rig::start(peer, self.topology, origin)?;
        let lines = rig
            .members()
            .iter()
            .map(|member| member.running.shown().to_owned());
        self.commands.borrow_mut().extend(lines);
        Ok(rig)
    }
}

impl Bench {
    /// Takes the turns of all rounds. What goes wrong is noted, and the others go on.
    pub(crate) fn alternate(
        &mut self,
        suite: Suite,
        case: &str,
        topology: Topology,
        baseline: Baseline,
        measure: impl Fn(&Turn<'_>) -> Result<Cases>,
    ) {
        let Self {
            settings,
            peers,
            strace,
            journal,
        } = self;
        let mut everyone: Vec<Option<&Peer>> = peers
            .iter()
            .filter(|peer| topology.suits(peer))
            .map(Some)
            .collect();
        if everyone.is_empty() {
            eprintln!("{suite}: {case}: nobody here can do it");
            return;
        }
        if baseline == Baseline::With {
            everyone.push(None);
        }
        for round in 1..=settings.rounds {
            for &peer in &everyone {
                let who = peer.map_or(NO_RELAY, Peer::name);
                let turn = Turn {
                    peer,
                    topology,
                    settings,
                    counts_calls: *strace && round == 1,
                    commands: RefCell::default(),
                };
                let place = format!("{suite}: round {round}/{}: {who}", settings.rounds);
                match measure(&turn) {
                    Ok(cases) => {
                        for (case, figures) in cases {
                            eprintln!("{place}: {case}: {}", headline(suite, &figures));
                            let who = who.to_owned();
                            journal.samples.push(Sample {
                                suite,
                                case,
                                who,
                                round,
                                figures,
                            });
                        }
                    }
                    Err(why) => {
                        let why = format!("{why:#}");
                        eprintln!("{place}: {case}: FAILED: {why}");
                        let (case, who) = (case.to_owned(), who.to_owned());
                        journal.failures.push(Failure {
                            suite,
                            case,
                            who,
                            why,
                        });
                    }
                }
                journal.note(suite, topology, who, turn.commands.into_inner());
            }
            everyone.rotate_left(1);
        }
    }
}

/// The figures that matter most, for the line of progress.
fn headline(suite: Suite, figures: &Figures) -> String {
    let matters = |metric: &Metric| metric.quantity == suite.chart() || metric.part.is_empty();
    let shown = figures.iter().filter(|(metric, _)| matters(metric));
    shown
        .map(|(metric, value)| format!("{} {metric}", short(*value)))
        .collect::<Vec<_>>()
        .join("; ")
}
