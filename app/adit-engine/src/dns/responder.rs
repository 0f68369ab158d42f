//! Answers to the queries of a `dns://` listener.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use adit_dns::{CachedAnswer, ClientQuery, RecordType, ResponseCode};
use adit_net::names::LookupOrigin;
use adit_wire::{Host, Target, source_network, unmap_ipv4};
use tracing::debug;

use super::fake_ip::FakeIpPool;
use super::resolver::{NameTable, Selected, is_local_form};
use super::system;
use crate::Router;
use crate::router::NameDecision;

/// Time to live of made-up addresses: a name may lose its address to another one.
const FAKE_TTL: Duration = Duration::from_secs(1);

/// Answers the queries of one listener by the rules of its route.
pub(crate) struct DnsResponder {
    router: Arc<Router>,
    fake: Option<Arc<FakeIpPool>>,
}

/// The answer to a query, or the lookup that it needs.
pub(crate) enum FirstAnswer {
    /// The reply.
    Reply(Vec<u8>),
    /// A lookup, see [`DnsResponder::look_up`].
    Lookup(PendingLookup),
}

/// A query that needs a lookup.
pub(crate) struct PendingLookup {
    query: ClientQuery,
    source: SocketAddr,
    /// The table that looks the name up; `None` is the system's resolver.
    table: Option<Arc<dyn NameTable>>,
    decision: NameDecision,
}

impl DnsResponder {
    /// Creates a responder. Without `fake`, answers have the addresses of names.
    pub(crate) const fn new(router: Arc<Router>, fake: Option<Arc<FakeIpPool>>) -> Self {
        Self { router, fake }
    }

    /// Answers a query of the client `source` as far as that needs no lookup.
    pub(crate) fn answer(&self, query: ClientQuery, source: SocketAddr) -> FirstAnswer {
        let name = query.name();
        let decision = match Host::parse(name) {
            Ok(host) => self.router.decide_name(&Target::new(host, 0), source),
            // The root, or another name without a meaning for rules.
            Err(_) => NameDecision::Allowed,
        };
        if matches!(decision, NameDecision::Rejected) {
            debug!(client = %source, name, "a rule rejects the name");
            return FirstAnswer::Reply(query.error_reply(ResponseCode::NXDomain));
        }
        if let Some(reply) = self.local_answer(&query) {
            return FirstAnswer::Reply(reply);
        }
        let table = match self.router.names().table() {
            Ok(table) => table,
            Err(why) => {
                debug!(client = %source, name, "no lookup: {why}");
                return FirstAnswer::Reply(query.error_reply(ResponseCode::ServFail));
            }
        };
        let rejected = match table.as_ref().map(|table| table.select(name)) {
            Some(Selected::Reject) => true,
            // A name of another table; a made-up address leads to it in the same way.
            Some(Selected::System | Selected::Table(_)) | None => false,
        };
        if rejected {
            debug!(client = %source, name, "a rule of `dns` rejects the name");
            return FirstAnswer::Reply(query.error_reply(ResponseCode::NXDomain));
        }
        if let Some(reply) = self.fake_answer(&query, source) {
            return FirstAnswer::Reply(reply);
        }
        let cached = table.as_ref().and_then(|table| match table.select(name) {
            Selected::Table(table) => table.cached(name, query.record_type()),
            Selected::Reject | Selected::System => None,
        });
        let pending = PendingLookup {
            query,
            source,
            table,
            decision,
        };
        match cached {
            Some(cached) => FirstAnswer::Reply(self.reply(&pending, &cached)),
            None => FirstAnswer::Lookup(pending),
        }
    }

    /// Looks the name of a query up, and returns the reply.
    pub(crate) async fn look_up(&self, pending: PendingLookup) -> Vec<u8> {
        let (query, source) = (&pending.query, pending.source);
        let (name, record_type) = (query.name(), query.record_type());
        let origin = LookupOrigin::Client {
            user: 0,
            source: client_network(source),
        };
        let table = pending.table.as_ref();
        let found = match table.map(|table| table.select(name)) {
            Some(Selected::Table(table)) => table.look_up(name, record_type, origin).await,
            None | Some(Selected::System) => system::look_up(name, record_type, origin).await,
            Some(Selected::Reject) => return query.error_reply(ResponseCode::NXDomain),
        };
        match found {
            Ok(found) => self.reply(&pending, &found),
            Err(why) => {
                debug!(client = %source, name, "the lookup failed: {why}");
                query.error_reply(ResponseCode::ServFail)
            }
        }
    }

    /// Returns the reply with an answer, unless a rule rejects its addresses.
    fn reply(&self, pending: &PendingLookup, found: &CachedAnswer) -> Vec<u8> {
        let PendingLookup {
            query,
            source,
            decision,
            ..
        } = pending;
        if let NameDecision::ByAddress(first_rule) = decision
            && let Ok(host) = Host::parse(query.name())
        {
            let target = Target::new(host, 0);
            let addresses = found.answer.addresses();
            let rejected = !addresses.is_empty()
                && self
                    .router
                    .rejects_addresses(&target, *source, *first_rule, addresses);
            if rejected {
                debug!(client = %source, name = query.name(), "a rule rejects an address of the name");
                return query.error_reply(ResponseCode::NXDomain);
            }
        }
        found.answer.reply_to(query, found.age)
    }

    /// Answers for names that no server is asked for: this machine, and addresses.
    fn local_answer(&self, query: &ClientQuery) -> Option<Vec<u8>> {
        let name = query.name();
        if !is_local_form(name) {
            return None;
        }
        let mut addresses: Vec<IpAddr> = Vec::new();
        if let Ok(ip) = name.parse() {
            addresses.push(ip);
        } else if let Some(ip) = adit_net::names::parse_numeric_v4(name) {
            addresses.push(ip.into());
        } else {
            addresses.push([127, 0, 0, 1].into());
            addresses.push([0, 0, 0, 0, 0, 0, 0, 1u16].into());
        }
        Some(query.address_reply(&addresses, FAKE_TTL))
    }

    /// Answers with a made-up address.
    fn fake_answer(&self, query: &ClientQuery, source: SocketAddr) -> Option<Vec<u8>> {
        let fake = self.fake.as_ref()?;
        match query.record_type() {
            kind if kind.is_address() => {
                // Of a family without a network the name has no addresses.
                let client = client_network(source);
                let address = fake.address_for(query.name(), kind, client);
                Some(query.address_reply(address.as_slice(), FAKE_TTL))
            }
            // These can have addresses, which would bypass the made-up ones (RFC 9460).
            RecordType::HTTPS | RecordType::SVCB => Some(query.address_reply(&[], FAKE_TTL)),
            _ => None,
        }
    }
}

/// Returns the network that the queries of a client have in common.
fn client_network(source: SocketAddr) -> IpAddr {
    source_network(unmap_ipv4(source.ip()))
}
