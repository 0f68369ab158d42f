//! Users by their names, for those who have the names already.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// The numbers of users, found by the names, in 5 to 10 bytes a user: the names themselves stay with the owner.
///
/// `name_of` returns the name of a user in the index. Before the owner renames or removes a user, the user is removed
/// here.
#[derive(Debug, Default)]
pub struct UserNameIndex {
    ids: HashTable<u32>,
    hasher: RandomState,
}

impl UserNameIndex {
    /// Returns the number of the user of this name.
    pub fn find<'a>(&self, name: &str, name_of: impl Fn(u32) -> Option<&'a str>) -> Option<u32> {
        let is = |id: &u32| name_of(*id) == Some(name);
        self.ids.find(self.hasher.hash_one(name), is).copied()
    }

    /// Sets the number of the user of this name; another user's is forgotten.
    pub fn set<'a>(&mut self, name: &str, id: u32, name_of: impl Fn(u32) -> Option<&'a str>) {
        let Self { ids, hasher } = self;
        let hash = hasher.hash_one(name);
        if let Some(known) = ids.find_mut(hash, |known| name_of(*known) == Some(name)) {
            *known = id;
            return;
        }
        ids.insert_unique(hash, id, |id| {
            hasher.hash_one(name_of(*id).unwrap_or_default())
        });
    }

    /// Removes the name of a user, unless another user has it now.
    pub fn remove<'a>(&mut self, name: &str, id: u32, name_of: impl Fn(u32) -> Option<&'a str>) {
        let is = |known: &u32| *known == id && name_of(id) == Some(name);
        if let Ok(found) = self.ids.find_entry(self.hasher.hash_one(name), is) {
            found.remove();
        }
    }

    /// Makes room for further users: growing hashes all names again.
    pub fn reserve<'a>(&mut self, count: usize, name_of: impl Fn(u32) -> Option<&'a str>) {
        let Self { ids, hasher } = self;
        ids.reserve(count, |id| {
            hasher.hash_one(name_of(*id).unwrap_or_default())
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_name_leads_to_the_last_user_who_got_it() {
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        let mut index = UserNameIndex::default();
        for id in 0..1000 {
            names.insert(id, format!("user-{id}"));
            let name_of = |id| names.get(&id).map(String::as_str);
            index.set(&format!("user-{id}"), id, name_of);
        }
        names.insert(1000, "user-7".to_owned());
        {
            let name_of = |id| names.get(&id).map(String::as_str);
            index.set("user-7", 1000, name_of);
            assert_eq!(index.find("user-7", name_of), Some(1000));
            // The former owner of the name leaves it alone.
            index.remove("user-7", 7, name_of);
            assert_eq!(index.find("user-7", name_of), Some(1000));
            index.remove("user-7", 1000, name_of);
            index.reserve(10_000, name_of);
            assert_eq!(index.find("user-7", name_of), None);
            assert_eq!(index.find("user-999", name_of), Some(999));
            assert_eq!(index.find("zoe", name_of), None);
        }
    }
}
