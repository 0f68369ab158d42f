//! `adit bench fec`: Reed–Solomon codes of datagrams, as KCP and the FEC channels use them.
//!
//! All figures are per data datagram: the time to encode the parity of a group, or to recover its
//! losses, is divided by the number of data shards, as in kcp-go's benchmarks. `code` is only the
//! arithmetic; `stage` includes the framing: headers, copies, and the lookup of groups.

use std::hint::black_box;
use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode as Exit};
use adit_fec::{CodeError, CodeMatrix, Decoder, Encoder, ErasureCode, HEADER};
use adit_wire::{Time, subslice, usize_from};

use super::rows::{RowPrinter, time_operation, time_prepared_operations};
use crate::args;
use crate::args::bench::BenchFormat;

/// Bytes of a datagram.
const LEN: u32 = 1400;

const MATRICES: [(CodeMatrix, &str); 2] = [
    (CodeMatrix::Vandermonde, "vandermonde"),
    (CodeMatrix::Cauchy, "cauchy"),
];

/// Data and parity shards: kcptun's default, few for sparse traffic, and many.
const SHAPES: [(u32, u32); 3] = [(10, 3), (3, 1), (20, 10)];

/// Number of lost datagrams of a group.
const LOSSES: [u32; 2] = [1, 3];

pub(super) fn bench_fec(typed: &args::bench::BenchOptions) -> CommandResult {
    if !typed.output.is_json() && typed.output.format == BenchFormat::Table {
        println!("kernels: {}", adit_fec::effective_level().name());
    }
    let rows = RowPrinter::new("bench fec", typed);
    for (matrix, kind) in MATRICES {
        for (data, parity) in SHAPES {
            let group = ShardGroup::new(matrix, data, parity);
            let mut group = group.map_err(|why| Failure::new(Exit::Failure, why.to_string()))?;
            let shape = format!("{kind}-{data}+{parity}");
            let name = format!("code-encode-{shape}");
            rows.print_row(&name, LEN, group.time_encode(rows.time_per_row()));
            for lost in LOSSES.into_iter().filter(|lost| *lost <= parity) {
                let name = format!("code-decode-{lost}-{shape}");
                rows.print_row(
                    &name,
                    LEN,
                    group.time_reconstruct(rows.time_per_row(), lost),
                );
            }
            let name = format!("stage-encode-{shape}");
            rows.print_row(&name, LEN, group.time_sender(rows.time_per_row()));
            for lost in LOSSES.into_iter().filter(|lost| *lost <= parity) {
                let name = format!("stage-decode-{lost}-{shape}");
                rows.print_row(&name, LEN, group.time_receiver(rows.time_per_row(), lost));
            }
        }
    }
    let sending = rows.fastest(|name| name == "stage-encode-vandermonde-10+3");
    let advice = sending.map(|(_, speed)| {
        let gbits = speed * 8.0;
        format!("One processor adds 3 parity datagrams to each 10 at {gbits:.1} Gbit/s of data")
    });
    rows.finish(advice.as_deref());
    Ok(())
}

/// A group of shards in memory.
struct ShardGroup {
    code: ErasureCode,
    /// Number of data shards.
    count: u32,
    /// All shards, data first.
    shards: Vec<Vec<u8>>,
}

