//! `adit up`: a server and a client in one process, to try adit.

use std::net::SocketAddr;
use std::time::Duration;

use adit_cli::{CommandResult, Failure};
use adit_config::{Plan, link};
use adit_engine::Engine;
use adit_shadowsocks::{Key, Method};
use adit_wire::{Host, Target, subslice, subslice_mut};
use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::run;
use crate::{args, fastest_method, json};

/// First port to try for the proxy, and the number of ports to try.
const PORT: u16 = 1080;
const PORT_TRIES: u16 = 100;
/// Size of the page of the test request, in bytes.
const PAGE_LEN: usize = 256 << 10;

pub(super) fn run_trial(typed: &args::UpArgs) -> CommandResult {
    let method = fastest_method::measure_methods()
        .first()
        .map_or(Method::Blake3Aes128Gcm, |p| p.method);
    let is_json = typed.json.json;
    adit_cli::block_on(|mut signals| async {
        let pair = signals
            .run_until_ended(TrialPair::start(method, is_json))
            .await?;
        eprintln!("listening on {}", pair.server_at);
        eprintln!("listening on {}", pair.proxy);
        let proxy = pair.proxy;
        match (is_json, typed.once) {
            (true, true) => json::print_result("up", &pair.about()),
            (true, false) => json::print_event("up", "listening", &pair.about()),
            (false, _) => {}
        }
        if typed.once {
            pair.server.drain_and_stop(Duration::ZERO).await;
            return Ok(());
        }
        if !is_json {
            println!("\nSOCKS5 and HTTP proxy on {proxy}. Try it:");
            println!("  curl -x socks5h://{proxy} https://example.com/");
            println!(
                "On two machines: `adit server` there, `adit client URL` here. Ctrl-C stops this."
            );
        }
        let done = run::serve_until_signal(pair.client, signals).await;
        pair.server.drain_and_stop(Duration::ZERO).await;
        done
    })
}

/// A server and a client that have carried a request.
struct TrialPair {
    method: Method,
    key_id: String,
    server: Engine,
    server_at: SocketAddr,
    client: Engine,
    proxy: SocketAddr,
    took: Duration,
}

impl TrialPair {
    /// Starts a server and a client and sends a request through them.
    async fn start(method: Method, is_json: bool) -> Result<Self, Failure> {
        let (key, secret) = Key::generate(method, &mut adit_net::system::SystemRng);
        let loopback = Host::Ip(SocketAddr::from(([127, 0, 0, 1], 0)).ip());
        let server = link::shadowsocks_link(method, &secret, &loopback, 0) + "?allow_private=all";
        let server = Engine::start(&Plan::from_words(&[server])?).await?;
        let server_at = first_address(&server)?;
        let url = link::shadowsocks_link(method, &secret, &loopback, server_at.port());
        let (client, proxy) = start_client(&url).await?;
        let key_id = key.id().to_string();
        if !is_json {
            if proxy.port() != PORT {
                println!(
                    "note     127.0.0.1:{PORT} is in use: the proxy is on port {}",
                    proxy.port()
                );
            }
            println!("server   {server_at}  {method}  key-id {key_id}");
            println!("client   {proxy}  key-id {key_id}");
        }
        let took = fetch_through_proxy(proxy)
            .await
            .context("sending a request through client and server")?;
        if !is_json {
            println!(
                "carried  {} KiB through client and server in {:.1} ms, every byte correct",
                PAGE_LEN >> 10,
                took.as_secs_f64() * 1e3
            );
        }
        Ok(Self {
            method,
            key_id,
            server,
            server_at,
            client,
            proxy,
            took,
        })
    }

    /// Describes the pair for programs.
    fn about(&self) -> serde_json::Value {
        json!({
            "method": self.method.name(),
            "keyId": self.key_id,
            "server": self.server_at.to_string(),
            "proxy": self.proxy.to_string(),
            "carriedBytes": PAGE_LEN,
            "milliseconds": (self.took.as_secs_f64() * 1e4).round() / 10.0,
        })
    }
}

/// Starts the client on the first free port.
async fn start_client(url: &str) -> Result<(Engine, SocketAddr), Failure> {
    let mut last = None;
    for port in PORT..PORT + PORT_TRIES {
        let listen = format!("mixed://127.0.0.1:{port}");
        match Engine::start(&Plan::from_words(&[listen, url.to_owned()])?).await {
            Ok(engine) => {
                let at = first_address(&engine)?;
                return Ok((engine, at));
            }
            Err(e) => last = Some(e),
        }
    }
    Err(last.map_or_else(|| anyhow::anyhow!("no port to try").into(), Failure::from))
}

fn first_address(engine: &Engine) -> Result<SocketAddr> {
    engine
        .listeners()
        .first()
        .map(|l| l.addr)
        .context("no listener was opened")
}

/// Sends an HTTP request through the proxy to a server of this process, and returns the duration.
async fn fetch_through_proxy(proxy: SocketAddr) -> Result<Duration> {
    let page: Vec<u8> = (0..PAGE_LEN).map(|i| (i * 31 % 251) as u8).collect();
    let target = TcpListener::bind("127.0.0.1:0").await?;
    let to = Target::from(target.local_addr()?);
    let body = page.clone();
    let serve = tokio::spawn(async move {
        let (mut socket, _) = target.accept().await?;
        let mut head = [0; 1024];
        let mut have = 0;
        while !subslice(&head, ..have).ends_with(b"\r\n\r\n") {
            let n = socket.read(subslice_mut(&mut head, have..)).await?;
            if n == 0 {
                bail!("the request was cut short");
            }
            have += n;
        }
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE_LEN}\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(&body).await?;
        socket.shutdown().await?;
        Ok(())
    });
    let start = std::time::Instant::now();
    let fetch = async {
        let mut socket = TcpStream::connect(proxy).await?;
        let ask = format!("GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
        socket.write_all(ask.as_bytes()).await?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await?;
        if !answer.starts_with(b"HTTP/1.1 200 ") || !answer.ends_with(&page) {
            let line = answer.split(|b| *b == b'\r').next().unwrap_or_default();
            bail!(
                "the response differs from what the server sent: {}",
                line.escape_ascii()
            );
        }
        Ok(start.elapsed())
    };
    let took = timeout(Duration::from_secs(10), fetch)
        .await
        .context("no response within 10 s")??;
    serve.await??;
    Ok(took)
}
