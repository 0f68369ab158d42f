//! Measured quantities, and the combination of several rounds into one figure.

use std::fmt;

/// A quantity with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    /// Name and unit for programs, in the JSON lines: lower-case letters, digits and underscores.
    pub(crate) key: &'static str,
    /// Name and unit for people, in tables and charts.
    pub(crate) title: &'static str,
    /// The direction of better values.
    pub(crate) better: BetterWhen,
}

impl Quantity {
    /// Returns an arrow that points towards better figures.
    pub(crate) const fn arrow(self) -> char {
        match self.better {
            BetterWhen::More => '↑',
            BetterWhen::Less => '↓',
        }
    }
}

/// The direction of better values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BetterWhen {
    More,
    Less,
}

/// Defines quantities, and the list of all of them for the tests.
macro_rules! quantities {
    ($($name:ident = $better:ident, $key:literal, $title:literal;)+) => {
        $(pub(crate) const $name: Quantity = Quantity {
            key: $key,
            title: $title,
            better: BetterWhen::$better,
        };)+

        #[cfg(test)]
        pub(crate) const ALL_QUANTITIES: &[Quantity] = &[$($name),+];
    };
}

quantities! {
    GBIT = More, "gbit_per_s", "Gbit/s";
    CPU_PER_GIB = Less, "cpu_s_per_gib", "CPU s/GiB";
    CALLS_PER_GIB = Less, "syscalls_per_gib", "syscalls/GiB";
    PEAK_MEMORY = Less, "peak_rss_mib", "peak RSS MiB";
    FRESH_MEMORY = Less, "fresh_rss_mib", "fresh RSS MiB";
    MEMORY_PER_IDLE = Less, "kib_per_idle_connection", "KiB/idle connection";
    CONNECTIONS = More, "connections_per_s", "connections/s";
    CPU_PER_CONNECTION = Less, "cpu_us_per_connection", "CPU µs/connection";
    DATAGRAMS = More, "datagrams_per_s", "datagrams/s";
    LOSS_SHARE = Less, "lost_percent", "lost %";
    MB_PER_SECOND = More, "mb_per_s", "MB/s";
    QUEUE_DROPS = Less, "queue_drops_percent", "dropped by the queue %";
    P50 = Less, "p50_ms", "p50 ms";
    P99 = Less, "p99_ms", "p99 ms";
    P99_9 = Less, "p99_9_ms", "p99.9 ms";
    MAX_LATENCY = Less, "max_ms", "max ms";
    SEAL_RATE = More, "seal_gb_per_s", "seal GB/s";
    OPEN_RATE = More, "open_gb_per_s", "open GB/s";
    SEAL_NS = Less, "seal_ns", "seal ns";
    OPEN_NS = Less, "open_ns", "open ns";
    NS_PER_OP = Less, "ns_per_op", "ns/op";
    ALLOCATIONS = Less, "allocations_per_op", "allocations/op";
    CPU_SHARE = Less, "percent_of_a_core", "% of a core";
    PER_SESSION = Less, "kib_per_session", "KiB/session";
    OVER_CIPHER = Less, "times_bare_cipher", "× bare cipher";
    STORE_CPU = Less, "store_cpu_us", "store CPU µs";
    STORE_MEMORY = Less, "store_bytes", "store B";
    STORE_SHARE = Less, "store_percent_of_a_core", "store % of a core";
    DURATION = Less, "duration_ms", "ms";
    GROWTH = Less, "growth_mib", "MiB";
    BYTES = Less, "bytes", "B";
    COUNT = Less, "count", "";
    PERCENT = Less, "percent", "%";
    PERCENT_MARGIN = Less, "percent_margin", "± %";
}

/// A quantity of one process of a rig, or of all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metric {
    pub(crate) quantity: Quantity,
    /// `client`, `server`, `both`, or the implementation; empty if there is only one.
    pub(crate) part: &'static str,
}

