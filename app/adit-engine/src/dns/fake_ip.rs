//! Addresses that stand for names, and the files that keep them.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use adit_dns::{FakeIpNetworks, FakeIpTable, RecordType};
use adit_net::persistent_file;
use adit_wire::{Host, Target, unmap_ipv4};
use ipnet::IpNet;
use tokio::time::sleep;
use tracing::{info, warn};

use super::error::DnsStartError;

/// Maximum number of names.
const CAPACITY: usize = 65_536;
/// Interval at which the table is written. A crash loses at most this much.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum size of a file, in bytes: more than a full table has.
const MAX_FILE_BYTES: usize = 32 << 20;

/// The made-up addresses of all `dns://` listeners of a process.
#[derive(Debug, Default)]
pub(crate) struct FakeIps {
    /// The number of pools that have been opened: requests are compared with them only if there are any.
    opened: AtomicUsize,
    pools: RwLock<Vec<Weak<FakeIpPool>>>,
}

/// The meaning of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FakeTarget {
    /// It stands for this name.
    Name(Host),
    /// It belongs to a network of made-up addresses, and stands for no name.
    Unknown,
}

impl FakeIps {
    /// Returns true if there has been no pool yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.opened.load(Ordering::Relaxed) == 0
    }

    /// Returns the meaning of a target; `None` if it is not a made-up address.
    pub(crate) fn find_target(&self, target: &Target) -> Option<FakeTarget> {
        match &target.host {
            Host::Ip(ip) => self.find(*ip),
            Host::Name(_) => None,
        }
    }

    /// Returns the meaning of an address; `None` if it is an ordinary one.
    fn find(&self, address: IpAddr) -> Option<FakeTarget> {
        if self.is_empty() {
            return None;
        }
        let address = unmap_ipv4(address);
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let mut pools = pools.iter().filter_map(Weak::upgrade);
        pools.find_map(|pool| pool.find(address))
    }

    /// Writes the tables to their files, for a successor. This function blocks.
    pub(crate) fn write_all(&self) {
        for pool in self.open_pools() {
            pool.write();
        }
    }

    /// Reads the files again, which a predecessor has written since they were read. This function blocks.
    pub(crate) fn read_again(&self) {
        for pool in self.open_pools() {
            pool.read_again();
        }
    }

    fn open_pools(&self) -> Vec<Arc<FakeIpPool>> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        pools.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the pool of these networks and this file: the one that is in use, or a new one with the names of the
    /// file. Reads the file.
    ///
    /// # Errors
    ///
    /// The networks are too small.
    pub(crate) fn open(
        &self,
        networks: &[IpNet],
        file: Option<&Path>,
    ) -> Result<Arc<FakeIpPool>, DnsStartError> {
        let (mut v4, mut v6) = (None, None);
        for network in networks {
            match network {
                IpNet::V4(network) => v4 = Some(*network),
                IpNet::V6(network) => v6 = Some(*network),
            }
        }
        let networks = FakeIpNetworks { v4, v6 };
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        let mut known = pools.iter().filter_map(Weak::upgrade);
        if let Some(pool) =
            known.find(|pool| pool.networks == networks && pool.file.as_deref() == file)
        {
            return Ok(pool);
        }
        let table = read_table(networks, file)?;
        let pool = Arc::new(FakeIpPool {
            networks,
            written: Mutex::new(table.changes()),
            table: Mutex::new(table),
            file: file.map(Path::to_owned),
        });
        pools.push(Arc::downgrade(&pool));
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(pool)
    }
}

/// Creates a table with the names of a file.
fn read_table(networks: FakeIpNetworks, file: Option<&Path>) -> Result<FakeIpTable, DnsStartError> {
    let mut table = FakeIpTable::new(networks, CAPACITY)?;
    if let Some(file) = file {
        restore(&mut table, file);
    }
    Ok(table)
}

/// Restores a table from its file. A file that cannot be read is moved aside, and the table starts empty.
fn restore(table: &mut FakeIpTable, file: &Path) {
    let text = match persistent_file::read_bounded(file, MAX_FILE_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|why| why.to_string()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => return,
        Err(why) => {
            let file = file.display();
            return warn!("{file}: {why}; the table of made-up addresses starts empty");
        }
    };
    let restored = text.and_then(|text| table.restore(&text).map_err(|why| why.to_string()));
    match restored {
        Ok(count) => info!("{}: {count} names with made-up addresses", file.display()),
        Err(why) => {
            let mut aside = file.to_owned().into_os_string();
            aside.push(".broken");
            // If this fails, the file stays where it is and the next write replaces it.
            let _ = std::fs::rename(file, &aside);
            warn!("{}: {why}; moved aside", file.display());
        }
    }
}

