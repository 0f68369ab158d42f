//! Measures encoding and decoding on each kernel of this CPU, in nanoseconds: 10+3 shards of 1,400 bytes,
//! or the numbers given as arguments. The best of several batches by the thread's CPU time.
//!
//! `cargo run --release -p adit-fec --example fec_speed [DATA PARITY BYTES]`

use std::{env, hint::black_box};

use adit_fec::{Decoder, Encoder, ErasureCode, FecLevel, HEADER};
use adit_wire::Time;
use rustix::time::{ClockId, clock_gettime};

/// Number of batches of each measurement, and of calls per batch.
const BATCHES: u32 = 16;
const CALLS: u32 = 4_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes = [10, 3, 1400];
    for (size, argument) in sizes.iter_mut().zip(env::args().skip(1)) {
        *size = argument.parse()?;
    }
    let [data, parity, len] = sizes;
    println!("{data}+{parity} shards of {len} bytes; ns per group, and per data packet");
    for level in FecLevel::available() {
        let code = ErasureCode::vandermonde(data, parity)?.with_level(level);
        let encode = encode(&code, len);
        let decode = decode(&code, len);
        let seal = seal(&code, len)?;
        let open = open(&code, len)?;
        let per = |ns: f64| format!("{ns:8.0} {:7.1}", ns / data as f64);
        let name = level.name();
        println!(
            "{name:12} encode {}   repair {parity} lost {}",
            per(encode),
            per(decode)
        );
        println!("{name:12} sender {}   receiver    {}", per(seal), per(open));
    }
    Ok(())
}

/// Returns the fastest of the batches, in ns per call.
fn measure(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = cpu_ns();
        for _ in 0..CALLS {
            call();
        }
        best = best.min((cpu_ns() - start) / f64::from(CALLS));
    }
    best
}

fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn shards(count: usize, len: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|i| (0..len).map(|j| (i * 31 + j * 7) as u8).collect())
        .collect()
}

fn encode(code: &ErasureCode, len: usize) -> f64 {
    let data = shards(code.data_shards(), len);
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut parity = shards(code.parity_shards(), len);
    let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    measure(|| {
        let done = code.encode_parity(black_box(&data), black_box(&mut parity));
        assert!(done.is_ok());
    })
}

fn decode(code: &ErasureCode, len: usize) -> f64 {
    let mut code = code.clone();
    let all = shards(code.total_shards(), len);
    let gone = code.parity_shards().min(code.data_shards());
    let all: Vec<Option<&[u8]>> = all
        .iter()
        .enumerate()
        .map(|(i, shard)| (i >= gone).then_some(shard.as_slice()))
        .collect();
    let mut lost = shards(gone, len);
    let mut lost: Vec<&mut [u8]> = lost.iter_mut().map(Vec::as_mut_slice).collect();
    measure(|| {
        let done = code.reconstruct(black_box(&all), black_box(&mut lost));
        assert!(done.is_ok());
    })
}

/// Seals a whole group with the framing: headers, copies, parity, and its packets written out.
fn seal(code: &ErasureCode, len: usize) -> Result<f64, adit_fec::CodeError> {
    let mut encoder = Encoder::new(code.clone(), len)?;
    let mut packet = vec![7; HEADER + len];
    let mut out = vec![0; encoder.max_packet()];
    Ok(measure(|| {
        for _ in 0..code.data_shards() {
            let done = encoder.seal(Time(0), black_box(&mut packet));
            assert!(done.is_ok());
        }
        while let Some(len) = encoder.poll_output(&mut out) {
            black_box(&out[..len]);
        }
    }))
}

/// Opens whole groups without their first data shards, with the framing.
fn open(code: &ErasureCode, len: usize) -> Result<f64, adit_fec::CodeError> {
    let mut encoder = Encoder::new(code.clone(), len)?;
    let mut decoder = Decoder::new(code.clone(), len);
    let mut out = vec![0; encoder.max_packet()];
    let lost = code.parity_shards().min(code.data_shards());
    let mut packets = Vec::new();
    for n in 0..code.data_shards() {
        let mut packet = vec![n as u8; HEADER + len];
        let done = encoder.seal(Time(0), &mut packet);
        assert!(done.is_ok());
        packets.push(packet);
        while let Some(len) = encoder.poll_output(&mut out) {
            packets.push(out[..len].to_vec());
        }
    }
    packets.drain(..lost);
    let mut group = 0u32;
    Ok(measure(|| {
        for (packet, place) in packets.iter_mut().zip(lost as u32..) {
            let seqid = group * code.total_shards() as u32 + place;
            packet[..4].copy_from_slice(&seqid.to_le_bytes());
            decoder.handle_input(black_box(packet));
            while let Some(datagram) = decoder.poll_recovered() {
                black_box(datagram);
            }
        }
        group += 1;
    }))
}
