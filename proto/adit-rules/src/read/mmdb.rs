//! MaxMind databases of countries (MaxMind DB File Format Specification 2.0).
//!
//! The crate `maxminddb` does not bound its walk over a tree whose branches join again, which takes time
//! exponential in the depth; here every node costs.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::limits::{Limits, Loaded, Place, ReadError};
use super::mmdb_data::Data;
use super::tally::{Tally, shorten};
use crate::builder::RuleSetBuilder;

/// The bytes before the metadata.
const MARK: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// Maximum distance of the mark from the end, in bytes.
const METADATA: usize = 128 * 1024;
/// The zero bytes between the tree and the data.
const GAP: usize = 16;

const DAMAGED: ReadError = ReadError::Format("a MaxMind database");

/// Reads the networks of a country by its code (`CN`, in any case), from a database of countries or cities,
/// or one whose records are codes (sing-geoip, mihomo). IPv6 aliases of IPv4 networks (6to4 and Teredo) are
/// not included.
///
/// # Errors
///
/// [`ReadError`] if the document exceeds a limit, is damaged or does not have the country.
pub fn read_mmdb(document: &[u8], country: &str, limits: &Limits) -> Result<Loaded, ReadError> {
    let mut tally = Tally::new(document, limits)?;
    let tree = Tree::open(document).ok_or(DAMAGED)?;
    let mut set = RuleSetBuilder::new();
    // Every value is read once, but for those that records share.
    let mut data = Data::new(tree.data, document.len().saturating_mul(2));
    let mut of_country: HashMap<usize, bool> = HashMap::new();
    let mut number = 0;
    tree.walk(|record, net| {
        let known = of_country.get(&record).copied();
        let found = match known {
            Some(found) => found,
            None => {
                let found = data.is_of(record, country).ok_or(DAMAGED)?;
                of_country.insert(record, found);
                found
            }
        };
        number += 1;
        if found {
            set.add_network(&net);
            return tally.count(Place::Entry(number), "", Ok(()));
        }
        Ok(())
    })?;
    if tally.accepted == 0 {
        return Err(ReadError::Category(shorten(country)));
    }
    Ok(tally.finish(set))
}

/// True if the mark of a database is near the end.
pub(super) fn is_mmdb(document: &[u8]) -> bool {
    let tail = document.len().saturating_sub(METADATA);
    let near = document.get(tail..).unwrap_or_default();
    near.windows(MARK.len()).any(|part| part == MARK)
}

/// The search tree: two records for each node, one for each value of the next bit of an address.
struct Tree<'a> {
    bytes: &'a [u8],
    data: &'a [u8],
    nodes: usize,
    record_bits: usize,
    v6: bool,
}

/// A subtree to walk over.
struct Branch {
    node: usize,
    /// The address so far, from its highest bit on.
    prefix: u128,
    bits: u8,
}

impl<'a> Tree<'a> {
    fn open(document: &'a [u8]) -> Option<Self> {
        let tail = document.len().saturating_sub(METADATA);
        let near = document.get(tail..)?;
        let mark = near.windows(MARK.len()).rposition(|part| part == MARK)?;
        let metadata = near.get(mark + MARK.len()..)?;
        let mut data = Data::new(metadata, 10_000);
        let nodes = usize::try_from(data.number(0, "node_count")?).ok()?;
        let record_bits = usize::try_from(data.number(0, "record_size")?).ok()?;
        let version = data.number(0, "ip_version")?;
        if !matches!(record_bits, 24 | 28 | 32) || !matches!(version, 4 | 6) {
            return None;
        }
        let len = nodes.checked_mul(record_bits / 4)?;
        let bytes = document.get(..len)?;
        let data = document.get(len.checked_add(GAP)?..tail + mark)?;
        Some(Self {
            bytes,
            data,
            nodes,
            record_bits,
            v6: version == 6,
        })
    }

    /// Returns a record of a node.
    fn record(&self, node: usize, right: bool) -> Option<usize> {
        let size = self.record_bits / 4;
        let at = node.checked_mul(size)?;
        let node = self.bytes.get(at..at.checked_add(size)?)?;
        let number = |bytes: &[u8]| {
            let shift = |number, byte: &u8| number << 8 | usize::from(*byte);
            bytes.iter().fold(0_usize, shift)
        };
        if self.record_bits == 28 {
            // The byte in the middle has the highest bits of both.
            let (left, rest) = node.split_at_checked(3)?;
            let (middle, after) = rest.split_first()?;
            let (high, low) = if right {
                (middle & 15, after)
            } else {
                (middle >> 4, left)
            };
            return Some(usize::from(high) << 24 | number(low));
        }
        let (left, after) = node.split_at_checked(size / 2)?;
        Some(number(if right { after } else { left }))
    }

    /// Passes all networks to `receive`, with the place of their record in the data.
    fn walk(
        &self,
        mut receive: impl FnMut(usize, IpNet) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let v4 = self.v4_root();
        // A tree has each node once, and aliases are not followed.
        let mut budget = self.nodes;
        let mut stack = vec![Branch {
            node: 0,
            prefix: 0,
            bits: 0,
        }];
        while let Some(branch) = stack.pop() {
            budget = budget.checked_sub(1).ok_or(DAMAGED)?;
            for right in [true, false] {
                let record = self.record(branch.node, right).ok_or(DAMAGED)?;
                let bits = branch.bits + 1;
                let prefix = branch.prefix | (u128::from(right) << (128 - u32::from(bits)));
                if record == self.nodes {
                    continue;
                }
                if record > self.nodes {
                    let place = record - self.nodes;
                    let place = place.checked_sub(GAP).ok_or(DAMAGED)?;
                    for net in self.networks(prefix, bits).into_iter().flatten() {
                        receive(place, net)?;
                    }
                    continue;
                }
                if self.v6 && Some(record) == v4 && prefix != 0 {
                    continue;
                }
                if bits >= if self.v6 { 128 } else { 32 } {
                    return Err(DAMAGED);
                }
                stack.push(Branch {
                    node: record,
                    prefix,
                    bits,
                });
            }
        }
        Ok(())
    }

    /// Returns the node of `::/96`, where IPv4 is.
    fn v4_root(&self) -> Option<usize> {
        let mut node = 0;
        for _ in 0..96 {
            node = self.record(node, false).filter(|node| *node < self.nodes)?;
        }
        Some(node)
    }

    /// Returns the networks of a prefix: a part of IPv4, of IPv6, or all of IPv4 and more of IPv6.
    fn networks(&self, prefix: u128, bits: u8) -> [Option<IpNet>; 2] {
        let v4 = |address: u32, bits| {
            let net = Ipv4Net::new(Ipv4Addr::from_bits(address), bits).ok();
            net.map(IpNet::V4)
        };
        if !self.v6 {
            return [v4(adit_wire::narrow_int(prefix >> 96), bits), None];
        }
        if let Some(bits) = bits.checked_sub(96)
            && let Ok(address) = u32::try_from(prefix)
        {
            return [v4(address, bits), None];
        }
        let net = Ipv6Net::new(Ipv6Addr::from_bits(prefix), bits).ok();
        let all = (prefix == 0).then(|| v4(0, 0)).flatten();
        [net.map(IpNet::V6), all]
    }
}
