//! Detection of the side of the tunnel, where no option states it.
//!
//! SIP003 sets the same four variables on both sides. They mean:
//!
//! | | `SS_REMOTE` | `SS_LOCAL` |
//! |---|---|---|
//! | client | usually another machine | a free port to listen on |
//! | server | this machine, to listen on | the address that the host listens on |
//!
//! Therefore several addresses, or a wildcard (`0.0.0.0`), are those of a server, and an address of
//! another machine is that of a client. What remains is a remote address of this machine: there the
//! host of a server listens on `SS_LOCAL` within moments, whereas on a client nothing does, because
//! that would be the plugin.

use std::net::SocketAddr;
use std::time::Duration;

use adit_net::dial::{self, Family};
use adit_wire::{Host, Role, Target};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

/// Maximum time until a server's host listens.
const HOST_START_TIMEOUT: Duration = Duration::from_secs(1);
/// Time after which a listener on the remote address counts as the server that a client connects to.
const REMOTE_SERVER_AFTER: Duration = Duration::from_millis(50);
/// Interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit of a check; connecting to a port of this machine takes no time.
const CHECK_TIMEOUT: Duration = Duration::from_millis(200);

/// Determines the side by the form of the addresses alone.
pub(super) fn side_by_form(remotes: &[Target]) -> Option<Role> {
    let any = |target: &Target| matches!(target.host, Host::Ip(ip) if ip.is_unspecified());
    (remotes.len() > 1 || remotes.iter().any(any)).then_some(Role::Server)
}

/// Determines the side by trying the addresses.
pub(super) async fn side_by_probing(remote: &Target, local: &Target) -> Role {
    let ours: Vec<SocketAddr> = resolve_addrs(remote)
        .await
        .into_iter()
        .filter(is_local_addr)
        .collect();
    if ours.is_empty() {
        return Role::Client;
    }
    let host = resolve_addrs(local).await;
    let begin = Instant::now();
    while begin.elapsed() < HOST_START_TIMEOUT {
        if is_listening(&host).await {
            return Role::Server;
        }
        if begin.elapsed() >= REMOTE_SERVER_AFTER && is_listening(&ours).await {
            return Role::Client;
        }
        sleep(CHECK_INTERVAL).await;
    }
    Role::Client
}

async fn resolve_addrs(target: &Target) -> Vec<SocketAddr> {
    match &target.host {
        Host::Ip(ip) => vec![SocketAddr::new(*ip, target.port)],
        Host::Name(name) => {
            let found = dial::resolve(name.as_str(), target.port, Family::Any).await;
            found.unwrap_or_default()
        }
    }
}

/// Returns true if a socket can be bound to the IP address. Uses any port, so that nothing conflicts.
fn is_local_addr(addr: &SocketAddr) -> bool {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    };
    let any_port = SocketAddr::new(addr.ip(), 0);
    socket.is_ok_and(|socket| socket.bind(any_port).is_ok())
}

/// Returns true if a connection to any of the addresses is accepted.
async fn is_listening(addrs: &[SocketAddr]) -> bool {
    for addr in addrs {
        if let Ok(Ok(stream)) = timeout(CHECK_TIMEOUT, TcpStream::connect(addr)).await {
            // A free port may be chosen as the local one: then the socket has connected to itself.
            let own = stream.local_addr().is_ok_and(|own| own == *addr);
            if !own {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn targets(texts: &[&str]) -> Vec<Target> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn wildcards_and_lists_are_a_servers() {
        for texts in [
            &["0.0.0.0:1"][..],
            &["[::]:1"],
            &["192.0.2.1:1", "192.0.2.2:1"],
        ] {
            assert_eq!(side_by_form(&targets(texts)), Some(Role::Server));
        }
        for texts in [&["192.0.2.1:1"][..], &["a.example:1"], &["127.0.0.1:1"]] {
            assert_eq!(side_by_form(&targets(texts)), None);
        }
    }

    #[tokio::test]
    async fn who_listens_tells_the_rest() {
        let free = || async {
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            socket.local_addr().unwrap()
        };
        let somebody = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken: Target = somebody.local_addr().unwrap().into();
        let (one, other): (Target, Target) = (free().await.into(), free().await.into());
        // An address of another machine (RFC 5737).
        let far = "192.0.2.1:443".parse().unwrap();
        assert_eq!(side_by_probing(&far, &one).await, Role::Client);
        assert_eq!(side_by_probing(&one, &taken).await, Role::Server);
        assert_eq!(side_by_probing(&taken, &one).await, Role::Client);
        assert_eq!(side_by_probing(&one, &other).await, Role::Client);
        // A host that starts to listen late.
        let late = other.clone();
        let host = tokio::spawn(async move {
            sleep(Duration::from_millis(200)).await;
            let addr: SocketAddr = late.to_string().parse().unwrap();
            let socket = TcpListener::bind(addr).await.unwrap();
            sleep(Duration::from_secs(5)).await;
            drop(socket);
        });
        assert_eq!(side_by_probing(&one, &other).await, Role::Server);
        host.abort();
    }
}
