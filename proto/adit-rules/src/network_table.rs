//! Networks as sorted ranges of addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};

/// Sorted ranges of one family that neither overlap nor adjoin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranges<T> {
    starts: Box<[T]>,
    ends: Box<[T]>,
}

/// The numbers of a family of addresses.
pub(crate) trait Number: Copy + Ord {
    /// Returns the number after this one, unless this is the last.
    fn next(self) -> Option<Self>;
}

macro_rules! number {
    ($($int:ty),*) => {$(
        impl Number for $int {
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
        }
    )*};
}
number!(u16, u32, u128);

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self {
            starts: Box::default(),
            ends: Box::default(),
        }
    }
}

impl<T: Number> Ranges<T> {
    /// Compiles ranges in any order; both ends are included.
    pub(crate) fn new(mut ranges: Vec<(T, T)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
        for (start, end) in ranges {
            match merged.last_mut() {
                Some((_, last)) if last.next().is_none_or(|after| start <= after) => {
                    *last = (*last).max(end);
                }
                _ => merged.push((start, end)),
            }
        }
        Self {
            starts: merged.iter().map(|range| range.0).collect(),
            ends: merged.iter().map(|range| range.1).collect(),
        }
    }

    pub(crate) fn contains(&self, number: T) -> bool {
        self.find(number).is_some()
    }

    /// Returns the range that has the number.
    pub(crate) fn find(&self, number: T) -> Option<(T, T)> {
        let after = self.starts.partition_point(|start| *start <= number);
        let at = after.checked_sub(1)?;
        let range = (*self.starts.get(at)?, *self.ends.get(at)?);
        (number <= range.1).then_some(range)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (T, T)> {
        let ends = self.ends.iter().copied();
        self.starts.iter().copied().zip(ends)
    }

    pub(crate) fn memory(&self) -> usize {
        2 * size_of_val(&*self.starts)
    }
}

/// Networks of both families.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NetworkTable {
    pub(crate) v4: Ranges<u32>,
    pub(crate) v6: Ranges<u128>,
}

impl NetworkTable {
    /// True if a network contains the address. An IPv4-mapped address is the IPv4 address.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.contains(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.contains(ip.to_bits()),
        }
    }

    /// Returns the network that contains the address: the largest whose addresses are all in the table.
    pub(crate) fn find(&self, ip: IpAddr) -> Option<IpNet> {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let (start, end) = self.v4.find(ip.to_bits())?;
                let (start, end) = (Ipv4Addr::from_bits(start), Ipv4Addr::from_bits(end));
                let mut nets = Ipv4Subnets::new(start, end, 0);
                nets.find(|net| net.contains(&ip)).map(IpNet::V4)
            }
            IpAddr::V6(ip) => {
                let (start, end) = self.v6.find(ip.to_bits())?;
                let (start, end) = (Ipv6Addr::from_bits(start), Ipv6Addr::from_bits(end));
                let mut nets = Ipv6Subnets::new(start, end, 0);
                nets.find(|net| net.contains(&ip)).map(IpNet::V6)
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }

    /// Returns the fewest networks with the same addresses.
    pub(crate) fn networks(&self) -> impl Iterator<Item = IpNet> {
        let v4 = self.v4.iter().flat_map(|(start, end)| {
            Ipv4Subnets::new(Ipv4Addr::from_bits(start), Ipv4Addr::from_bits(end), 0)
        });
        let v6 = self.v6.iter().flat_map(|(start, end)| {
            Ipv6Subnets::new(Ipv6Addr::from_bits(start), Ipv6Addr::from_bits(end), 0)
        });
        v4.map(IpNet::V4).chain(v6.map(IpNet::V6))
    }
}

