//! Measurements of `adit bench`, and the rows that it prints.

use std::time::{Duration, Instant};

use crate::{args, json};

/// Prints rows as an aligned table, or as one JSON document per line.
pub(super) struct RowPrinter {
    /// The command, for JSON.
    json: Option<&'static str>,
    spend: Duration,
}

/// The result of a row.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRow<'a> {
    name: &'a str,
    bytes: u32,
    ns_per_op: f64,
}

impl RowPrinter {
    /// Prints the head of a table, unless rows are JSON.
    pub(super) fn new(command: &'static str, span: &args::BenchOptions) -> Self {
        let json = span.json.json.then_some(command);
        if json.is_none() {
            println!("{:<42} {:>7} {:>10} {:>8}", "", "bytes", "ns", "GB/s");
        }
        Self {
            json,
            spend: Duration::from_millis(span.millis.into()),
        }
    }

    /// Returns the time to spend on a row.
    pub(super) const fn time_per_row(&self) -> Duration {
        self.spend
    }

    /// Prints a row: its name, the bytes of an operation, and the nanoseconds it takes.
    pub(super) fn print_row(&self, name: &str, bytes: u32, ns: f64) {
        if let Some(command) = self.json {
            let ns_per_op = (ns * 100.0).round() / 100.0;
            let row = JsonRow {
                name,
                bytes,
                ns_per_op,
            };
            json::print_event(command, "row", &row);
        } else {
            let speed = f64::from(bytes) / ns;
            println!("{name:<42} {bytes:>7} {ns:>10.1} {speed:>8.2}");
        }
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
