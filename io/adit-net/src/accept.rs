//! An accept loop that no error ends (REL-1).

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::tcp;

/// A TCP listening socket with a descriptor in reserve.
///
/// When the process runs out of descriptors, the reserve is released for a moment to accept the waiting
/// connection and close it, so that its peer notices; then the loop pauses. It never spins and never ends.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_net::accept::{AcceptOutcome, TcpAcceptor};
/// use adit_net::tcp;
///
/// let mut acceptor = TcpAcceptor::new(tcp::listen("127.0.0.1:0".parse()?)?);
/// let client = tcp::connect(acceptor.local_addr()?).await?;
/// match acceptor.next().await {
///     AcceptOutcome::Connection(_, from) => assert_eq!(from, client.local_addr()?),
///     // The acceptor has paused already.
///     AcceptOutcome::Exhausted(why) => eprintln!("cannot accept connections: {why}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TcpAcceptor {
    socket: TcpListener,
    reserve: Option<File>,
    pause: Duration,
    /// True if connections inherit their options from the listening socket.
    inherits_options: bool,
    /// The local address of all connections, if there is only one.
    sole_addr: Option<SocketAddr>,
}

const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The outcome of one iteration of the accept loop.
///
/// The enum is exhaustive, so that no accept loop ignores an outcome.
#[derive(Debug)]
pub enum AcceptOutcome {
    /// A connection, with the options of [`tcp::set_stream_options`] set.
    Connection(TcpStream, SocketAddr),
    /// The system lacks a resource; the loop has already paused. Count it, and log it sparingly.
    Exhausted(io::Error),
}

impl TcpAcceptor {
    /// Creates an acceptor from a listening socket.
    #[must_use]
    pub fn new(socket: TcpListener) -> Self {
        Self {
            inherits_options: tcp::has_inheritable_options(&socket),
            sole_addr: sole_local_addr(&socket),
            socket,
            reserve: open_spare_descriptor(),
            pause: PAUSE_MIN,
        }
    }

    /// Returns the address of the listening socket.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the local address of a connection. This costs a system call if the listener has several
    /// addresses: on a wildcard, and where the firewall redirects connections meant for other addresses.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr_of(&self, stream: &TcpStream) -> io::Result<SocketAddr> {
        self.sole_addr.map_or_else(|| stream.local_addr(), Ok)
    }

    /// Waits for the next connection.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn next(&mut self) -> AcceptOutcome {
        loop {
            match self.socket.accept().await {
                Ok((stream, from)) => {
                    self.pause = PAUSE_MIN;
                    if self.reserve.is_none() {
                        self.reserve = open_spare_descriptor();
                    }
                    if !self.inherits_options {
                        tcp::set_stream_options(&stream);
                    }
                    return AcceptOutcome::Connection(stream, from);
                }
                // The peer closed the connection between its SYN and our accept: nothing is wrong on this
                // side.
                Err(e) if is_transient(&e) => {}
                Err(e) => {
                    if self.reserve.take().is_some() {
                        // With the reserve released one accept succeeds; dropping the connection closes it.
                        let shed = tokio::time::timeout(PAUSE_MIN, self.socket.accept()).await;
                        drop(shed);
                        self.reserve = open_spare_descriptor();
                    }
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                    return AcceptOutcome::Exhausted(e);
                }
            }
        }
    }
}

/// Returns the local address of all connections of a listener, if there can be only one.
fn sole_local_addr(listener: &TcpListener) -> Option<SocketAddr> {
    #[cfg(target_os = "linux")]
    if crate::transparent::is_transparent(listener) {
        return None;
    }
    let address = listener.local_addr().ok()?;
    (!address.ip().is_unspecified()).then_some(address)
}

fn open_spare_descriptor() -> Option<File> {
    File::open(if cfg!(windows) { "NUL" } else { "/dev/null" }).ok()
}

fn is_transient(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
    )
}

#[cfg(test)]
mod tests {
    use socket2::SockRef;

    use super::*;

