//! Measures encoding and decoding on each kernel of this CPU: 10+3 and 70+30 shards of 1,350 bytes and
//! 200+50 of 64 KiB, or the numbers given as arguments. The best of several batches by the thread's CPU time.
//!
//! `cargo run --release -p adit-fec --example fec_speed [DATA PARITY BYTES [LEVEL]]`

use std::{env, hint::black_box};

use adit_fec::{Decoder, Encoder, ErasureCode, FecLevel, HEADER};
use adit_interop::cpu_time::thread_cpu_ns;
use adit_wire::Time;

const SHAPES: [[usize; 3]; 3] = [[10, 3, 1350], [70, 30, 1350], [200, 50, 65_536]];

/// Number of batches of each measurement, and CPU time of a batch at least.
const BATCHES: u32 = 5;
const BATCH_NS: f64 = 3e7;

/// Longest shard that the framing is measured with: its size field has 16 bits.
const LONGEST_DATAGRAM: usize = 60_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let only = arguments.get(3).and_then(|name| FecLevel::from_name(name));
    let Some(sizes) = arguments.first_chunk::<3>() else {
        return SHAPES.into_iter().try_for_each(|shape| report(shape, None));
    };
    let mut shape = [0; 3];
    for (size, argument) in shape.iter_mut().zip(sizes) {
        *size = argument.parse()?;
    }
    report(shape, only)
}

fn report(shape: [usize; 3], only: Option<FecLevel>) -> Result<(), Box<dyn std::error::Error>> {
    let [data, parity, len] = shape;
    println!("{data}+{parity} shards of {len} bytes: ns per group, MB of data per CPU second");
    let row = |name: &str, what: &str, ns: f64| {
        println!(
            "{name:12} {what:8} {ns:12.0} {:8.0}",
            (data * len) as f64 / ns * 1e3
        );
    };
    let chosen = |level: &FecLevel| only.is_none_or(|only| only == *level);
    for level in FecLevel::available().filter(chosen) {
        let code = ErasureCode::vandermonde(data, parity)?.with_level(level);
        let name = level.name();
        row(name, "encode", encode(&code, len));
        row(name, "aligned", encode_aligned(&code, len));
        row(name, "verify", verify(&code, len)?);
        row(name, "repair", decode(&code, len));
        if len <= LONGEST_DATAGRAM {
            row(name, "sender", seal(&code, len)?);
            row(name, "receiver", open(&code, len)?);
        }
    }
    Ok(())
}

/// Returns the fastest of the batches, in ns per call.
fn measure(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let (start, mut calls) = (thread_cpu_ns(), 0);
        let spent = loop {
            // Few enough reads of the clock for calls of less than a microsecond.
            for _ in 0..1 + calls / 8 {
                call();
                calls += 1;
            }
            let spent = thread_cpu_ns() - start;
            if spent >= BATCH_NS {
                break spent;
            }
        };
        best = best.min(spent / f64::from(calls));
    }
    best
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

/// Encodes shards in one buffer whose starts are a power of two apart, so that the caches keep all of them
/// in the same few places.
fn encode_aligned(code: &ErasureCode, len: usize) -> f64 {
    let stride = len.next_power_of_two();
    let mut buffer = vec![0; (code.total_shards() + 1) * stride];
    let start = buffer.as_ptr().align_offset(stride);
    let (_, buffer) = buffer.split_at_mut(start);
    for (byte, j) in buffer.iter_mut().zip(0usize..) {
        *byte = (j * 7) as u8;
    }
    let (data, parity) = buffer.split_at_mut(code.data_shards() * stride);
    let data: Vec<&[u8]> = data.chunks_exact(stride).map(|row| &row[..len]).collect();
    let parity = parity.chunks_exact_mut(stride).take(code.parity_shards());
    let mut parity: Vec<&mut [u8]> = parity.map(|row| &mut row[..len]).collect();
    measure(|| {
        let done = code.encode_parity(black_box(&data), black_box(&mut parity));
        assert!(done.is_ok());
    })
}

fn verify(code: &ErasureCode, len: usize) -> Result<f64, adit_fec::CodeError> {
    let data = shards(code.data_shards(), len);
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut parity = shards(code.parity_shards(), len);
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode_parity(&data, &mut outputs)?;
    let parity: Vec<&[u8]> = parity.iter().map(Vec::as_slice).collect();
    Ok(measure(|| {
        let right = code.verify_parity(black_box(&data), black_box(&parity));
        assert_eq!(right, Ok(true));
    }))
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
