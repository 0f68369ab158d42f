//! The costs of a process with something and of the same process without it, in turn: what both share, such as the
//! speed of the machine, cancels.

use anyhow::{Context, Result};

use super::Suite;
use crate::args::LoadAmounts;
use crate::figures::{CPU_PER_GIB, ChangeSpread, PERCENT, RoundSpread, whole_figure};
use crate::load::LoadDirection;
use crate::sample_log::SampleLog;

/// The costs of several pairs of turns.
#[derive(Debug, Default)]
pub(super) struct TurnCosts {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl TurnCosts {
    /// Measures pairs of turns: `cost` takes whether the turn is of the one with, and returns its cost. The first of a
    /// pair alternates: the second one would always find a warmer machine.
    pub(super) fn measure(
        &mut self,
        pairs: u32,
        mut cost: impl FnMut(bool) -> Result<f64>,
    ) -> Result<()> {
        for round in 1..=pairs {
            for has_it in pair_in_turn(round) {
                let own = cost(has_it)?;
                match has_it {
                    true => self.with.push(own),
                    false => self.without.push(own),
                }
            }
        }
        Ok(())
    }

    /// Returns the median costs with and without.
    pub(super) fn medians(&self) -> Result<(f64, f64)> {
        let median = |costs: &[f64]| RoundSpread::from_values(costs.iter().copied());
        let with = median(&self.with).context("no turn")?.median;
        Ok((with, median(&self.without).context("no turn")?.median))
    }

    /// Returns the added cost.
    pub(super) fn added(&self) -> Result<ChangeSpread> {
        let pairs = self.without.iter().copied().zip(self.with.iter().copied());
        ChangeSpread::from_pairs(pairs).context("no pair of turns")
    }
}

/// The costs of transfers in each direction.
pub(super) type DirectionCosts = [(LoadDirection, TurnCosts); 2];

/// Measures pairs of transfers in each direction, after a warm-up: `transfer` takes whether the turn is of the one with,
/// the direction and a number of bytes, and returns the CPU seconds per GiB.
pub(super) fn measure_directions(
    pairs: u32,
    amounts: LoadAmounts,
    mut transfer: impl FnMut(bool, LoadDirection, u64) -> Result<f64>,
) -> Result<DirectionCosts> {
    let mut directions = LoadDirection::BOTH.map(|direction| (direction, TurnCosts::default()));
    for (direction, costs) in &mut directions {
        for has_it in [true, false] {
            transfer(has_it, *direction, amounts.warm_up).context("warm-up")?;
        }
        costs.measure(pairs, |has_it| transfer(has_it, *direction, amounts.bytes))?;
    }
    Ok(directions)
}

/// Records the costs of a round; `names` are of the one without and of the one with.
pub(super) fn record_directions(
    journal: &mut SampleLog,
    suite: Suite,
    case: &str,
    names: [&str; 2],
    round: u32,
    outcome: Result<DirectionCosts>,
) {
    let [without, with] = names;
    let directions = match outcome {
        Ok(directions) => directions,
        Err(why) => return journal.record_outcome(suite, case, with, round, Err(why)),
    };
    for (direction, costs) in directions {
        let case = format!("{case}, {direction}");
        let figures = costs.medians().map(|(with, without)| {
            [without, with].map(|cost| vec![whole_figure(CPU_PER_GIB, cost)])
        });
        let figures = figures.and_then(|[without, mut with]| {
            with.push(whole_figure(PERCENT, costs.added()?.median));
            Ok([without, with])
        });
        match figures {
            Ok([plain, figures]) => {
                journal.record_outcome(suite, &case, without, round, Ok(plain));
                journal.record_outcome(suite, &case, with, round, Ok(figures));
            }
            Err(why) => journal.record_outcome(suite, &case, with, round, Err(why)),
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
        let outcome = costs.measure(100, |has_it| {
            speed *= 1.001;
            Ok(if has_it { 1.02 * speed } else { speed })
        });
        outcome.unwrap();
        let added = costs.added().unwrap();
        assert!((added.median - 2.0).abs() < 0.01, "{added:?}");
        assert!(added.margin < 0.1, "{added:?}");
    }

    #[test]
    fn without_turns_there_is_no_figure() {
        assert!(TurnCosts::default().added().is_err());
        assert!(TurnCosts::default().medians().is_err());
    }
}
