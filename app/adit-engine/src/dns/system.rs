//! Answers of the system's resolver.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use adit_dns::{Answer, ClientQuery, RecordType, ResponseCode, UpstreamQuery};
use adit_net::names::{self, LookupOrigin, Resolver};
use adit_wire::unmap_ipv4;

/// Time to live of its answers: it caches them for theirs.
const TTL: Duration = Duration::from_secs(10);

/// Looks up a name with the system's resolver, which has addresses only. Other types are answered with "not
/// implemented".
///
/// # Errors
///
/// No server answers, or too many lookups of `origin` are waiting.
pub(super) async fn look_up(
    name: &str,
    record_type: RecordType,
    origin: LookupOrigin,
) -> io::Result<Answer> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let upstream =
        UpstreamQuery::new(name, record_type, 0).map_err(|why| invalid(why.to_string()))?;
    let query = ClientQuery::parse(&upstream.to_bytes()).map_err(|why| invalid(why.to_string()))?;
    let query = query.with_stream_limit();
    let reply = if record_type.is_address() {
        match Resolver::system().look_up(name, origin).await {
            Ok(found) => {
                let found: Vec<IpAddr> = found.iter().map(|addr| unmap_ipv4(addr.ip())).collect();
                query.address_reply(&found, TTL)
            }
            Err(why) => match names::name_exists(&why) {
                Some(true) => query.address_reply(&[], TTL),
                Some(false) => query.error_reply(ResponseCode::NXDomain),
                None => return Err(why),
            },
        }
    } else {
        query.error_reply(ResponseCode::NotImp)
    };
    upstream
        .check_answer(&reply)
        .map_err(|why| io::Error::other(why.to_string()))
}
