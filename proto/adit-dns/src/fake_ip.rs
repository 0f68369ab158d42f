//! Addresses that stand for names.

mod shares;
mod snapshot;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::sync::Arc;

use adit_wire::{narrow_int, unmap_ipv4, usize_from};
use ipnet::{Ipv4Net, Ipv6Net};

use self::shares::{Client, Shares};
use crate::name::MAX_NAME;
use crate::record_type::RecordType;

pub use snapshot::SnapshotError;

/// Addresses at the start of a network that are not used: that of the network, and one for a device.
const RESERVED_START: u32 = 2;
/// Addresses at the end of a network that are not used: that of broadcasts.
const RESERVED_END: u32 = 1;
/// Maximum number of names of a table.
const MAX_NAMES: u32 = 1 << 20;

/// The networks of a [`FakeIpTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FakeIpNetworks {
    /// Network of the addresses for `A`.
    pub v4: Option<Ipv4Net>,
    /// Network of the addresses for `AAAA`.
    pub v6: Option<Ipv6Net>,
}

/// The reason why a table was not created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FakeIpError {
    /// There is no network.
    #[error("no network for fake addresses")]
    NoNetwork,
    /// A network has fewer than eight addresses.
    #[error(
        "the network {0} for fake addresses is too small: use a prefix of /29 (IPv6: /125) or shorter"
    )]
    TooSmall(ipnet::IpNet),
}

/// A bounded table of names and the addresses that stand for them: clients receive such an address for a name,
/// and the destination of their connection shows the name again.
///
/// Each name has the same place in both networks. The first two addresses and the last one of a network are not
/// used. When all places are taken, the client with the most names loses the place of its least recently used one, so
/// that one client does not push out the names of others: by then, no client should have the address any more, so
/// replies need a short time to live. A name counts for the client with the fewest names of those that look it up.
///
/// Names are compared as they are, so all have to be in the form of [`ClientQuery::name`](crate::ClientQuery::name).
///
/// # Examples
///
/// ```
/// use adit_dns::{FakeIpNetworks, FakeIpTable, RecordType};
///
/// let networks = FakeIpNetworks { v4: Some("198.18.0.0/15".parse()?), v6: None };
/// let mut table = FakeIpTable::new(networks, 65_536)?;
/// let client = "192.0.2.7".parse()?;
/// let address = table.address_for("example.test", RecordType::A, client).ok_or("no address")?;
/// assert_eq!(address.to_string(), "198.18.0.2");
/// assert_eq!(table.name_of(address).as_deref(), Some("example.test"));
/// assert_eq!(table.address_for("example.test", RecordType::AAAA, client), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct FakeIpTable {
    networks: FakeIpNetworks,
    capacity: u32,
    index: HashMap<Arc<str>, u32>,
    /// The names of the places; an empty one is free.
    names: Vec<Arc<str>>,
    shares: Shares,
    changes: u64,
}

impl FakeIpTable {
    /// Creates a table of up to `capacity` names, of the addresses in the smaller network and of 1,048,576.
    ///
    /// # Errors
    /// There is no network, or one is too small.
    pub fn new(networks: FakeIpNetworks, capacity: usize) -> Result<Self, FakeIpError> {
        let networks = FakeIpNetworks {
            v4: networks.v4.map(|net| net.trunc()),
            v6: networks.v6.map(|net| net.trunc()),
        };
        let mut most = u32::try_from(capacity).unwrap_or(MAX_NAMES).min(MAX_NAMES);
        if networks.v4.is_none() && networks.v6.is_none() {
            return Err(FakeIpError::NoNetwork);
        }
        let usable = |bits: u8| match bits {
            0..3 => None,
            3..31 => Some((1 << bits) - RESERVED_START - RESERVED_END),
            _ => Some(MAX_NAMES),
        };
        if let Some(v4) = networks.v4 {
            let usable =
                usable(32 - v4.prefix_len()).ok_or_else(|| FakeIpError::TooSmall(v4.into()))?;
            most = most.min(usable);
        }
        if let Some(v6) = networks.v6 {
            let usable =
                usable(128 - v6.prefix_len()).ok_or_else(|| FakeIpError::TooSmall(v6.into()))?;
            most = most.min(usable);
        }
        Ok(Self {
            networks,
            capacity: most.max(1),
            index: HashMap::new(),
            names: Vec::new(),
            shares: Shares::default(),
            changes: 0,
        })
    }