    #[tokio::test]
    async fn both_ends_find_a_dead_peer_and_do_not_wait_to_send() {
        let ours = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let foreign = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for listener in [ours, foreign] {
            let mut acceptor = TcpAcceptor::new(listener);
            let at = acceptor.local_addr().unwrap();
            let (near, far) = tokio::join!(tcp::connect(at), acceptor.next());
            let AcceptOutcome::Connection(far, _) = far else {
                panic!("{far:?}");
            };
            for stream in [near.unwrap(), far] {
                let socket = SockRef::from(&stream);
                assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
                #[cfg(target_os = "linux")]
                {
                    let seconds = Duration::from_secs;
                    assert_eq!(socket.tcp_keepalive_time().unwrap(), seconds(60));
                    assert_eq!(socket.tcp_keepalive_interval().unwrap(), seconds(15));
                    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(seconds(120)));
                }
            }
        }
    }

    #[tokio::test]
    async fn a_connection_knows_where_it_came_to() {
        for at in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = tcp::listen(at.parse().unwrap()).unwrap();
            let mut acceptor = TcpAcceptor::new(listener);
            let mut at = acceptor.local_addr().unwrap();
            at.set_ip([127, 0, 0, 1].into());
            let (_near, far) = tokio::join!(tcp::connect(at), acceptor.next());
            let AcceptOutcome::Connection(far, _) = far else {
                panic!("{far:?}");
            };
            assert_eq!(acceptor.local_addr_of(&far).unwrap(), at);
            assert_eq!(far.local_addr().unwrap(), at);
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn options_are_set_once_for_all_connections_of_a_listener() {
        let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = listener.local_addr().unwrap();
        let (_near, accepted) = tokio::join!(tcp::connect(at), listener.accept());
        let (far, _) = accepted.unwrap();
        assert!(
            SockRef::from(&far).keepalive().unwrap(),
            "as it was accepted"
        );
        assert!(TcpAcceptor::new(listener).inherits_options);
    }

    /// Returns true if a client's connection has been closed without being served.
    #[cfg(target_os = "linux")]
    fn is_told(client: &std::net::TcpStream) -> bool {
        use std::io::{ErrorKind, Read};
        client
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        match (&mut &*client).read(&mut [0]) {
            Ok(n) => n == 0,
            Err(why) => why.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Runs in a separate process with hardly any descriptors: it runs this test again.
    #[cfg(target_os = "linux")]
    #[test]
    fn without_descriptors_every_client_is_told() {
        use rustix::process::{Resource, Rlimit, setrlimit};

        const ALONE: &str = "ADIT_TEST_FEW_DESCRIPTORS";
        if std::env::var_os(ALONE).is_none() {
            let name = "accept::tests::without_descriptors_every_client_is_told";
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.args([name, "--exact", "--nocapture"]).env(ALONE, "1");
            let done = again.output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(
                done.status.success() && said.contains("1 passed"),
                "{said}\n{}",
                String::from_utf8_lossy(&done.stderr)
            );
            return;
        }
        let few = Some(64);
        let limit = Rlimit {
            current: few,
            maximum: few,
        };
        setrlimit(Resource::Nofile, limit).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
            let at = listener.local_addr().unwrap();
            let mut acceptor = TcpAcceptor::new(listener);
            let clients: Vec<_> = (0..4)
                .map(|_| std::net::TcpStream::connect(at).unwrap())
                .collect();
            let fill = || -> Vec<File> { std::iter::from_fn(open_spare_descriptor).collect() };
            let all = fill();
            // The spare descriptor works repeatedly.
            for client in &clients {
                let turn = acceptor.next().await;
                assert!(matches!(turn, AcceptOutcome::Exhausted(_)), "{turn:?}");
                assert!(is_told(client));
            }
            // Another thread may have taken it; the next connection for which a descriptor is available
            // restores it.
            acceptor.reserve = None;
            drop((clients, all));
            let clients: Vec<_> = (0..2)
                .map(|_| std::net::TcpStream::connect(at).unwrap())
                .collect();
            let served = acceptor.next().await;
            assert!(
                matches!(served, AcceptOutcome::Connection(..)),
                "{served:?}"
            );
            let _all = fill();
            let turn = acceptor.next().await;
            assert!(matches!(turn, AcceptOutcome::Exhausted(_)), "{turn:?}");
            assert!(is_told(&clients[1]));
        });
    }
}
