//! The costs of a process with something and of the same process without it, in turn: what both share, such as the
//! speed of the machine, cancels.

use anyhow::{Context, Result};

use super::Suite;
use crate::args::LoadAmounts;
use crate::figures::{
    CPU_PER_GIB, ChangeSpread, PERCENT, PERCENT_MARGIN, RoundSpread, whole_figure,
};
use crate::load::LoadDirection;
use crate::sample_log::SampleLog;

/// The costs of pairs of turns, of several starts: two processes of one program differ by the places of their memory, by
/// 3 % or more.
#[derive(Debug, Default)]
pub(super) struct TurnCosts {
    starts: Vec<StartCosts>,
}

/// The costs of the turns of one start.
#[derive(Debug, Default)]
struct StartCosts {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl StartCosts {
    /// Returns how many times as much the one with costs, of each pair.
    fn quotients(&self) -> impl Iterator<Item = f64> {
        let pairs = self.with.iter().zip(&self.without);
        pairs.map(|(with, without)| with / without)
    }

    /// Returns the median of all pairs.
    fn quotient(&self) -> Option<f64> {
        RoundSpread::from_values(self.quotients()).map(|spread| spread.median)
    }
}

impl TurnCosts {
    /// Measures pairs of turns of one start: `cost` takes whether the turn is of the one with, and returns its cost. The
    /// first of a pair alternates: the second one would always find a warmer machine.
    pub(super) fn measure(
        &mut self,
        pairs: u32,
        mut cost: impl FnMut(bool) -> Result<f64>,
    ) -> Result<()> {
        let mut start = StartCosts::default();
        for round in 1..=pairs {
            for has_it in pair_in_turn(round) {
                let own = cost(has_it)?;
                match has_it {
                    true => start.with.push(own),
                    false => start.without.push(own),
                }
            }
        }
        self.starts.push(start);
        Ok(())
    }

    /// Returns the median costs with and without.
    pub(super) fn medians(&self) -> Result<(f64, f64)> {
        let median = |of: fn(&StartCosts) -> &Vec<f64>| {
            let costs = self.starts.iter().flat_map(of).copied();
            RoundSpread::from_values(costs).context("no turn")
        };
        let with = median(|start| &start.with)?.median;
        Ok((with, median(|start| &start.without)?.median))
    }

    /// Returns the added cost of one process over another. Each start counts once: its pairs have the places of memory in
    /// common.
    pub(super) fn added(&self) -> Result<ChangeSpread> {
        change_of(self.starts.iter().filter_map(StartCosts::quotient))
    }