/// Networks that become a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkTableBuilder {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl NetworkTableBuilder {
    pub(crate) fn add(&mut self, net: &IpNet) {
        self.add_range(net.network(), net.broadcast());
    }

    /// Adds the addresses from `start` to `end`. Returns false if the ends are of different families or in
    /// the wrong order.
    pub(crate) fn add_range(&mut self, start: IpAddr, end: IpAddr) -> bool {
        match (start, end) {
            (IpAddr::V4(start), IpAddr::V4(end)) if start <= end => {
                self.v4.push((start.to_bits(), end.to_bits()));
            }
            (IpAddr::V6(start), IpAddr::V6(end)) if start <= end => self.add_v6(start, end),
            _ => return false,
        }
        true
    }

    /// Adds a range of IPv6; its part in `::ffff:0:0/96` becomes IPv4.
    fn add_v6(&mut self, start: Ipv6Addr, end: Ipv6Addr) {
        const MAPPED: u128 = 0xffff_0000_0000;
        const MAPPED_END: u128 = 0xffff_ffff_ffff;
        let (start, end) = (start.to_bits(), end.to_bits());
        if end < MAPPED || start > MAPPED_END {
            self.v6.push((start, end));
            return;
        }
        let part = |number: u128| adit_wire::narrow_int::<u32>(number - MAPPED);
        self.v4
            .push((part(start.max(MAPPED)), part(end.min(MAPPED_END))));
        if start < MAPPED {
            self.v6.push((start, MAPPED - 1));
        }
        if end > MAPPED_END {
            self.v6.push((MAPPED_END + 1, end));
        }
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.v4.append(&mut other.v4);
        self.v6.append(&mut other.v6);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    pub(crate) fn build(self) -> NetworkTable {
        NetworkTable {
            v4: Ranges::new(self.v4),
            v6: Ranges::new(self.v6),
        }
    }
}

/// Parses a network, or an address as the network of itself alone. Host bits are cleared.
pub(crate) fn parse_network(text: &str) -> Option<IpNet> {
    match text.parse::<IpNet>() {
        Ok(net) => Some(net.trunc()),
        Err(_) => Some(IpNet::from(text.parse::<IpAddr>().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(nets: &[&str]) -> NetworkTable {
        let mut builder = NetworkTableBuilder::default();
        for net in nets {
            builder.add(&parse_network(net).unwrap());
        }
        builder.build()
    }

    #[test]
    fn addresses_are_found() {
        let nets = [
            "10.0.0.0/9",
            "10.128.0.0/9",
            "10.1.2.3",
            "2001:db8::/32",
            "192.0.2.7",
        ];
        let table = table(&nets);
        assert_eq!(table.len(), 3);
        for (ip, inside) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("9.255.255.255", false),
            ("11.0.0.0", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:192.0.2.7", true),
            ("2001:db8:ffff::", true),
            ("2001:db9::", false),
        ] {
            assert_eq!(table.contains(ip.parse().unwrap()), inside, "{ip}");
        }
        let back: Vec<String> = table.networks().map(|net| net.to_string()).collect();
        assert_eq!(back, ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]);
    }

    #[test]
    fn all_addresses_are_a_network() {
        let table = table(&["0.0.0.0/0", "::/0"]);
        for ip in [
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "ffff::ffff",
            "::ffff:1.2.3.4",
        ] {
            assert!(table.contains(ip.parse().unwrap()), "{ip}");
        }
        let mapped = self::table(&["::ffff:10.0.0.0/104"]);
        assert!(mapped.contains("10.2.3.4".parse().unwrap()) && mapped.v6.is_empty());
        let mut builder = NetworkTableBuilder::default();
        assert!(!builder.add_range("1.1.1.1".parse().unwrap(), "1.1.1.0".parse().unwrap()));
        assert!(!builder.add_range("1.1.1.1".parse().unwrap(), "::".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn ranges_answer_as_their_definition(
            ranges in prop::collection::vec((0_u16..300, 0_u16..20), 0..40),
            asked in prop::collection::vec(0_u16..400, 1..40),
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(at, len)| (at, at + len)).collect();
            let table = Ranges::new(ranges.clone());
            for number in asked {
                let expected = ranges.iter().any(|(start, end)| (*start..=*end).contains(&number));
                prop_assert_eq!(table.contains(number), expected);
            }
        }
    }
}
