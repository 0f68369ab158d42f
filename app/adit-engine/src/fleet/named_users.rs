//! Users by their numbers and by their names.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Users with numbers and names, found by either. The names are kept once, in the users: the index of names takes 5 to 10
/// bytes a user.
#[derive(Debug)]
pub struct NamedUsers<T> {
    /// A tree: one that was filled in order needs half of the memory of a hash table.
    by_id: BTreeMap<u32, T>,
    /// The numbers, by the hashes of the names.
    by_name: HashTable<u32>,
    name_of: fn(&T) -> &str,
    hasher: RandomState,
}

impl<T> NamedUsers<T> {
    /// Creates a table of no users, whose names are what `name_of` returns.
    #[must_use]
    pub fn new(name_of: fn(&T) -> &str) -> Self {
        Self {
            by_id: BTreeMap::new(),
            by_name: HashTable::new(),
            name_of,
            hasher: RandomState::new(),
        }
    }

    /// Creates a table of users with their numbers. Of several users of one name, that with the highest number is found
    /// by it.
    #[must_use]
    pub fn with_users(name_of: fn(&T) -> &str, users: Vec<(u32, T)>) -> Self {
        let mut table = Self::new(name_of);
        table.by_id = users.into_iter().collect();
        table.reserve(table.by_id.len());
        let ids: Vec<u32> = table.by_id.keys().copied().collect();
        for id in ids {
            table.set_name(id);
        }
        table
    }

    /// Returns the users, in the order of their numbers.
    #[must_use]
    pub const fn by_id(&self) -> &BTreeMap<u32, T> {
        &self.by_id
    }

    /// Returns the user who got this name last, with the number.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(u32, &T)> {
        let is = |id: &u32| self.name(*id) == Some(name);
        let id = *self.by_name.find(self.hasher.hash_one(name), is)?;
        Some((id, self.by_id.get(&id)?))
    }

    /// Adds or replaces a user, who has the name from now on, even if another user had it.
    pub fn insert(&mut self, id: u32, user: T) {
        self.forget_name(id);
        self.by_id.insert(id, user);
        self.set_name(id);
    }

    /// Removes a user. A name that another user got since stays with that one.
    pub fn remove(&mut self, id: u32) {
        self.forget_name(id);
        self.by_id.remove(&id);
    }

    /// Makes room for further users: growing hashes all names again.
    pub fn reserve(&mut self, count: usize) {
        let Self {
            by_id,
            by_name,
            name_of,
            hasher,
        } = self;
        let name = |id: &u32| by_id.get(id).map_or("", *name_of);
        by_name.reserve(count, |id| hasher.hash_one(name(id)));
    }

    /// Rebuilds the tree after many users: one that was filled in order is half empty.
    pub fn fill_nodes(&mut self) {
        self.by_id = std::mem::take(&mut self.by_id).into_iter().collect();
    }

    fn name(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(self.name_of)
    }

    fn set_name(&mut self, id: u32) {
        let Self {
            by_id,
            by_name,
            name_of,
            hasher,
        } = self;
        let name_of = |id: &u32| by_id.get(id).map_or("", *name_of);
        let name = name_of(&id);
        let hash = hasher.hash_one(name);
        match by_name.find_mut(hash, |known| name_of(known) == name) {
            Some(known) => *known = id,
            None => drop(by_name.insert_unique(hash, id, |id| hasher.hash_one(name_of(id)))),
        }
    }

    fn forget_name(&mut self, id: u32) {
        let Some(name) = self.by_id.get(&id).map(self.name_of) else {
            return;
        };
        let found = self
            .by_name
            .find_entry(self.hasher.hash_one(name), |known| *known == id);
        if let Ok(found) = found {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_the_last_user_who_got_it() {
        let mut users = NamedUsers::new(String::as_str);
        for id in 0..1000 {
            users.insert(id, format!("user-{id}"));
        }
        let found = |users: &NamedUsers<String>, name| users.find(name).map(|(id, _)| id);
        users.insert(1000, "user-7".to_owned());
        assert_eq!(found(&users, "user-7"), Some(1000));
        // The former owner of the name leaves it alone.
        users.insert(7, "other".to_owned());
        assert_eq!(found(&users, "user-7"), Some(1000));
        assert_eq!(found(&users, "other"), Some(7));
        users.remove(1000);
        users.reserve(10_000);
        users.fill_nodes();
        assert_eq!(found(&users, "user-7"), None);
        assert_eq!(found(&users, "user-999"), Some(999));
        assert_eq!(found(&users, "zoe"), None);
        assert_eq!(users.by_id().len(), 1000);
        let list = vec![(5, "ann".to_owned()), (2, "bob".to_owned())];
        let users = NamedUsers::with_users(String::as_str, list);
        assert_eq!(found(&users, "ann"), Some(5));
        assert_eq!(found(&users, "bob"), Some(2));
    }
}
