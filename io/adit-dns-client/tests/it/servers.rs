//! Servers for tests.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_dns::{CacheLimits, ClientQuery};
use adit_dns_client::tls::TrustedRoots;
use adit_dns_client::{DirectPath, DnsClient, DnsServer, RemoteServer, Transport};
use adit_wire::{Host, Target};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio_rustls::TlsAcceptor;

/// The address of every name, unless a server has another.
pub(crate) const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicUsize,
    pub(crate) queries: AtomicUsize,
    /// Lengths of the queries.
    pub(crate) lengths: Mutex<Vec<usize>>,
}

impl Seen {
    pub(crate) fn counts(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (load(&self.connections), load(&self.queries))
    }

    fn count(&self, query: &[u8]) {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.lengths.lock().unwrap().push(query.len());
    }
}

/// Returns the answer to a query: [`ADDRESS`] for every name.
pub(crate) fn answer(query: &[u8]) -> Vec<u8> {
    let query = ClientQuery::parse(query).unwrap();
    query.address_reply(&[ADDRESS], Duration::from_secs(60))
}

/// Returns sockets of both kinds with the same port.
pub(crate) async fn same_port() -> (UdpSocket, TcpListener) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Another test may have it.
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (socket, listener);
        }
    }
}

/// Starts a server of datagrams that sends the messages of `reply`.
pub(crate) async fn udp<F>(reply: F) -> (SocketAddr, Arc<Seen>)
where
    F: FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
{
    udp_on(UdpSocket::bind("127.0.0.1:0").await.unwrap(), reply)
}

/// The same with a given socket.
pub(crate) fn udp_on<F>(socket: UdpSocket, mut reply: F) -> (SocketAddr, Arc<Seen>)
where
    F: FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
{
    let address = socket.local_addr().unwrap();
    let seen = Arc::<Seen>::default();
    let counters = seen.clone();
    tokio::spawn(async move {
        let mut room = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut room).await {
            counters.count(&room[..len]);
            for message in reply(counters.counts().1, &room[..len]) {
                let _ = socket.send_to(&message, from).await;
            }
        }
    });
    (address, seen)
}

/// Starts a server of streams. `per_connection` queries are answered in the reverse order, then the connection is
/// closed; with 0, each one at once and without an end.
pub(crate) async fn tcp(per_connection: usize) -> (SocketAddr, Arc<Seen>) {
    tcp_on(
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        per_connection,
    )
}

/// The same with a given listener.
pub(crate) fn tcp_on(listener: TcpListener, per_connection: usize) -> (SocketAddr, Arc<Seen>) {
    let address = listener.local_addr().unwrap();
    let seen = Arc::<Seen>::default();
    let counters = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counters.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve_stream(stream, counters.clone(), per_connection));
        }
    });
    (address, seen)
}

/// Starts a server of TLS, with the certificate of this file.
pub(crate) async fn tls(certificate: &str, per_connection: usize) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::<Seen>::default();
    let counters = seen.clone();
    let acceptor = acceptor(certificate, &[]);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else {
                continue;
            };
            counters.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve_stream(stream, counters.clone(), per_connection));
        }
    });
    (address, seen)
}

/// Starts a server of HTTPS that has these protocols, and closes its connections after this time.
pub(crate) async fn https(protocols: &[&[u8]], close_after: Duration) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::<Seen>::default();
    let counters = seen.clone();
    let acceptor = acceptor("server.pem", protocols);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else {
                continue;
            };
            counters.connections.fetch_add(1, Ordering::SeqCst);
            let counters = counters.clone();
            let service = service_fn(move |request| serve_request(request, counters.clone()));
            let is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let stream = TokioIo::new(stream);
            tokio::spawn(tokio::time::timeout(close_after, async move {
                if is_two {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(stream, service).await;
                } else {
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(stream, service).await;
                }
            }));
        }
    });
    (address, seen)
}

async fn serve_request(
    request: Request<Incoming>,
    seen: Arc<Seen>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!(request.method(), "POST");
    assert_eq!(request.headers()["content-type"], "application/dns-message");
    assert_eq!(request.headers()["accept"], "application/dns-message");
    let kind = match request.uri().path() {
        "/text" => "text/html",
        _ => "application/dns-message",
    };
    let found = request.uri().path() != "/none";
    let body = request.into_body().collect().await?.to_bytes();
    assert_eq!(body[..2], [0, 0], "the number is 0");
    seen.count(&body);
    let response = Response::builder().header("content-type", kind);
    let response = match found {
        true => response.body(Full::new(answer(&body).into())),
        false => response.status(404).body(Full::default()),
    };
    Ok(response.unwrap())
}

async fn serve_stream<S>(mut stream: S, seen: Arc<Seen>, per_connection: usize)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut replies = Vec::new();
    while let Ok(len) = stream.read_u16().await {
        let mut query = vec![0; len.into()];
        if stream.read_exact(&mut query).await.is_err() {
            return;
        }
        seen.count(&query);
        let reply = answer(&query);
        let mut framed = u16::try_from(reply.len()).unwrap().to_be_bytes().to_vec();
        framed.extend(reply);
        replies.push(framed);
        if replies.len() >= per_connection {
            while let Some(reply) = replies.pop() {
                // In two parts, as a network may deliver it.
                let (first, second) = reply.split_at(5);
                for part in [first, second] {
                    if stream.write_all(part).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
            }
            if per_connection > 0 {
                let _ = stream.shutdown().await;
                return;
            }
        }
    }
}

pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/adit-admin/vectors/tls")
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(vectors().join(name)).unwrap()
}

fn acceptor(with: &str, protocols: &[&[u8]]) -> TlsAcceptor {
    let key = PrivateKeyDer::from_pem_file(vectors().join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate(with)], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Returns the authorities of the tests.
pub(crate) fn roots() -> TrustedRoots {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("authority.pem")).unwrap();
    TrustedRoots::Only(Arc::new(roots))
}

/// Returns a server at this address, whose certificate is that of `localhost`.
pub(crate) fn remote(transport: Transport, at: SocketAddr) -> RemoteServer {
    let mut server = RemoteServer::new(transport, Target::from(at));
    server.host = Host::parse("localhost").unwrap();
    server
}

/// Returns a client of these servers, which trusts the authority of the tests.
pub(crate) fn client(servers: impl IntoIterator<Item = RemoteServer>) -> DnsClient {
    let servers = servers.into_iter().map(DnsServer::Remote).collect();
    let cache = Some(CacheLimits::default());
    DnsClient::new(servers, Arc::new(DirectPath), cache, &roots())
}
