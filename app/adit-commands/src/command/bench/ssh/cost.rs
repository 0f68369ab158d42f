//! The cost of a cipher with its MAC on this processor.

use std::hint::black_box;
use std::time::{Duration, Instant};

use adit_crypto::Secret;
use adit_ssh_proto::algorithm::{Cipher, Compression, Mac};
use adit_ssh_proto::packet::{DirectionKeys, Opened, Opener, Sealer};
use adit_wire::subslice_mut;

/// Bytes of data in a packet, as channels send them.
const DATA: usize = 32 * 1024;
/// Number of packets in a round.
const PACKETS_PER_ROUND: usize = 8;
/// Minimum number of rounds. The first one fills the caches, and is not the median.
const ROUNDS: usize = 9;

/// Processor time of one end, in seconds per GiB of data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CipherCost {
    pub(super) cipher: Cipher,
    /// None if the cipher has its own tag.
    pub(super) mac: Option<Mac>,
    /// The cost at the sender.
    pub(super) send: f64,
    /// The cost at the receiver.
    pub(super) receive: f64,
}

impl CipherCost {
    /// Returns the cost of both ends together.
    pub(super) const fn sum(&self) -> f64 {
        self.send + self.receive
    }

    /// Returns the length of a packet's tag, in bits.
    pub(super) fn tag_bits(&self) -> usize {
        self.mac.map_or(128, |mac| mac.key_tag_len().1 * 8)
    }
}

/// Seals and opens packets in memory, in rounds that take about `spend` together.
///
/// Each direction is timed separately, by the processor time of this thread, which excludes other
/// programs and threads. The result is the median, because a round may be interrupted in either half.
pub(super) fn measure_cost(cipher: Cipher, mac: Option<Mac>, spend: Duration) -> CipherCost {
    let data = vec![0x5a; DATA];
    let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
    // Keys of the correct lengths do not fail.
    let _ = sealer.set_keys(test_keys(cipher, mac), true);
    let _ = opener.set_keys(test_keys(cipher, mac), true);
    let mut out = Vec::with_capacity((DATA + 256) * PACKETS_PER_ROUND);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while sent.len() < ROUNDS || begun.elapsed() < spend {
        out.clear();
        let before = processor_time();
        for _ in 0..PACKETS_PER_ROUND {
            let start = sealer.begin_packet(&mut out);
            out.extend_from_slice(black_box(&data));
            let _ = sealer.seal_begun(start, &mut out);
        }
        let between = processor_time();
        open_all(&mut opener, &mut out);
        sent.push(between.saturating_sub(before));
        received.push(processor_time().saturating_sub(between));
    }
    let per_gib = |time: Duration| {
        time.as_secs_f64() * f64::from(1 << 30) / (DATA * PACKETS_PER_ROUND) as f64
    };
    CipherCost {
        cipher,
        mac,
        send: per_gib(median(sent)),
        receive: per_gib(median(received)),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Returns the processor time of this thread.
#[cfg(unix)]
fn processor_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::ThreadCPUTime);
    // It starts with the thread.
    Duration::try_from(now).unwrap_or_default()
}

/// Returns the elapsed time, because this system has no thread clock of sufficient resolution.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

fn open_all(opener: &mut Opener, mut wire: &mut [u8]) {
    while let Ok(Opened::Packet { consumed, payload }) = opener.open(wire) {
        black_box(opener.payload(wire, &payload));
        wire = subslice_mut(wire, consumed..);
    }
}

fn test_keys(cipher: Cipher, mac: Option<Mac>) -> DirectionKeys {
    let (key, iv) = cipher.key_iv_len();
    DirectionKeys {
        cipher,
        mac,
        compression: Compression::None,
        key: Secret::new(vec![1; key]),
        iv: Secret::new(vec![2; iv]),
        mac_key: Secret::new(vec![3; mac.map_or(0, |mac| mac.key_tag_len().0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_sealed_is_opened() {
        let data = vec![7; 1000];
        for (cipher, mac) in [
            (Cipher::Aes128Gcm, None),
            (Cipher::Aes128Ctr, Some(Mac::Umac64)),
        ] {
            let (mut sealer, mut opener) = (Sealer::new(), Opener::new());
            sealer.set_keys(test_keys(cipher, mac), true).unwrap();
            opener.set_keys(test_keys(cipher, mac), true).unwrap();
            let mut wire = Vec::new();
            (0..PACKETS_PER_ROUND).for_each(|_| sealer.seal(&data, &mut wire).unwrap());
            open_all(&mut opener, &mut wire);
            assert_eq!(opener.packets(), 8);
        }
    }

    #[test]
    fn a_cost_is_a_cost() {
        let spend = Duration::from_millis(40);
        let gcm = measure_cost(Cipher::Aes128Gcm, None, spend);
        let sha = measure_cost(Cipher::Aes128Ctr, Some(Mac::HmacSha512Etm), spend);
        assert!(gcm.send > 0.0 && sha.sum() > gcm.send);
        assert_eq!((gcm.tag_bits(), sha.tag_bits()), (128, 512));
        // Both directions do the same work.
        for cost in [gcm, sha] {
            let ratio = cost.send / cost.receive;
            assert!((0.2..5.0).contains(&ratio), "{cost:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_processor_time_of_this_thread_counts() {
        let others_run = || {
            let (begun, before) = (Instant::now(), processor_time());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while begun.elapsed() < Duration::from_millis(60) {
                        black_box(processor_time());
                    }
                });
            });
            processor_time() - before
        };
        let took = others_run();
        assert!(took < Duration::from_millis(30), "{took:?}");
        let (begun, before) = (Instant::now(), processor_time());
        while processor_time() - before < Duration::from_millis(5) {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "the clock does not advance"
            );
        }
    }

    #[test]
    fn the_median_is_the_middle_one() {
        let times = [9, 1, 5].map(Duration::from_secs).to_vec();
        assert_eq!(median(times), Duration::from_secs(5));
    }
}
