//! The measurements of `adit bench` in memory, and their rows.

use std::time::{Duration, Instant};

use super::report::{Column, ReportLayout, ReportPrinter};
use crate::args;

/// Prints the costs of operations in memory.
pub(super) struct RowPrinter {
    report: ReportPrinter,
    spend: Duration,
}

/// The columns of a cost.
const LAYOUT: ReportLayout = ReportLayout {
    columns: &[
        Column {
            head: "bytes",
            key: "bytes",
            width: 7,
            digits: 0,
        },
        Column {
            head: "ns",
            key: "nsPerOp",
            width: 10,
            digits: 1,
        },
        Column {
            head: "GB/s",
            key: "",
            width: 8,
            digits: 2,
        },
    ],
    chart: 2,
    chart_label: Some(0),
    chart_title: "GB/s of processor time: more is better",
    name_width: 42,
};

impl RowPrinter {
    /// Prints the head of a table.
    pub(super) fn new(command: &'static str, span: &args::bench::BenchOptions) -> Self {
        Self {
            report: ReportPrinter::new(command, &span.output, LAYOUT),
            spend: Duration::from_millis(span.millis.into()),
        }
    }

    /// Returns the time to spend on a row.
    pub(super) const fn time_per_row(&self) -> Duration {
        self.spend
    }

    /// Prints a row: its name, the bytes of an operation, and the nanoseconds it takes.
    pub(super) fn print_row(&self, name: &str, bytes: u32, ns: f64) {
        let speed = (bytes > 0).then(|| f64::from(bytes) / ns);
        self.report
            .print_row(name, &[Some(f64::from(bytes)), Some(ns), speed]);
        self.report.show_progress(" …", 0);
    }

    /// Returns the fastest row, in GB/s, among those that `names` selects, and its speed.
    pub(super) fn fastest(&self, names: impl Fn(&str) -> bool) -> Option<(String, f64)> {
        self.report.best(|a, b| a > b, names)
    }

    /// Prints the chart, or a line of advice.
    pub(super) fn finish(self, advice: Option<&str>) {
        self.report.finish(advice);
    }
}

/// Number of rounds. The fastest one counts, because the others include other work of the machine.
const ROUNDS: u32 = 15;

/// Returns the nanoseconds of one `work`, in the fastest of several rounds that take `spend` together.
pub(super) fn time_operation(spend: Duration, mut work: impl FnMut()) -> f64 {
    let round = spend / ROUNDS;
    let mut batch = 1u32;
    // The batch is large enough to make the cost of the clock negligible.
    let mut took = time_batch(batch, &mut work);
    while took < round && batch < 1 << 28 {
        batch *= 2;
        took = time_batch(batch, &mut work);
    }
    let fastest = (1..ROUNDS).fold(took, |best, _| best.min(time_batch(batch, &mut work)));
    fastest.as_secs_f64() * 1e9 / f64::from(batch)
}

fn time_batch(batch: u32, work: &mut impl FnMut()) -> Duration {
    let start = thread_cpu_time();
    for _ in 0..batch {
        work();
    }
    thread_cpu_time().saturating_sub(start)
}

/// Returns the processor time of this thread, which excludes that of other threads and programs.
fn thread_cpu_time() -> Duration {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
    }
    #[cfg(not(unix))]
    {
        use std::sync::LazyLock;
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// Returns the nanoseconds of one of the `count` operations of `work`, in the fastest of the rounds
/// that fit into `spend`. `prepare` runs before each round and is not timed.
pub(super) fn time_prepared_operations<S: ?Sized>(
    spend: Duration,
    count: u32,
    state: &mut S,
    mut prepare: impl FnMut(&mut S),
    mut work: impl FnMut(&mut S),
) -> f64 {
    let start = Instant::now();
    let mut fastest = Duration::MAX;
    let mut rounds = 0;
    while rounds < 4 || start.elapsed() < spend {
        prepare(state);
        let begun = thread_cpu_time();
        work(state);
        let took = thread_cpu_time().saturating_sub(begun);
        // The first round only brings memory and code into the caches.
        if rounds > 0 {
            fastest = fastest.min(took);
        }
        rounds += 1;
    }
    fastest.as_secs_f64() * 1e9 / f64::from(count)
}
