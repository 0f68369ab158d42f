//! The resolver of a route.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use adit_dns::{CachedAnswer, RecordType};
use adit_dns_client::look_up_families;
use adit_net::dial::{self, Family};
use adit_net::names::{self, LookupOrigin};

use crate::BoxFuture;

/// Servers that look names up, and rules that decide which of them do.
pub(crate) trait NameTable: Send + Sync + fmt::Debug {
    /// Returns the name of the table.
    fn name(&self) -> &str;

    /// Returns the way that `name` is looked up. The name is in lower-case ASCII.
    fn select(&self, name: &str) -> Selected<'_>;

    /// Returns the cached answer of this table's servers.
    fn cached(&self, name: &str, record_type: RecordType) -> Option<CachedAnswer>;

    /// Looks a name up with this table's servers, whatever its rules say. Fails if no server answers, or too many
    /// lookups of `origin` are waiting.
    fn look_up<'a>(
        &'a self,
        name: &'a str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> BoxFuture<'a, io::Result<CachedAnswer>>;
}

/// The way that a name is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Selected<'a> {
    /// Not at all: it does not exist.
    Reject,
    /// With the system's resolver.
    System,
    /// With the servers of this table.
    Table(&'a dyn NameTable),
}

/// Looks up the names of one route. The default is the system's resolver.
#[derive(Debug, Clone, Default)]
pub struct NameResolver(ResolverKind);

#[derive(Debug, Clone, Default)]
enum ResolverKind {
    #[default]
    System,
    Table(Arc<dyn NameTable>),
    Default(DefaultDns),
}

/// The DNS table of the process, which a reload can replace. The names of hops' servers in the chains of tables are
/// looked up with it, so it does not keep the table alive.
#[derive(Debug, Clone, Default)]
pub(crate) struct DefaultDns(Arc<RwLock<Option<Weak<dyn NameTable>>>>);

impl DefaultDns {
    /// Sets the table; `None` is the system's resolver.
    pub(crate) fn set(&self, table: Option<Weak<dyn NameTable>>) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = table;
    }

    /// Returns the table; `None` is the system's resolver.
    fn current(&self) -> io::Result<Option<Arc<dyn NameTable>>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(table) = &*current else {
            return Ok(None);
        };
        let gone = || io::Error::other("the DNS tables are being started or replaced");
        table.upgrade().map(Some).ok_or_else(gone)
    }
}

impl NameResolver {
    /// Returns the system's resolver.
    #[must_use]
    pub const fn system() -> Self {
        Self(ResolverKind::System)
    }

    /// Returns a resolver that uses a table.
    pub(crate) fn with_table(table: Arc<dyn NameTable>) -> Self {
        Self(ResolverKind::Table(table))
    }

    /// Returns a resolver that uses the table of the process.
    pub(crate) const fn with_default(default: DefaultDns) -> Self {
        Self(ResolverKind::Default(default))
    }

    /// True if it is the system's resolver.
    #[must_use]
    pub const fn is_system(&self) -> bool {
        matches!(self.0, ResolverKind::System)
    }

    /// Returns the table; `None` is the system's resolver.
    pub(super) fn table(&self) -> io::Result<Option<Arc<dyn NameTable>>> {
        match &self.0 {
            ResolverKind::System => Ok(None),
            ResolverKind::Table(table) => Ok(Some(table.clone())),
            ResolverKind::Default(default) => default.current(),
        }
    }

    /// Returns the name of the table that looks `name` up, by the rules of this one; `system` is the system's resolver,
    /// and `None` says that a rule rejects the name.
    ///
    /// # Errors
    ///
    /// The name is not a host name.
    pub fn table_name(&self, name: &str) -> io::Result<Option<String>> {
        let system = || Some(adit_config::SYSTEM_DNS.to_owned());
        let Some(table) = self.table()? else {
            return Ok(system());
        };
        let ascii = to_ascii(name)?;
        let bare = ascii.strip_suffix('.').unwrap_or(&ascii);
        Ok(match table.select(bare) {
            _ if is_local_form(bare) => system(),
            Selected::Reject => None,
            Selected::System => system(),
            Selected::Table(table) => Some(table.name().to_owned()),
        })
    }

    /// Resolves `name` to addresses with `port`, in the order in which they are to be tried. The lookup counts against
    /// [`LookupOrigin::current`].
    ///
    /// # Errors
    ///
    /// The lookup fails, or there is no address of the requested family.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn resolve(
        &self,
        name: &str,
        port: u16,
        family: Family,
    ) -> io::Result<Vec<SocketAddr>> {
        let Some(table) = self.table()? else {
            return dial::resolve(name, port, family).await;
        };
        let ascii = to_ascii(name)?;
        let bare = ascii.strip_suffix('.').unwrap_or(&ascii);
        let table = match table.select(bare) {
            // Names of this machine are not looked up anywhere.
            _ if is_local_form(bare) => return dial::resolve(name, port, family).await,
            Selected::System => return dial::resolve(name, port, family).await,
            Selected::Reject => {
                return Err(unreachable_name(format!("a rule of `dns` rejects {bare}")));
            }
            Selected::Table(table) => table,
        };
        let origin = LookupOrigin::current();
        let query = |record_type| table.look_up(bare, record_type, origin);
        let answers = match family {
            Family::V4Only => vec![query(RecordType::A).await],
            Family::V6Only => vec![query(RecordType::AAAA).await],
            Family::Any | Family::V4First | Family::V6First => {
                look_up_families(query(RecordType::A), query(RecordType::AAAA)).await
            }
        };
        let mut found = Vec::new();
        let mut failure = None;
        for answer in answers {
            match answer {
                Ok(answer) => {
                    let addresses = answer.answer.addresses().iter();
                    found.extend(addresses.map(|ip| SocketAddr::new(*ip, port)));
                }
                Err(why) => failure = Some(why),
            }
        }
        names::sort_by_family(&mut found);
        let all = dial::order_candidates(found, family);
        match failure {
            Some(why) if all.is_empty() => Err(why),
            None if all.is_empty() => Err(unreachable_name(format!("{bare} has no address"))),
            _ => Ok(all),
        }
    }
}

fn to_ascii(name: &str) -> io::Result<String> {
    names::to_ascii_name(name).ok_or_else(|| {
        let why = format!("{name} is not a host name");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })
}

/// True if a name is this machine or an address on every machine, so that its lookup asks no server.
pub(super) fn is_local_form(name: &str) -> bool {
    names::is_localhost(name)
        || name.parse::<std::net::IpAddr>().is_ok()
        || names::parse_numeric_v4(name).is_some()
}

/// Returns the error for a name without an address: for clients, an unreachable host.
pub(super) fn unreachable_name(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::HostUnreachable, why)
}
