//! The round-trip estimator, in whole milliseconds, with the arithmetic of both families.

use crate::Compat;

/// Maximum time-out in milliseconds.
pub(crate) const RTO_MAX: u32 = 60_000;
const RTO_INITIAL: u32 = 200;

/// Smoothed round-trip time, its variance and the resulting time-out.
#[derive(Debug)]
pub(crate) struct RttEstimator {
    compat: Compat,
    /// Minimum time-out.
    floor: u32,
    /// The flush interval: acknowledgements may be that late.
    interval: u32,
    srtt: u32,
    var: u32,
    rto: u32,
}

const fn min_rto(nodelay: bool) -> u32 {
    if nodelay { 30 } else { 100 }
}

impl RttEstimator {
    pub(crate) const fn new(compat: Compat, nodelay: bool, interval: u32) -> Self {
        Self {
            compat,
            floor: min_rto(nodelay),
            interval,
            srtt: 0,
            var: 0,
            rto: RTO_INITIAL,
        }
    }

    /// Changes the settings, for the next sample on.
    pub(crate) const fn set_limits(&mut self, nodelay: bool, interval: u32) {
        (self.floor, self.interval) = (min_rto(nodelay), interval);
    }

    pub(crate) const fn srtt(&self) -> u32 {
        self.srtt
    }

    pub(crate) const fn mean_deviation(&self) -> u32 {
        self.var
    }

    pub(crate) const fn rto(&self) -> u32 {
        self.rto
    }

    /// Adds a measured round trip. A forged one counts as a minute at most.
    pub(crate) fn add_sample(&mut self, rtt: u32) {
        let rtt = rtt.min(RTO_MAX);
        if self.srtt == 0 {
            self.srtt = rtt;
            self.var = rtt / 2;
        } else {
            match self.compat {
                Compat::C => self.smooth_c(rtt),
                Compat::Go => self.smooth_go(rtt),
            }
        }
        let rto = self.srtt + self.interval.max(4 * self.var);
        self.rto = rto.clamp(self.floor, RTO_MAX);
    }

    fn smooth_c(&mut self, rtt: u32) {
        self.var = (3 * self.var + rtt.abs_diff(self.srtt)) / 4;
        self.srtt = ((7 * self.srtt + rtt) / 8).max(1);
    }

    /// Shifts round towards minus infinity here, so the sign matters. All values are below 2¹⁷.
    const fn smooth_go(&mut self, rtt: u32) {
        let (rtt, old, var) = (
            rtt.cast_signed(),
            self.srtt.cast_signed(),
            self.var.cast_signed(),
        );
        let delta = rtt - old;
        let srtt = old + (delta >> 3);
        let slope = if rtt < srtt - var { 5 } else { 2 };
        self.srtt = srtt.cast_unsigned();
        self.var = (var + ((delta.abs() - var) >> slope)).cast_unsigned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{number, vectors};

    #[test]
    fn golden_estimates_of_kcp_go() {
        for case in vectors()["kcp_rto_go"].as_array().unwrap() {
            let nodelay = number(&case["nodelay"]) != 0;
            let mut rtt = RttEstimator::new(Compat::Go, nodelay, number(&case["interval"]));
            let samples = case["rtt"].as_array().unwrap();
            let wanted = case["srtt_rttvar_rto"].as_array().unwrap();
            assert_eq!(samples.len(), wanted.len());
            for (sample, wanted) in samples.iter().zip(wanted) {
                rtt.add_sample(number(sample));
                let got = [rtt.srtt(), rtt.mean_deviation(), rtt.rto()];
                assert_eq!(got, [0, 1, 2].map(|at| number(&wanted[at])));
            }
        }
    }

    #[test]
    fn forged_samples_stay_in_bounds() {
        for compat in [Compat::C, Compat::Go] {
            let mut rtt = RttEstimator::new(compat, true, 10);
            for sample in [u32::MAX, 0, 0, u32::MAX, 1, 0, u32::MAX, u32::MAX] {
                rtt.add_sample(sample);
                assert!((30..=RTO_MAX).contains(&rtt.rto()));
                assert!(rtt.srtt() <= RTO_MAX && rtt.mean_deviation() <= RTO_MAX);
            }
        }
    }
}