impl Metric {
    /// Returns the name for programs, such as `cpu_s_per_gib_client`: lower-case letters, digits and
    /// underscores.
    pub(crate) fn key(&self) -> String {
        let mut key = self.quantity.key.to_owned();
        let words = self.part.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            key.push('_');
            key.push_str(&word.to_ascii_lowercase());
        }
        key
    }

    /// Returns the head of a column.
    pub(crate) fn column_head(&self) -> String {
        format!("{self} {}", self.quantity.arrow())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.quantity.title)?;
        if self.part.is_empty() {
            Ok(())
        } else {
            write!(f, ", {}", self.part)
        }
    }
}

/// The part of a figure that is a limit and was not measured.
pub(crate) const AT_MOST: &str = "at most";

/// The parts that stand for all processes together.
pub(crate) const WHOLE_PARTS: [&str; 3] = ["", "both", "all"];

/// The result of one measurement.
pub(crate) type Figures = Vec<(Metric, f64)>;

/// Returns a figure of all processes together.
pub(crate) const fn whole_figure(quantity: Quantity, value: f64) -> (Metric, f64) {
    (Metric { quantity, part: "" }, value)
}

/// Returns a figure for each process: a sum would mean nothing for processes on different machines.
pub(crate) fn figures_by_part(quantity: Quantity, parts: &[(&'static str, f64)]) -> Figures {
    parts
        .iter()
        .map(|&(part, value)| (Metric { quantity, part }, value))
        .collect()
}

/// Returns a figure for each process and, if there are several, their sum.
pub(crate) fn figures_with_sum(quantity: Quantity, parts: &[(&'static str, f64)]) -> Figures {
    let mut figures = figures_by_part(quantity, parts);
    if parts.len() > 1 {
        let sum = parts.iter().map(|(_, value)| value).sum();
        figures.push((
            Metric {
                quantity,
                part: if parts.len() == 2 { "both" } else { "all" },
            },
            sum,
        ));
    }
    figures
}

/// Converts a count to a number to divide by.
pub(crate) const fn as_float(count: u64) -> f64 {
    count as f64
}

/// Converts bytes to GiB.
pub(crate) fn as_gib(bytes: u64) -> f64 {
    as_float(bytes) / as_float(1 << 30)
}

/// The median of the rounds and their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundSpread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) rounds: usize,
}

impl RoundSpread {
    /// Returns the spread of `values`; `None` if there are none.
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let rounds = values.len();
        let (min, max) = (*values.first()?, *values.last()?);
        let (low, high) = (values.get((rounds - 1) / 2)?, values.get(rounds / 2)?);
        Some(Self {
            median: f64::midpoint(*low, *high),
            min,
            max,
            rounds,
        })
    }
}

impl fmt::Display for RoundSpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_short(self.median))?;
        if self.min < self.max {
            write!(
                f,
                " ({}–{})",
                format_short(self.min),
                format_short(self.max)
            )?;
        }
        Ok(())
    }
}

/// How much larger the second of two values is, in percent, over several pairs of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChangeSpread {
    /// The median of all pairs.
    pub(crate) median: f64,
    /// The true median lies within this of the measured one, in 95 of 100 measurements.
    pub(crate) margin: f64,
}

impl ChangeSpread {
    /// Returns the change from the first value of each pair to the second; `None` without pairs.
    pub(crate) fn from_pairs(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let change = |(before, after)| (after / before - 1.0) * 100.0;
        let mut changes: Vec<f64> = pairs.into_iter().map(change).collect();
        let median = RoundSpread::from_values(changes.iter().copied())?.median;
        changes.sort_by(f64::total_cmp);
        let quarter = changes.len() / 4;
        let range = changes.get(changes.len() - 1 - quarter)? - changes.get(quarter)?;
        // McGill, Tukey and Larsen, "Variations of Box Plots", 1978: the interval of a median.
        let margin = 1.58 * range / (changes.len() as f64).sqrt();
        Some(Self { median, margin })
    }
}

