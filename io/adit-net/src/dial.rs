//! Resolution of names to addresses in the order in which they are tried (see [`names`](crate::names)), and
//! the race between these addresses (RFC 8305).

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use adit_wire::unmap_ipv4;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use crate::names::{LookupOrigin, Resolver, no_address};
use crate::tcp::{self, FastOpen};

/// Head start of each address over the next one.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Maximum number of addresses of one name that are tried.
const MAX_CANDIDATES: usize = 16;

/// Preference or restriction of the address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// The resolver's order, families interleaved.
    #[default]
    Any,
    /// IPv4 first.
    V4First,
    /// IPv6 first.
    V6First,
    /// IPv4 only.
    V4Only,
    /// IPv6 only.
    V6Only,
}

/// Resolves `name` to addresses, in the order in which they are to be tried. The query counts against
/// [`LookupOrigin::current`].
///
/// # Errors
/// The lookup fails, or there is no address of the requested family.
///
/// # Cancel safety
/// Cancel safe. The lookup ends with its last caller.
pub async fn resolve(name: &str, port: u16, family: Family) -> io::Result<Vec<SocketAddr>> {
    let found = Resolver::system()
        .look_up(name, LookupOrigin::current())
        .await?;
    let with_port = found.iter().map(|addr| match unmap_ipv4(addr.ip()) {
        ip if ip == addr.ip() => {
            let mut addr = *addr;
            addr.set_port(port);
            addr
        }
        ip => SocketAddr::new(ip, port),
    });
    let all = order_candidates(with_port.collect(), family);
    if all.is_empty() {
        Err(no_address("no address of the requested family"))
    } else {
        Ok(all)
    }
}

/// Interleaves the families (RFC 8305 section 4) and drops excluded addresses. Returns at most 16.
#[must_use]
pub fn order_candidates(found: Vec<SocketAddr>, family: Family) -> Vec<SocketAddr> {
    let v6_first = match family {
        Family::Any => found.first().is_some_and(SocketAddr::is_ipv6),
        Family::V6First | Family::V6Only => true,
        Family::V4First | Family::V4Only => false,
    };
    let (mut v6, mut v4): (VecDeque<_>, VecDeque<_>) =
        found.into_iter().partition(SocketAddr::is_ipv6);
    match family {
        Family::V4Only => v6.clear(),
        Family::V6Only => v4.clear(),
        _ => {}
    }
    let (mut first, mut second) = if v6_first { (v6, v4) } else { (v4, v6) };
    let mut out: Vec<SocketAddr> = Vec::new();
    while out.len() < MAX_CANDIDATES && !(first.is_empty() && second.is_empty()) {
        for next in [first.pop_front(), second.pop_front()]
            .into_iter()
            .flatten()
        {
            if !out.contains(&next) {
                out.push(next);
            }
        }
    }
    out
}

/// Connects to the first candidate that answers; each has a head start of 250 ms over the next.
///
/// # Errors
/// If all fail, the most informative error: refused, then timed out, then unreachable.
/// [`TimedOut`](io::ErrorKind::TimedOut) after `deadline`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use adit_net::{dial, tcp};
///
/// let listener = tcp::listen("127.0.0.1:0".parse()?)?;
/// let candidates = [listener.local_addr()?];
/// let stream = dial::connect_first(&candidates, Duration::from_secs(5)).await?;
/// assert_eq!(stream.peer_addr()?, candidates[0]);
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// If the call is cancelled, all attempts end and their connections are closed.
pub async fn connect_first(candidates: &[SocketAddr], deadline: Duration) -> io::Result<TcpStream> {
    timeout(deadline, connect_first_with(candidates, FastOpen::Off))
        .await
        .unwrap_or_else(|_| Err(connect_timeout_error()))
}

