//! Answers of the system's resolver.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_dns::{
    Answer, CacheLimits, CachedAnswer, ClientQuery, RecordType, ResponseCode, UpstreamQuery,
};
use adit_dns_client::tls::TrustedRoots;
use adit_dns_client::{DirectPath, DnsClient, DnsServer, RemoteServer, Transport};
use adit_net::names::{self, LookupOrigin, Resolver};
use adit_wire::unmap_ipv4;

/// Time to live of its answers with addresses: the resolver caches them for theirs.
const TTL: Duration = Duration::from_secs(10);

/// Looks up a name with the system's resolver: addresses as its files say, and everything else at its servers.
///
/// # Errors
///
/// No server answers, or too many lookups of `origin` are waiting.
pub(super) async fn look_up(
    name: &str,
    record_type: RecordType,
    origin: LookupOrigin,
) -> io::Result<CachedAnswer> {
    if !record_type.is_address() {
        let client = client_of_servers(Resolver::system().servers().await?);
        let found = client.look_up(name, record_type, origin).await;
        return found.map_err(Into::into);
    }
    let answer = look_up_addresses(name, record_type, origin).await?;
    Ok(CachedAnswer {
        answer: Arc::new(answer),
        age: Duration::ZERO,
    })
}

async fn look_up_addresses(
    name: &str,
    record_type: RecordType,
    origin: LookupOrigin,
) -> io::Result<Answer> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let upstream =
        UpstreamQuery::new(name, record_type, 0).map_err(|why| invalid(why.to_string()))?;
    let query = ClientQuery::parse(&upstream.to_bytes()).map_err(|why| invalid(why.to_string()))?;
    let query = query.with_stream_limit();
    let reply = match Resolver::system().look_up(name, origin).await {
        Ok(found) => {
            let found: Vec<IpAddr> = found.iter().map(|addr| unmap_ipv4(addr.ip())).collect();
            query.address_reply(&found, TTL)
        }
        Err(why) => match names::name_exists(&why) {
            Some(true) => query.address_reply(&[], TTL),
            Some(false) => query.error_reply(ResponseCode::NXDomain),
            None => return Err(why),
        },
    };
    upstream
        .check_answer(&reply)
        .map_err(|why| io::Error::other(why.to_string()))
}

/// Returns the client of the system's servers, which is kept until they change.
fn client_of_servers(servers: Vec<SocketAddr>) -> DnsClient {
    static CLIENT: Mutex<Option<(Vec<SocketAddr>, DnsClient)>> = Mutex::new(None);
    let mut known = CLIENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = known.as_ref().filter(|(known, _)| *known == servers) {
        return client.clone();
    }
    let remote = |server: &SocketAddr| {
        DnsServer::Remote(RemoteServer::new(Transport::Udp, (*server).into()))
    };
    let client = DnsClient::new(
        servers.iter().map(remote).collect(),
        Arc::new(DirectPath),
        Some(CacheLimits::default()),
        &TrustedRoots::Machine,
    );
    known.replace((servers, client.clone()));
    client
}
