//! Bytes of kcp-go and of the libraries it is built on; see `vectors/fec/README.md`.

use adit_wire::Time;
use serde_json::Value;

use super::{decoder, drain, encoder, hex, recovered, seal};
use crate::{CodeMatrix, ErasureCode, FecLevel, HEADER, Packet, encode_oob, packet::ShardNumbers};

fn vectors(section: &str) -> Value {
    let text = include_str!("../../vectors/kcp-go.json");
    let all: Value = serde_json::from_str(text).unwrap();
    all[section].clone()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn shards(count: usize, len: usize) -> Vec<Vec<u8>> {
    let byte = |i: usize, j: usize| u8::try_from((i * 31 + j * 7 + 1) % 256).unwrap();
    (0..count)
        .map(|i| (0..len).map(|j| byte(i, j)).collect())
        .collect()
}

#[test]
fn rows_and_parity_of_both_codes() {
    for case in vectors("reed_solomon").as_array().unwrap() {
        let (data, parity) = (number(&case["data_shards"]), number(&case["parity_shards"]));
        let len = number(&case["shard_len"]);
        let inputs = shards(data, len);
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        for (name, matrix) in [
            ("vandermonde", CodeMatrix::Vandermonde),
            ("cauchy", CodeMatrix::Cauchy),
        ] {
            let code = ErasureCode::new(matrix, data, parity).unwrap();
            let rows = &case[format!("{name}_matrix_rows")];
            for (i, row) in rows.as_array().into_iter().flatten().enumerate() {
                assert_eq!(
                    code.parity_row(i).unwrap(),
                    hex(row),
                    "{name} {data}+{parity}"
                );
            }
            for (key, i) in [("row0", 0), ("row29", 29)] {
                let row = &case[format!("{name}_matrix_{key}")];
                if row.is_string() {
                    assert_eq!(
                        code.parity_row(i).unwrap(),
                        hex(row),
                        "{name} {data}+{parity}"
                    );
                }
            }
            for level in FecLevel::available() {
                let code = code.clone().with_level(level);
                let mut outputs = vec![vec![0; len]; parity];
                let mut slices: Vec<&mut [u8]> =
                    outputs.iter_mut().map(Vec::as_mut_slice).collect();
                code.encode_parity(&inputs, &mut slices).unwrap();
                let parity_bytes = &case[format!("{name}_parity")];
                for (i, row) in parity_bytes.as_array().into_iter().flatten().enumerate() {
                    assert_eq!(outputs[i], hex(row), "{name} {data}+{parity} {level:?}");
                }
                let first = &case[format!("{name}_parity_first_row")];
                if first.is_string() {
                    assert_eq!(outputs[0], hex(first), "{name} {data}+{parity} {level:?}");
                }
            }
        }
    }
}

#[test]
fn packets_of_one_group() {
    let case = vectors("fec_packets");
    let (data, parity) = (number(&case["data_shards"]), number(&case["parity_shards"]));
    let mut encoder = encoder(data, parity);
    let mut packets = Vec::new();
    let mut datagrams = Vec::new();
    for datagram in case["kcp_packets_in"].as_array().unwrap() {
        datagrams.push(hex(datagram));
        packets.push(seal(&mut encoder, 0, &hex(datagram)));
        packets.append(&mut drain(&mut encoder));
    }
    let expected = case["wire_packets_out"].as_array().unwrap();
    assert_eq!(packets, expected.iter().map(hex).collect::<Vec<_>>());
    let mut receiver = decoder(data, parity);
    let restored: Vec<_> = packets[2..]
        .iter()
        .flat_map(|packet| recovered(&mut receiver, packet))
        .collect();
    assert_eq!(restored, datagrams[..2]);
}

#[test]
fn numbers_begin_again_where_kcp_go_does() {
    let case = vectors("fec_packets");
    for (key, shards) in [("paws_10_3", 13), ("paws_3_2", 5), ("paws_70_30", 100)] {
        let end = ShardNumbers::new(shards).unwrap().end_number();
        assert_eq!(u64::from(end), case[key].as_u64().unwrap());
    }
    let start = u32::try_from(number(&case["wrap_start"])).unwrap();
    let mut sender = encoder(3, 2);
    sender.start_at(start);
    let mut seqids = Vec::new();
    for _ in 0..4 {
        let mut packets = vec![seal(&mut sender, 0, &[7; 24])];
        packets.append(&mut drain(&mut sender));
        seqids.extend(packets.iter().map(|packet| match Packet::parse(packet) {
            Some(Packet::Data { seqid, .. } | Packet::Parity { seqid, .. }) => u64::from(seqid),
            other => panic!("{other:?}"),
        }));
    }
    let mut expected: Vec<u64> = case["wrap_seqids_of_one_group"]
        .as_array()
        .unwrap()
        .iter()
        .map(|seqid| seqid.as_u64().unwrap())
        .collect();
    expected.push(case["wrap_next_after"].as_u64().unwrap());
    assert_eq!(seqids, expected);
}

#[test]
fn out_of_band_packets() {
    let expected = hex(&vectors("fec_packets")["oob_conv_0x11223344_payload_hello"]);
    let mut out = [0; 64];
    let len = encode_oob(0x1122_3344, b"hello", &mut out).unwrap();
    assert_eq!(out[..len], expected);
    assert_eq!(
        Packet::parse(&expected),
        Some(Packet::Oob {
            conv: 0x1122_3344,
            payload: b"hello"
        })
    );
    assert_eq!(encode_oob(1, b"hello", &mut out[..16]), None);
    assert_eq!(encode_oob(1, &[0; 65_530], &mut vec![0; 70_000]), None);
    assert!(encode_oob(1, &[0; 65_529], &mut vec![0; 70_000]).is_some());
}

#[test]
fn a_datagram_has_to_fit() {
    let mut sender = encoder(2, 1);
    assert!(sender.seal(Time(0), &mut [0; HEADER + 1401]).is_err());
    assert!(sender.seal(Time(0), &mut [0; HEADER - 1]).is_err());
    assert!(sender.seal(Time(0), &mut []).is_err());
    assert!(sender.seal(Time(0), &mut [0; HEADER + 1400]).is_ok());
    assert!(sender.seal(Time(0), &mut [0; HEADER]).is_ok());
    assert_eq!(sender.max_packet(), HEADER + 1400);
    let mut short = [0; HEADER + 1399];
    assert_eq!(sender.poll_output(&mut short), None);
    assert_eq!(drain(&mut sender).len(), 1);
}