impl ShardGroup {
    fn new(matrix: CodeMatrix, data: u32, parity: u32) -> Result<Self, CodeError> {
        let code = ErasureCode::new(matrix, usize_from(data), usize_from(parity))?;
        let mut state = 7u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        };
        let mut shard = || (0..LEN).map(|_| byte()).collect();
        let mut shards: Vec<Vec<u8>> = (0..data).map(|_| shard()).collect();
        let mut made = vec![vec![0; usize_from(LEN)]; usize_from(parity)];
        let inputs: Vec<&[u8]> = shards.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode_parity(&inputs, &mut outputs)?;
        shards.append(&mut made);
        Ok(Self {
            code,
            count: data,
            shards,
        })
    }

    fn per_datagram(&self, of_group: f64) -> f64 {
        of_group / f64::from(self.count)
    }

    /// Returns the time to encode the parity of a group.
    fn time_encode(&mut self, spend: Duration) -> f64 {
        let (data, parity) = self.shards.split_at_mut(self.code.data_shards());
        let inputs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        let code = &self.code;
        let whole = time_operation(spend, || {
            let made = code.encode_parity(black_box(&inputs), black_box(&mut outputs));
            debug_assert_eq!(made, Ok(()));
        });
        self.per_datagram(whole)
    }

    /// Returns the time to reconstruct the first data shards from the others.
    fn time_reconstruct(&mut self, spend: Duration, lost: u32) -> f64 {
        let gone = usize_from(lost);
        let mut restored = vec![vec![0; self.shards.first().map_or(0, Vec::len)]; gone];
        let at_hand: Vec<Option<&[u8]>> = (self.shards.iter().enumerate())
            .map(|(place, shard)| (place >= gone).then_some(shard.as_slice()))
            .collect();
        let mut outputs: Vec<&mut [u8]> = restored.iter_mut().map(Vec::as_mut_slice).collect();
        let code = &mut self.code;
        let whole = time_operation(spend, || {
            let made = code.reconstruct(black_box(&at_hand), black_box(&mut outputs));
            debug_assert_eq!(made, Ok(()));
        });
        debug_assert!(restored.iter().zip(&self.shards).all(|(a, b)| a == b));
        self.per_datagram(whole)
    }

    /// Returns the time of the sender's stage: datagrams are sealed and parity is written.
    fn time_sender(&self, spend: Duration) -> f64 {
        let Ok(mut encoder) = Encoder::new(self.code.clone(), self.shard_len()) else {
            return f64::NAN;
        };
        let mut packet = vec![7; HEADER + self.shard_len()];
        let mut out = vec![0; encoder.max_packet()];
        let now = Time(0);
        let whole = time_operation(spend, || {
            for _ in 0..self.count {
                let sealed = encoder.seal(now, black_box(&mut packet));
                debug_assert_eq!(sealed, Ok(()));
                while let Some(len) = encoder.poll_output(black_box(&mut out)) {
                    black_box(len);
                }
            }
        });
        self.per_datagram(whole)
    }

    /// Returns the time of the receiver's stage for groups without their first datagrams.
    fn time_receiver(&self, spend: Duration, lost: u32) -> f64 {
        let Ok(mut encoder) = Encoder::new(self.code.clone(), self.shard_len()) else {
            return f64::NAN;
        };
        let mut decoder = Decoder::new(self.code.clone(), self.shard_len());
        let mut out = vec![0; encoder.max_packet()];
        let whole = time_prepared_operations(
            spend,
            GROUPS,
            &mut Vec::new(),
            |packets| {
                packets.clear();
                for _ in 0..GROUPS {
                    for place in 0..self.count {
                        let mut packet = vec![7; HEADER + self.shard_len()];
                        let sealed = encoder.seal(Time(0), &mut packet);
                        debug_assert_eq!(sealed, Ok(()));
                        if place >= lost {
                            packets.push(packet);
                        }
                        while let Some(len) = encoder.poll_output(&mut out) {
                            packets.push(subslice(&out, ..len).to_vec());
                        }
                    }
                }
            },
            |packets| {
                let mut restored = 0;
                for packet in packets {
                    decoder.handle_input(black_box(packet));
                    while decoder.poll_recovered().is_some() {
                        restored += 1;
                    }
                }
                debug_assert_eq!(restored, GROUPS * lost);
            },
        );
        self.per_datagram(whole)
    }

    fn shard_len(&self) -> usize {
        self.shards.first().map_or(0, Vec::len)
    }
}

/// Number of groups that are timed together, which fit into the second-level cache.
const GROUPS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(15);

    #[test]
    fn more_parity_takes_longer_and_what_was_lost_comes_back() {
        let mut small = ShardGroup::new(CodeMatrix::Cauchy, 10, 1).unwrap();
        let mut large = ShardGroup::new(CodeMatrix::Cauchy, 10, 10).unwrap();
        assert!(small.time_encode(SHORT) * 2.0 < large.time_encode(SHORT));
        for (matrix, _) in MATRICES {
            let mut group = ShardGroup::new(matrix, 10, 3).unwrap();
            // `reconstruct` compares the result with the original.
            assert!(group.time_reconstruct(SHORT, 3) > 0.0);
            assert!(group.time_sender(SHORT) > 0.0 && group.time_receiver(SHORT, 3) > 0.0);
        }
    }
}
