//! Documents over HTTPS: valid certificates, and limits.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use adit_admin::subscription::{FetchError, Fetcher, Source, TrustedRoots};
use adit_engine::NameResolver;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const LIMIT: usize = 10_000;

fn certificate(name: &str) -> CertificateDer<'static> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/tls");
    CertificateDer::from_pem_file(folder.join(name)).unwrap()
}

/// Returns a fetcher that trusts the authority of the tests.
fn trusting() -> Fetcher {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("authority.pem")).unwrap();
    Fetcher::new(TrustedRoots::Only(Arc::new(roots)), LIMIT)
}

/// Starts a server that answers every request with these bytes.
async fn server(with: &str, answer: String) -> SocketAddr {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/tls");
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate(with)], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = vec![0; 4096];
            let n = stream.read(&mut head).await.unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..n]).to_ascii_lowercase();
            assert!(
                head.starts_with("get /") && head.contains("host: "),
                "{head}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    at
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn get(fetcher: &Fetcher, address: &str) -> Result<String, FetchError> {
    let source: Source = address.parse().unwrap();
    fetcher
        .get(&source, &NameResolver::system())
        .await
        .map(|text| text.to_string())
}

#[tokio::test]
async fn a_good_certificate_is_needed() {
    let good = server("server.pem", ok("{}")).await;
    let expired = server("expired.pem", ok("{}")).await;
    let port = good.port();
    for address in [
        format!("https://127.0.0.1:{port}/x"),
        format!("https://localhost:{port}/x"),
        format!("ssconf://localhost:{port}/x#name"),
    ] {
        assert_eq!(get(&trusting(), &address).await.unwrap(), "{}", "{address}");
    }
    let tls = |got: Result<String, FetchError>| matches!(got, Err(FetchError::Tls { .. }));
    let address = format!("https://localhost:{}/x", expired.port());
    assert!(tls(get(&trusting(), &address).await), "expired");
    // An address that is not in the certificate.
    let other = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let at = other.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = other.accept().await {
            let mut to = tokio::net::TcpStream::connect(good).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
        }
    });
    assert!(
        tls(get(&trusting(), &format!("https://{at}/x")).await),
        "another name"
    );
    // The authorities of this machine, if it has any, have not signed it.
    let machine = Fetcher::new(TrustedRoots::Machine, LIMIT);
    let got = get(&machine, &format!("https://localhost:{port}/x")).await;
    assert!(
        matches!(got, Err(FetchError::Tls { .. } | FetchError::Setup(_))),
        "{got:?}"
    );
}

#[tokio::test]
async fn redirections_are_followed_in_tls_alone() {
    let last = server("server.pem", ok("here")).await;
    let to = |location: String| {
        format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
    };
    let first = server(
        "server.pem",
        to(format!("https://localhost:{}/y", last.port())),
    )
    .await;
    let got = get(
        &trusting(),
        &format!("https://localhost:{}/x", first.port()),
    )
    .await;
    assert_eq!(got.unwrap(), "here");
    for location in [
        format!("http://127.0.0.1:{}/", last.port()),
        "/again".to_owned(),
        "ftp://x/".to_owned(),
    ] {
        let at = server("server.pem", to(location.clone())).await;
        let got = get(&trusting(), &format!("https://localhost:{}/x", at.port())).await;
        assert!(
            matches!(got, Err(FetchError::Redirected)),
            "{location}: {got:?}"
        );
    }
}

#[tokio::test]
async fn too_much_and_too_little_are_refused() {
    let long = "x".repeat(LIMIT + 1);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort".to_owned();
    for (answer, kind) in [
        (ok(&"x".repeat(LIMIT)), "text"),
        (ok(&long), "long"),
        (chunked, "long"),
        (cut, "broken"),
        ("nonsense".to_owned(), "broken"),
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "status",
        ),
    ] {
        let start = answer.get(..40.min(answer.len())).unwrap().to_owned();
        let at = server("server.pem", answer).await;
        let got = get(&trusting(), &format!("https://localhost:{}/x", at.port())).await;
        let found = match &got {
            Ok(_) => "text",
            Err(FetchError::TooLong(_)) => "long",
            Err(FetchError::Broken(_)) => "broken",
            Err(FetchError::Status(_)) => "status",
            Err(_) => "other",
        };
        assert_eq!(found, kind, "{start}: {got:?}");
    }
}
