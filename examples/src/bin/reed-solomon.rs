//! Reed–Solomon: splits a text into shards, loses some, and restores them from the others.

use adit_fec::ErasureCode;
use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: reed-solomon DATA_SHARDS PARITY_SHARDS TEXT [LOST_SHARD_NUMBER...]";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, parity, text, lost @ ..] = args.as_slice() else {
        bail!(USAGE);
    };
    let (data, parity) = (data.parse().context(USAGE)?, parity.parse().context(USAGE)?);
    let lost = lost.iter().map(|number| number.parse().context(USAGE));
    let lost: Vec<usize> = lost.collect::<Result<_>>()?;
    let mut code = ErasureCode::vandermonde(data, parity).context(USAGE)?;

    // All shards have the same length: the last ones are filled up with zeros.
    let len = text.len().div_ceil(data).max(1);
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(data * len, 0);
    let data_shards: Vec<&[u8]> = bytes.chunks(len).collect();
    let mut parity_bytes = vec![0; parity * len];
    let mut parity_shards: Vec<&mut [u8]> = parity_bytes.chunks_mut(len).collect();
    code.encode_parity(&data_shards, &mut parity_shards)?;

    let all = bytes.chunks(len).chain(parity_bytes.chunks(len));
    let received: Vec<Option<&[u8]>> = all
        .enumerate()
        .map(|(number, shard)| (!lost.contains(&number)).then_some(shard))
        .collect();
    for (number, shard) in received.iter().enumerate() {
        let shown = shard.map_or("lost".into(), |shard| shard.escape_ascii().to_string());
        println!("shard {number}: {shown}");
    }

    let data_received = received.iter().take(data);
    let missing = data_received
        .clone()
        .filter(|shard| shard.is_none())
        .count();
    let mut restored_bytes = vec![0; missing * len];
    let mut restored: Vec<&mut [u8]> = restored_bytes.chunks_mut(len).collect();
    code.reconstruct(&received, &mut restored)?;

    let mut restored = restored_bytes.chunks(len);
    let shards = data_received.filter_map(|shard| shard.or_else(|| restored.next()));
    let mut whole = shards.flatten().copied().collect::<Vec<u8>>();
    whole.truncate(text.len());
    println!("restored: {}", String::from_utf8(whole)?);
    Ok(())
}