/// The made-up addresses of some networks. It is written to its file when it is dropped.
#[derive(Debug)]
pub(crate) struct FakeIpPool {
    networks: FakeIpNetworks,
    table: Mutex<FakeIpTable>,
    file: Option<PathBuf>,
    /// The number of changes of the table that the file has.
    written: Mutex<u64>,
}

impl FakeIpPool {
    /// Returns the address that stands for a name. `client` is the network of the client that looks it up.
    pub(crate) fn address_for(
        &self,
        name: &str,
        record_type: RecordType,
        client: IpAddr,
    ) -> Option<IpAddr> {
        self.lock().address_for(name, record_type, client)
    }

    fn find(&self, address: IpAddr) -> Option<FakeTarget> {
        let mut table = self.lock();
        if let Some(name) = table.name_of(address) {
            let host = Host::parse(&name);
            return Some(host.map_or(FakeTarget::Unknown, FakeTarget::Name));
        }
        table.contains(address).then_some(FakeTarget::Unknown)
    }

    /// Writes the table every [`WRITE_INTERVAL`] if it has changed.
    pub(crate) async fn write_periodically(self: Arc<Self>) {
        loop {
            sleep(WRITE_INTERVAL).await;
            let pool = self.clone();
            // A panic while writing must not end the listener.
            let _ = tokio::task::spawn_blocking(move || pool.write()).await;
        }
    }

    /// Writes the table to its file, if it has changed.
    fn write(&self) {
        let Some(file) = &self.file else { return };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let (changes, text) = {
            let table = self.lock();
            if table.changes() == *written {
                return;
            }
            (table.changes(), table.snapshot())
        };
        match persistent_file::write_atomically(file, text.as_bytes()) {
            Ok(()) => *written = changes,
            Err(why) => warn!(
                "{}: cannot write the made-up addresses: {why}",
                file.display()
            ),
        }
    }

    fn read_again(&self) {
        // The error is one of the networks, which were large enough before.
        let Ok(table) = read_table(self.networks, self.file.as_deref()) else {
            return debug_assert!(false, "networks have become too small");
        };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = table.changes();
        *self.lock() = table;
    }

    fn lock(&self) -> MutexGuard<'_, FakeIpTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FakeIpPool {
    fn drop(&mut self) {
        self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks() -> Vec<IpNet> {
        vec!["198.18.0.0/15".parse().unwrap()]
    }

    fn target(ip: IpAddr) -> Target {
        Target::new(Host::Ip(ip), 443)
    }

    #[test]
    fn names_are_found_and_kept() {
        let folder = adit_interop::TempFolder::new("fake-ips").unwrap();
        let file = folder.path().join("state").join("names");
        let all = FakeIps::default();
        assert!(all.is_empty());
        let pool = all.open(&networks(), Some(&file)).unwrap();
        let again = all.open(&networks(), Some(&file)).unwrap();
        let client = [192, 0, 2, 7].into();
        assert!(Arc::ptr_eq(&pool, &again));
        let address = pool.address_for("a.test", RecordType::A, client).unwrap();
        assert_eq!(pool.address_for("a.test", RecordType::AAAA, client), None);
        let found = all.find_target(&target(address));
        assert_eq!(
            found,
            Some(FakeTarget::Name(Host::parse("a.test").unwrap()))
        );
        // As a socket for both families shows it.
        let IpAddr::V4(v4) = address else {
            panic!("{address}")
        };
        let mapped = all.find_target(&target(v4.to_ipv6_mapped().into()));
        assert_eq!(mapped, found);
        let unknown = all.find_target(&target("198.19.1.1".parse().unwrap()));
        assert_eq!(unknown, Some(FakeTarget::Unknown));
        assert_eq!(all.find_target(&target("192.0.2.1".parse().unwrap())), None);
        drop((pool, again));
        assert_eq!(all.find_target(&target(address)), None);

        let other = FakeIps::default();
        let pool = other.open(&networks(), Some(&file)).unwrap();
        assert_eq!(other.find_target(&target(address)), found);
        drop(pool);
        // A damaged file is moved aside.
        std::fs::write(&file, "something else").unwrap();
        let pool = other.open(&networks(), Some(&file)).unwrap();
        assert_eq!(
            other.find_target(&target(address)),
            Some(FakeTarget::Unknown)
        );
        drop(pool);
        let aside = std::fs::read_to_string(file.with_extension("broken")).unwrap();
        assert_eq!(aside, "something else");
    }
}
