//! What `adit bench` measures with, and the rows that it prints.

use std::time::{Duration, Instant};

use crate::args;

/// Prints rows: an aligned table, or a JSON object a line.
pub(super) struct Rows {
    json: bool,
    spend: Duration,
}

/// A row as JSON.
#[derive(serde::Serialize)]
struct Row<'a> {
    name: &'a str,
    bytes: u32,
    ns_per_op: f64,
}

impl Rows {
    /// The table's head, if it has one.
    pub(super) fn new(span: &args::BenchSpan) -> Self {
        if !span.json {
            println!("{:<42} {:>7} {:>10} {:>8}", "", "bytes", "ns", "GB/s");
        }
        Self {
            json: span.json,
            spend: Duration::from_millis(span.millis.into()),
        }
    }

    /// How long a row may take.
    pub(super) const fn spend(&self) -> Duration {
        self.spend
    }

    /// A row: what was done with so many bytes, and nanoseconds of one operation.
    pub(super) fn row(&self, name: &str, bytes: u32, ns: f64) {
        if self.json {
            let ns_per_op = (ns * 100.0).round() / 100.0;
            let row = Row {
                name,
                bytes,
                ns_per_op,
            };
            println!("{}", serde_json::to_string(&row).unwrap_or_default());
        } else {
            let speed = f64::from(bytes) / ns;
            println!("{name:<42} {bytes:>7} {ns:>10.1} {speed:>8.2}");
        }
    }
}

/// Rounds of which the fastest counts: everything else is what the machine did besides.
const ROUNDS: u32 = 15;

/// Nanoseconds of one `work`, the fastest of several rounds that take `spend` together.
pub(super) fn nanoseconds(spend: Duration, mut work: impl FnMut()) -> f64 {
    let round = spend / ROUNDS;
    let mut batch = 1u32;
    // As many in a row as make the clock's own cost vanish.
    let mut took = time(batch, &mut work);
    while took < round && batch < 1 << 28 {
        batch *= 2;
        took = time(batch, &mut work);
    }
    let fastest = (1..ROUNDS).fold(took, |best, _| best.min(time(batch, &mut work)));
    fastest.as_secs_f64() * 1e9 / f64::from(batch)
}

fn time(batch: u32, work: &mut impl FnMut()) -> Duration {
    let start = processor();
    for _ in 0..batch {
        work();
    }
    processor().saturating_sub(start)
}

/// The time that this thread has had on a processor: what others do there meanwhile does not count.
fn processor() -> Duration {
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

/// Nanoseconds of one of the `count` operations of `work`, before which `prepare` makes everything
/// ready in time that does not count; the fastest of as many rounds as `spend` has room for.
pub(super) fn nanoseconds_apart<S: ?Sized>(
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
        let begun = processor();
        work(state);
        let took = processor().saturating_sub(begun);
        // The first round only brings memory and code into the caches.
        if rounds > 0 {
            fastest = fastest.min(took);
        }
        rounds += 1;
    }
    fastest.as_secs_f64() * 1e9 / f64::from(count)
}
