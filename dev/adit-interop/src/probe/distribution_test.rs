//! Tests whether times of several causes have one distribution (two-sample Kolmogorov–Smirnov).

use std::time::Duration;

use anyhow::Result;

/// Significance level of one family of comparisons.
const SIGNIFICANCE: f64 = 0.01;

/// The times of one cause.
#[derive(Debug, Clone)]
pub struct TimingSample {
    /// Name of the cause.
    pub cause: String,
    /// Times of its end, one per probe.
    pub times: Vec<Duration>,
}

/// A cause whose times differ from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// Name of the cause.
    pub cause: String,
    /// Probability that chance causes such a difference.
    pub p_value: f64,
    /// Median of its times.
    pub median: Duration,
    /// Median of all other times.
    pub others: Duration,
}

/// Returns the cause that stands out, if one does: in the first samples that `take` returns, and
/// again in fresh ones.
///
/// Among many comparisons at p > 0.01 some fail by chance in every run. Therefore there are few:
/// each cause is compared with all others together, which also detects small differences better
/// than pairs do. They share one level (Bonferroni: each has its part of 0.01), and a cause that
/// falls below it must do so again with fresh samples. A family without a leak then fails once in
/// ten thousand runs, while a leak that a thousand samples show appears again.
pub fn find_distinguishable_cause(
    mut take: impl FnMut() -> Result<Vec<TimingSample>>,
) -> Result<Option<Outlier>> {
    if find_outlier(&take()?).is_none() {
        return Ok(None);
    }
    Ok(find_outlier(&take()?))
}

fn find_outlier(samples: &[TimingSample]) -> Option<Outlier> {
    let each = samples.iter().enumerate().map(|(n, sample)| {
        let rest: Vec<Duration> = samples
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != n)
            .flat_map(|(_, other)| other.times.iter().copied())
            .collect();
        Outlier {
            cause: sample.cause.clone(),
            p_value: ks_p_value(&sample.times, &rest),
            median: median_time(&sample.times),
            others: median_time(&rest),
        }
    });
    let odd = each.min_by(|a, b| a.p_value.total_cmp(&b.p_value))?;
    let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    (odd.p_value <= SIGNIFICANCE / f64::from(count)).then_some(odd)
}

/// Returns the probability that two samples of one distribution are at least as far apart as these:
/// the p-value of the two-sample Kolmogorov–Smirnov test. Equal times make it larger than it is,
/// never smaller.
#[must_use]
pub fn ks_p_value(a: &[Duration], b: &[Duration]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let (len_a, len_b) = (a.len() as f64, b.len() as f64);
    let effective = (len_a * len_b / (len_a + len_b)).sqrt();
    // Stephens' correction makes the limit valid for small samples too.
    kolmogorov_tail((effective + 0.12 + 0.11 / effective) * ks_distance(a, b))
}

/// Returns the largest distance between the two empirical distributions.
fn ks_distance(a: &[Duration], b: &[Duration]) -> f64 {
    let sorted = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    let (a, b) = (sorted(a), sorted(b));
    let (mut i, mut j, mut most) = (0, 0, 0f64);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let at = *x.min(y);
        i += a[i..].iter().take_while(|time| **time == at).count();
        j += b[j..].iter().take_while(|time| **time == at).count();
        most = most.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    most
}

/// Returns the tail of Kolmogorov's distribution.
fn kolmogorov_tail(x: f64) -> f64 {
    // Below this, the alternating series converges slowly, and the tail is 1 to six digits.
    if x < 0.3 {
        return 1.0;
    }
    let term = |k: i32| {
        let k = f64::from(k);
        let sign = if k % 2.0 == 0.0 { -1.0 } else { 1.0 };
        sign * (-2.0 * k * k * x * x).exp()
    };
    (2.0 * (1..=20).map(term).sum::<f64>()).clamp(0.0, 1.0)
}

fn median_time(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pattern::BytePattern;

    /// Uniform from 0 to 1 s, plus an offset.
    fn drawn(len: usize, seed: u64, later: Duration) -> Vec<Duration> {
        let mut rng = BytePattern::new(seed.wrapping_mul(0xd134_2543_de82_ef95));
        let one = |_| {
            let bytes: [u8; 8] = rng.next_bytes(8).try_into().unwrap();
            later + Duration::from_nanos(u64::from_le_bytes(bytes) % 1_000_000_000)
        };
        (0..len).map(one).collect()
    }

    /// Tables of the limit: 1.2238, 1.3581 and 1.6276 leave 10 %, 5 % and 1 %.
    #[test]
    fn the_tail_is_that_of_the_tables() {
        for (x, wanted) in [(1.2238, 0.10), (1.3581, 0.05), (1.6276, 0.01)] {
            assert!(
                (kolmogorov_tail(x) - wanted).abs() < 1e-4,
                "{x}: {}",
                kolmogorov_tail(x)
            );
        }
        assert!(
            kolmogorov_tail(0.1) > 0.999
                && kolmogorov_tail(0.31) > 0.999
                && kolmogorov_tail(9.0) < 1e-9
        );
    }

    #[test]
    fn distances_are_exact() {
        let of = |times: &[u64]| -> Vec<Duration> {
            times.iter().map(|ms| Duration::from_millis(*ms)).collect()
        };
        let near = |a: &[u64], b: &[u64], wanted: f64| {
            assert!(
                (ks_distance(&of(a), &of(b)) - wanted).abs() < 1e-9,
                "{a:?} {b:?}"
            );
        };
        near(&[1, 2, 3], &[1, 2, 3], 0.0);
        near(&[1, 2], &[3, 4], 1.0);
        near(&[1, 1, 5, 5], &[1, 5, 5, 5], 0.25);
        near(&[2, 4, 6, 8], &[1, 3], 0.75);
        assert!((ks_p_value(&[], &of(&[1])) - 1.0).abs() < 1e-9);
    }

    /// The guarantee of the level: samples of one distribution fall below p in about p of the
    /// cases.
    #[test]
    fn equal_ones_are_rarely_told_apart() {
        let rounds = 1000;
        let low = (0..rounds).filter(|round| {
            let [a, b] = [0, 1].map(|n| drawn(200, round * 2 + n + 1, Duration::ZERO));
            ks_p_value(&a, &b) < 0.05
        });
        let low = low.count();
        assert!((20..=85).contains(&low), "{low} of {rounds} below 0.05");
    }

    #[test]
    fn the_one_that_differs_is_named() {
        let later = Duration::from_millis(150);
        let take = |odd: bool| {
            move || {
                let one = |n: u64| TimingSample {
                    cause: n.to_string(),
                    times: drawn(
                        300,
                        n + 1,
                        if odd && n == 3 { later } else { Duration::ZERO },
                    ),
                };
                Ok((0..8).map(one).collect())
            }
        };
        let odd = find_distinguishable_cause(take(true)).unwrap().unwrap();
        assert_eq!(odd.cause, "3");
        assert!(odd.median > odd.others);
        assert_eq!(find_distinguishable_cause(take(false)).unwrap(), None);
    }
}
