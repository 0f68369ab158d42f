//! A writer of MaxMind databases.

use ipnet::IpNet;

/// A value of the data section.
#[derive(Clone)]
pub(super) enum Item {
    Text(&'static str),
    Number(u32),
    Map(Vec<(&'static str, Self)>),
    Array(Vec<Self>),
    Pointer(u32),
}

impl Item {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                out.push(2 << 5 | text.len() as u8);
                out.extend(text.bytes());
            }
            Self::Number(number) => {
                out.push(6 << 5 | 4);
                out.extend(number.to_be_bytes());
            }
            Self::Map(pairs) => {
                out.push(7 << 5 | pairs.len() as u8);
                for (key, value) in pairs {
                    Self::Text(key).write(out);
                    value.write(out);
                }
            }
            Self::Array(items) => {
                out.extend([items.len() as u8, 4]);
                for item in items {
                    item.write(out);
                }
            }
            Self::Pointer(to) => {
                out.push(1 << 5 | (*to >> 8) as u8);
                out.push(*to as u8);
            }
        }
    }
}

/// Writes a database of networks, each with the offset of its data.
pub(super) fn database(bits: usize, v6: bool, data: &[u8], nets: &[(IpNet, usize)]) -> Vec<u8> {
    // 0: nothing, otherwise 1 + a node, or the negative of 1 + an offset.
    let mut nodes: Vec<[i64; 2]> = vec![[0; 2]];
    for (net, offset) in nets {
        let (address, len) = match net {
            IpNet::V4(net) if v6 => (u128::from(net.addr().to_bits()), net.prefix_len() + 96),
            IpNet::V4(net) => (u128::from(net.addr().to_bits()) << 96, net.prefix_len()),
            IpNet::V6(net) => (net.addr().to_bits(), net.prefix_len()),
        };
        let mut node = 0;
        for bit in 0..len {
            let side = usize::from(address >> (127 - bit) & 1 == 1);
            if bit + 1 == len {
                nodes[node][side] = -1 - *offset as i64;
            } else {
                if nodes[node][side] == 0 {
                    nodes.push([0; 2]);
                    nodes[node][side] = nodes.len() as i64;
                }
                node = nodes[node][side] as usize - 1;
            }
        }
    }
    let count = nodes.len();
    let mut out = Vec::new();
    for node in nodes {
        let [left, right] = node.map(|record| match record {
            0 => count as u32,
            1.. => record as u32 - 1,
            _ => (count + 16) as u32 + (-1 - record) as u32,
        });
        match bits {
            24 => {
                out.extend(&left.to_be_bytes()[1..]);
                out.extend(&right.to_be_bytes()[1..]);
            }
            28 => {
                out.extend(&left.to_be_bytes()[1..]);
                out.push(((left >> 24) << 4 | right >> 24) as u8);
                out.extend(&right.to_be_bytes()[1..]);
            }
            _ => {
                out.extend(left.to_be_bytes());
                out.extend(right.to_be_bytes());
            }
        }
    }
    finish(out, data, count, bits, v6)
}

/// Adds the data and the metadata to a tree.
pub(super) fn finish(
    mut tree: Vec<u8>,
    data: &[u8],
    count: usize,
    bits: usize,
    v6: bool,
) -> Vec<u8> {
    tree.extend([0; 16]);
    tree.extend_from_slice(data);
    tree.extend(b"\xab\xcd\xefMaxMind.com");
    Item::Map(vec![
        ("database_type", Item::Text("Test")),
        ("languages", Item::Array(vec![Item::Text("en")])),
        ("node_count", Item::Number(count as u32)),
        ("record_size", Item::Number(bits as u32)),
        ("ip_version", Item::Number(if v6 { 6 } else { 4 })),
    ])
    .write(&mut tree);
    tree
}
