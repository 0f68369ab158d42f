//! The clients that the names of a table count for, and the order in which the names were used.

use core::net::IpAddr;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use adit_wire::usize_from;

/// A client; `None` is that of names from a snapshot.
pub(super) type Client = Option<IpAddr>;

/// The places of each client, in the order in which they were used.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    /// The client of each place, and the number of its last use.
    uses: Vec<(Client, u64)>,
    /// The places by client and last use.
    by_use: BTreeSet<(Client, u64, u32)>,
    /// The number of places of each client.
    sizes: HashMap<Client, u32>,
    /// The clients by their number of places.
    by_size: BTreeSet<(u32, Client)>,
    last_use: u64,
}

impl Shares {
    /// Adds a place that is in no share to that of a client. Places are numbered from 0 without gaps.
    pub(super) fn insert(&mut self, place: u32, client: Client) {
        let at = usize_from(place);
        if self.uses.len() <= at {
            self.uses.resize(at + 1, (None, 0));
        }
        self.last_use += 1;
        if let Some(last) = self.uses.get_mut(at) {
            *last = (client, self.last_use);
        }
        self.by_use.insert((client, self.last_use, place));
        let size = self.sizes.entry(client).or_default();
        self.by_size.remove(&(*size, client));
        *size += 1;
        self.by_size.insert((*size, client));
    }

    /// Removes a place, and returns its client.
    pub(super) fn remove(&mut self, place: u32) -> Client {
        let (client, last) = self.uses.get(usize_from(place)).copied()?;
        if self.by_use.remove(&(client, last, place))
            && let Entry::Occupied(mut size) = self.sizes.entry(client)
        {
            self.by_size.remove(&(*size.get(), client));
            *size.get_mut() -= 1;
            match *size.get() {
                0 => drop(size.remove()),
                rest => drop(self.by_size.insert((rest, client))),
            }
        }
        client
    }

    /// Makes a place the latest used one of its client.
    pub(super) fn touch(&mut self, place: u32) {
        let client = self.remove(place);
        self.insert(place, client);
    }

    /// Makes a place the latest used one of its client, or of `client` if that has fewer: a client with many names cannot
    /// take those of others into its share, where they would be lost soon.
    pub(super) fn touch_by(&mut self, place: u32, client: Client) {
        let owner = self.remove(place);
        let next = match self.size(client) < self.size(owner) {
            true => client,
            false => owner,
        };
        self.insert(place, next);
    }

    /// Returns the place that a new name of `client` takes when all are taken: the least recently used one of the largest
    /// share, which is that of the client if there are several.
    pub(super) fn place_to_free(&self, client: Client) -> Option<u32> {
        let (largest, owner) = *self.by_size.last()?;
        let owner = match self.size(client) == largest {
            true => client,
            false => owner,
        };
        let (_, _, place) = self.by_use.range((owner, 0, 0)..).next()?;
        Some(*place)
    }

    /// Returns all places, the least recently used one first.
    pub(super) fn oldest_first(&self) -> Vec<u32> {
        let uses = self.by_use.iter().map(|(_, last, place)| (*last, *place));
        let mut places: Vec<(u64, u32)> = uses.collect();
        places.sort_unstable();
        places.into_iter().map(|(_, place)| place).collect()
    }

    fn size(&self, client: Client) -> u32 {
        self.sizes.get(&client).copied().unwrap_or_default()
    }
}