/// Like [`connect_first`] without a deadline; each attempt uses TCP Fast Open if it is on.
///
/// # Errors
/// If all attempts fail, the most informative error, as with [`connect_first`];
/// [`HostUnreachable`](io::ErrorKind::HostUnreachable) without candidates.
///
/// # Cancel safety
/// If the future is dropped, all attempts end and their connections are closed.
pub async fn connect_first_with(
    candidates: &[SocketAddr],
    fast_open: FastOpen,
) -> io::Result<TcpStream> {
    match candidates {
        [only] => tcp::connect_with_fast_open(*only, fast_open).await,
        many => connect_concurrently(many, fast_open).await,
    }
}

/// Returns the error for a connection attempt whose deadline has passed.
#[must_use]
pub fn connect_timeout_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "no answer to the connection attempt",
    )
}

type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

async fn connect_concurrently(
    candidates: &[SocketAddr],
    fast_open: FastOpen,
) -> io::Result<TcpStream> {
    let mut waiting = candidates.iter().copied();
    let mut running: Vec<Attempt> = Vec::new();
    let mut worst: Option<io::Error> = None;
    let mut head_start = pin!(sleep_until(Instant::now()));
    std::future::poll_fn(|cx| {
        loop {
            let mut at = 0;
            while let Some(attempt) = running.get_mut(at) {
                match attempt.as_mut().poll(cx) {
                    Poll::Pending => at += 1,
                    Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(e)) => {
                        worst = Some(match worst.take() {
                            Some(old) if error_rank(&old) >= error_rank(&e) => old,
                            _ => e,
                        });
                        drop(running.swap_remove(at));
                    }
                }
            }
            if !running.is_empty() && head_start.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match waiting.next() {
                Some(addr) => {
                    running.push(Box::pin(tcp::connect_with_fast_open(addr, fast_open)));
                    head_start.as_mut().reset(Instant::now() + ATTEMPT_DELAY);
                }
                None if running.is_empty() => {
                    return Poll::Ready(Err(worst
                        .take()
                        .unwrap_or_else(|| no_address("no address to connect to"))));
                }
                None => return Poll::Pending,
            }
        }
    })
    .await
}

fn error_rank(e: &io::Error) -> u8 {
    match e.kind() {
        io::ErrorKind::ConnectionRefused => 4,
        io::ErrorKind::TimedOut => 3,
        io::ErrorKind::HostUnreachable => 2,
        io::ErrorKind::NetworkUnreachable => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addrs(text: &str) -> Vec<SocketAddr> {
        text.split(' ').map(|a| a.parse().unwrap()).collect()
    }

    #[test]
    fn families_are_interleaved() {
        let found = addrs("[::1]:1 [::2]:1 [::2]:1 1.1.1.1:1 2.2.2.2:1");
        assert_eq!(
            order_candidates(found.clone(), Family::Any),
            addrs("[::1]:1 1.1.1.1:1 [::2]:1 2.2.2.2:1")
        );
        assert_eq!(
            order_candidates(found.clone(), Family::V4First)[0],
            addrs("1.1.1.1:1")[0]
        );
        assert_eq!(
            order_candidates(found.clone(), Family::V4Only),
            addrs("1.1.1.1:1 2.2.2.2:1")
        );
        assert_eq!(
            order_candidates(found, Family::V6Only),
            addrs("[::1]:1 [::2]:1")
        );
    }

    #[tokio::test]
    async fn a_dead_first_address_costs_no_more_than_its_refusal() {
        let dead = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let live = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let live_addr = live.local_addr().unwrap();
        let stream = connect_first(&[dead, live_addr], Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(stream.peer_addr().unwrap(), live_addr);
        let e = connect_first(&[dead, dead], Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn names_resolve_or_say_so() {
        let found = resolve("localhost", 7, Family::V4Only).await.unwrap();
        assert_eq!(found, addrs("127.0.0.1:7"));
        let e = resolve("no-such-name.invalid", 7, Family::Any)
            .await
            .unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::HostUnreachable);
    }
}