    /// Returns the added cost where the places of memory do not matter: within one process, or of two that swap roles. All
    /// pairs count.
    fn added_within(&self) -> Result<ChangeSpread> {
        change_of(self.starts.iter().flat_map(StartCosts::quotients))
    }
}

fn change_of(quotients: impl Iterator<Item = f64>) -> Result<ChangeSpread> {
    let pairs = quotients.map(|quotient| (1.0, quotient));
    ChangeSpread::from_pairs(pairs).context("no pair of turns")
}

/// The costs of transfers with something and without it in each direction, through one process or two that swap roles.
#[derive(Debug)]
pub(super) struct DirectionCosts([(LoadDirection, TurnCosts); 2]);

impl Default for DirectionCosts {
    fn default() -> Self {
        Self(LoadDirection::BOTH.map(|direction| (direction, TurnCosts::default())))
    }
}

impl DirectionCosts {
    /// Measures each of the starts with `measure_start`.
    pub(super) fn of_starts(
        starts: u32,
        mut measure_start: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<Self> {
        let mut costs = Self::default();
        for _ in 0..starts {
            measure_start(&mut costs)?;
        }
        Ok(costs)
    }

    /// Measures pairs of transfers of one start in each direction, after a warm-up: `transfer` takes whether the turn is of
    /// the one with, the direction and a number of bytes, and returns the CPU seconds per GiB.
    pub(super) fn measure_pairs(
        &mut self,
        pairs: u32,
        amounts: LoadAmounts,
        mut transfer: impl FnMut(bool, LoadDirection, u64) -> Result<f64>,
    ) -> Result<()> {
        for (direction, costs) in &mut self.0 {
            for has_it in [true, false] {
                transfer(has_it, *direction, amounts.warm_up).context("warm-up")?;
            }
            costs.measure(pairs, |has_it| transfer(has_it, *direction, amounts.bytes))?;
        }
        Ok(())
    }

    /// Measures pairs of one start in each direction, after a warm-up: `measure` takes the direction and a number of bytes,
    /// and returns the CPU seconds per GiB with and without.
    pub(super) fn measure_joint(
        &mut self,
        pairs: u32,
        amounts: LoadAmounts,
        mut measure: impl FnMut(LoadDirection, u64) -> Result<(f64, f64)>,
    ) -> Result<()> {
        for (direction, costs) in &mut self.0 {
            measure(*direction, amounts.warm_up).context("warm-up")?;
            let mut start = StartCosts::default();
            for _ in 0..pairs {
                let (with, without) = measure(*direction, amounts.bytes)?;
                start.with.push(with);
                start.without.push(without);
            }
            costs.starts.push(start);
        }
        Ok(())
    }
}

/// Records the costs of all starts; `names` are of the one without and of the one with.
pub(super) fn record_directions(
    journal: &mut SampleLog,
    suite: Suite,
    case: &str,
    names: [&str; 2],
    outcome: Result<DirectionCosts>,
) {
    let [without, with] = names;
    let directions = match outcome {
        Ok(DirectionCosts(directions)) => directions,
        Err(why) => return journal.record_outcome(suite, case, with, 1, Err(why)),
    };
    for (direction, costs) in directions {
        let case = format!("{case}, {direction}");
        let figures = costs.medians().map(|(with, without)| {
            [without, with].map(|cost| vec![whole_figure(CPU_PER_GIB, cost)])
        });
        let figures = figures.and_then(|[without, mut with]| {
            let added = costs.added_within()?;
            with.push(whole_figure(PERCENT, added.median));
            with.push(whole_figure(PERCENT_MARGIN, added.margin));
            Ok([without, with])
        });
        match figures {
            Ok([plain, figures]) => {
                journal.record_outcome(suite, &case, without, 1, Ok(plain));
                journal.record_outcome(suite, &case, with, 1, Ok(figures));
            }
            Err(why) => journal.record_outcome(suite, &case, with, 1, Err(why)),
        }
    }
}

/// Returns without and with, in the order of this round.
pub(super) const fn pair_in_turn(round: u32) -> [bool; 2] {
    let is_even = round.is_multiple_of(2);
    [is_even, !is_even]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_pair_alternates() {
        let mut order = Vec::new();
        let mut costs = TurnCosts::default();
        let outcome = costs.measure(3, |has_it| {
            order.push(has_it);
            Ok(1.0)
        });
        outcome.unwrap();
        assert_eq!(order, [false, true, true, false, false, true]);
    }

    #[test]
    fn a_machine_that_becomes_slower_does_not_matter() {
        let (mut costs, mut speed) = (TurnCosts::default(), 1.0);
        for _ in 0..10 {
            let outcome = costs.measure(10, |has_it| {
                speed *= 1.001;
                Ok(if has_it { 1.02 * speed } else { speed })
            });
            outcome.unwrap();
        }
        let added = costs.added().unwrap();
        assert!((added.median - 2.0).abs() < 0.01, "{added:?}");
        assert!(added.margin < 0.1, "{added:?}");
    }

    /// Many pairs of few starts would hide how much starts differ.
    #[test]
    fn each_start_counts_once() {
        let mut costs = TurnCosts::default();
        for (pairs, factor) in [(100, 1.3), (1, 1.1), (2, 1.2)] {
            let outcome = costs.measure(pairs, |has_it| Ok(if has_it { factor } else { 1.0 }));
            outcome.unwrap();
        }
        let added = costs.added().unwrap();
        assert!((added.median - 20.0).abs() < 0.01, "{added:?}");
        assert!(added.margin > 10.0, "{added:?}");
    }

    #[test]
    fn within_one_process_each_pair_counts() {
        let mut costs = TurnCosts::default();
        for (pairs, factor) in [(3, 1.1), (1, 1.3), (1, 1.3)] {
            let outcome = costs.measure(pairs, |has_it| Ok(if has_it { factor } else { 1.0 }));
            outcome.unwrap();
        }
        assert!((costs.added_within().unwrap().median - 10.0).abs() < 0.01);
        assert!((costs.added().unwrap().median - 30.0).abs() < 0.01);
    }

    #[test]
    fn without_turns_there_is_no_figure() {
        assert!(TurnCosts::default().added().is_err());
        assert!(TurnCosts::default().added_within().is_err());
        assert!(TurnCosts::default().medians().is_err());
    }
}
