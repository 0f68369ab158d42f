//! Sets to bytes.

use super::{TAG_ALL, TAG_NOT};
use crate::network_table::{NetworkTable, Ranges};
use crate::rule_set::{Group, RuleSet};

/// A number of an address or a port in bytes.
pub(super) trait Bytes: Copy {
    /// Appends it.
    fn push(self, out: &mut Vec<u8>);
}

macro_rules! bytes {
    ($($int:ty),*) => {$(
        impl Bytes for $int {
            fn push(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}
bytes!(u16, u32, u128);

pub(super) fn encode_set(set: &RuleSet, out: &mut Vec<u8>) {
    out.push(u8::from(set.everything));
    out.push(set.transports);
    push_len(set.names.bytes().len(), out);
    out.extend_from_slice(set.names.bytes());
    push_len(set.keywords.len(), out);
    for word in set.keywords.iter() {
        push_text(word, out);
    }
    push_len(set.globs.len(), out);
    for glob in &set.globs {
        push_text(glob.as_str().as_bytes(), out);
    }
    push_len(set.patterns.len(), out);
    for pattern in &set.patterns {
        push_text(pattern.as_str().as_bytes(), out);
    }
    push_networks(&set.networks, out);
    push_ranges(&set.ports, out);
    push_networks(&set.sources, out);
    push_ranges(&set.source_ports, out);
    for list in [&set.users, &set.listeners] {
        push_len(list.len(), out);
        for text in list {
            push_text(text.as_bytes(), out);
        }
    }
    push_len(set.groups.len(), out);
    for group in &set.groups {
        match group {
            Group::All(sets) => {
                out.push(TAG_ALL);
                push_len(sets.len(), out);
                for set in sets {
                    encode_set(set, out);
                }
            }
            Group::Not(set) => {
                out.push(TAG_NOT);
                encode_set(set, out);
            }
        }
    }
}

fn push_len(len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&adit_wire::narrow_int::<u32>(len).to_be_bytes());
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    push_len(text.len(), out);
    out.extend_from_slice(text);
}

fn push_networks(networks: &NetworkTable, out: &mut Vec<u8>) {
    push_ranges(&networks.v4, out);
    push_ranges(&networks.v6, out);
}

fn push_ranges<T: Bytes + crate::network_table::Number>(ranges: &Ranges<T>, out: &mut Vec<u8>) {
    push_len(ranges.len(), out);
    for (start, end) in ranges.iter() {
        start.push(out);
        end.push(out);
    }
}