/// Formats a value with three significant digits and separated thousands: 0.412, 12.3, 3,300.
pub(crate) fn format_short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let places = match value.abs() {
        v if v < 0.9995 => 3,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.places$}");
    let digits = text.len() - usize::from(text.starts_with('-'));
    if places > 0 || digits <= 3 {
        return text;
    }
    // Digits beyond the third are noise.
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or(3) - 3);
    let round = format!("{:.0}", (value / scale).round() * scale);
    let mut out = String::new();
    for (at, c) in round.chars().enumerate() {
        if at > 0 && (round.len() - at).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::KINDS;

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = RoundSpread::from_values([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            (odd.median, odd.min, odd.max, odd.rounds),
            (2.0, 1.0, 3.0, 3)
        );
        assert_eq!(
            RoundSpread::from_values([4.0, 1.0, 2.0, 8.0])
                .unwrap()
                .median,
            3.0
        );
        assert_eq!(RoundSpread::from_values([7.0]).unwrap().median, 7.0);
        assert_eq!(RoundSpread::from_values([]), None);
    }

    #[test]
    fn equal_rounds_have_no_range() {
        assert_eq!(RoundSpread::from_values([7.0]).unwrap().to_string(), "7.00");
        assert_eq!(
            RoundSpread::from_values([0.0, 0.0]).unwrap().to_string(),
            "0"
        );
        assert_eq!(
            RoundSpread::from_values([1.0, 2.0]).unwrap().to_string(),
            "1.50 (1.00–2.00)"
        );
    }

    #[test]
    fn a_change_has_a_margin_by_its_scatter() {
        let same = ChangeSpread::from_pairs([(1.0, 1.02); 9]).unwrap();
        assert!((same.median - 2.0).abs() < 0.01, "{same:?}");
        assert!(same.margin < 0.01, "{same:?}");
        let scattered = (0..64_u8).map(|n| (1.0, 1.0 + f64::from(n % 7) / 100.0));
        let scattered = ChangeSpread::from_pairs(scattered).unwrap();
        assert!((scattered.median - 3.0).abs() < 0.01, "{scattered:?}");
        assert!((0.2..2.0).contains(&scattered.margin), "{scattered:?}");
        assert_eq!(ChangeSpread::from_pairs([]), None);
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.04567, "0.046"),
            (0.9996, "1.00"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (999.7, "1,000"),
            (1234.0, "1,230"),
            (1_234_567.0, "1,230,000"),
            (-1234.0, "-1,230"),
            (-123_456.0, "-123,000"),
        ] {
            assert_eq!(format_short(value), text);
        }
    }

    #[test]
    fn keys_are_unique_and_in_snake_case() {
        // Those of processes, of limits, and of classes of processors; and every implementation.
        let parts = ["client", "server", "relay", AT_MOST, "AVX-512"].into_iter();
        let parts = parts
            .chain(WHOLE_PARTS)
            .chain(KINDS.iter().map(|kind| kind.name));
        let mut keys = std::collections::BTreeSet::new();
        for &quantity in ALL_QUANTITIES {
            for part in parts.clone() {
                let key = Metric { quantity, part }.key();
                let fits = |c| matches!(c, 'a'..='z' | '0'..='9' | '_');
                assert!(!key.is_empty() && key.chars().all(fits), "{key}");
                assert!(keys.insert(key.clone()), "{key} twice");
            }
        }
        assert!(keys.contains("cpu_s_per_gib_at_most"));
        assert_eq!(whole_figure(OPEN_RATE, 1.0).0.key(), "open_gb_per_s");
    }

    #[test]
    fn two_processes_have_a_sum() {
        let both = figures_with_sum(CPU_PER_GIB, &[("client", 1.0), ("server", 2.0)]);
        let shown: Vec<String> = both.iter().map(|(m, v)| format!("{m}={v}")).collect();
        assert_eq!(
            shown,
            [
                "CPU s/GiB, client=1",
                "CPU s/GiB, server=2",
                "CPU s/GiB, both=3"
            ]
        );
        assert_eq!(figures_with_sum(CPU_PER_GIB, &[("", 1.0)]).len(), 1);
    }
}