    /// Returns the address that stands for a name, a new one if it has none; `None` if the type is not one of
    /// addresses or has no network here, or the name is empty or longer than 255 bytes. `client` is an address that
    /// all queries of a client have in common.
    pub fn address_for(
        &mut self,
        name: &str,
        record_type: RecordType,
        client: IpAddr,
    ) -> Option<IpAddr> {
        let served = match record_type {
            RecordType::A => self.networks.v4.is_some(),
            RecordType::AAAA => self.networks.v6.is_some(),
            _ => false,
        };
        if !served || name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        let place = match self.index.get(name) {
            Some(place) => {
                self.shares.touch_by(*place, Some(client));
                *place
            }
            None => self.assign(name, Some(client))?,
        };
        let offset = place + RESERVED_START;
        match record_type {
            RecordType::A => {
                let base = self.networks.v4?.network().to_bits();
                Some(Ipv4Addr::from_bits(base + offset).into())
            }
            _ => {
                let base = self.networks.v6?.network().to_bits();
                Some(Ipv6Addr::from_bits(base + u128::from(offset)).into())
            }
        }
    }

    /// Returns the name that an address stands for, also if it is an IPv4 address in the form of IPv6.
    ///
    /// The name counts as used now.
    pub fn name_of(&mut self, address: IpAddr) -> Option<Arc<str>> {
        let offset = match unmap_ipv4(address) {
            IpAddr::V4(address) => {
                let base = self.networks.v4?.network().to_bits();
                address.to_bits().checked_sub(base)?
            }
            IpAddr::V6(address) => {
                let base = self.networks.v6?.network().to_bits();
                u32::try_from(address.to_bits().checked_sub(base)?).ok()?
            }
        };
        let place = offset.checked_sub(RESERVED_START)?;
        let name = self.names.get(usize_from(place))?;
        if name.is_empty() {
            return None;
        }
        let name = name.clone();
        self.shares.touch(place);
        Some(name)
    }

    /// True if an address is in one of the networks, whether it stands for a name now or not. A connection
    /// to such an address without a name cannot be routed: its client kept the address for too long.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match unmap_ipv4(address) {
            IpAddr::V4(address) => self.networks.v4.is_some_and(|net| net.contains(&address)),
            IpAddr::V6(address) => self.networks.v6.is_some_and(|net| net.contains(&address)),
        }
    }

    /// Returns the networks.
    #[must_use]
    pub const fn networks(&self) -> FakeIpNetworks {
        self.networks
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the maximum number of names.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        usize_from(self.capacity)
    }

    /// Returns the number of assignments so far: a snapshot is out of date if it has changed.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Assigns a place to a name that has none.
    fn assign(&mut self, name: &str, client: Client) -> Option<u32> {
        let next: u32 = narrow_int(self.names.len());
        let place = if next < self.capacity {
            self.names.push(Arc::default());
            next
        } else {
            let freed = self.shares.place_to_free(client)?;
            self.shares.remove(freed);
            let old = std::mem::take(self.names.get_mut(usize_from(freed))?);
            self.index.remove(&old);
            freed
        };
        self.fill(place, name, client);
        Some(place)
    }

    /// Puts a name into a free place.
    fn fill(&mut self, place: u32, name: &str, client: Client) {
        let name: Arc<str> = name.into();
        if let Some(slot) = self.names.get_mut(usize_from(place)) {
            *slot = name.clone();
            self.index.insert(name, place);
            self.shares.insert(place, client);
            self.changes += 1;
        }
    }
}
