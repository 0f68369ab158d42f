//! Measures the cost of a session: CPU seconds per GiB on each side, over a loopback socket.
//!
//! `ssh_speed [CIPHER[,MAC]] [GIB] [MS]` starts itself as the server and receives GIB from it, over a
//! link with a delay of MS milliseconds in each direction.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a tool for developers, run by hand"
)]

use std::env;
use std::fs;
use std::future::poll_fn;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_net::system::ThreadRng;
use adit_ssh::BoxFuture;
use adit_ssh::client::{Client, ClientConfig, HostKeyFn, Login};
use adit_ssh::server::{AuthPolicy, Incoming, KeyProof, Server, ServerConfig};
use adit_ssh_proto::algorithm::{Cipher, Mac};
use adit_ssh_proto::connection::SshChannelRequest;
use adit_ssh_proto::key::{AnyKey, KeySet, KeyType, PrivateKey};
use adit_stream::{Stream, Tcp, fill_to, finish_stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// A policy that accepts everyone: the server runs on loopback during one measurement.
struct Anybody;

impl AuthPolicy for Anybody {
    fn check_public_key<'a>(
        &'a self,
        _: &'a str,
        _: &'a AnyKey,
        _: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    match *args {
        ["serve"] => runtime.block_on(serve()),
        ref more => {
            let algorithms = more.first().copied().unwrap_or("aes128-gcm@openssh.com");
            let gib = more.get(1).map_or(2, |gib| gib.parse().unwrap());
            let delay = more.get(2).map_or(0, |ms| ms.parse().unwrap());
            runtime.block_on(measure(algorithms, gib, delay));
        }
    }
}

fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    let ticks = |n: usize| fields[n].parse::<u64>().unwrap();
    Duration::from_millis((ticks(12) + ticks(13)) * 10)
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyType::Ed25519, &mut ThreadRng).unwrap()
}

async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let config = ServerConfig::new(Arc::new(KeySet::from(vec![key()])));
    let (socket, _) = listener.accept().await.unwrap();
    let io = Box::new(Tcp::new(socket));
    let mut connection = Server::accept(io, &config, &Anybody).await.unwrap();
    while let Some(Incoming::Session(opening)) = connection.accept().await {
        let session = opening.accept().unwrap();
        let request = session.next_request().await.unwrap();
        let SshChannelRequest::Exec(number) = request.request else {
            return;
        };
        request.reply.grant();
        let mut left: usize = String::from_utf8(number).unwrap().parse().unwrap();
        let (control, mut channel, stderr) = session.into_parts();
        drop(stderr);
        let before = cpu();
        while left > 0 {
            let n = poll_fn(|cx| channel.poll_slot(cx, 1))
                .await
                .unwrap()
                .min(left);
            channel.commit(n).unwrap();
            left -= n;
        }
        finish_stream(&mut channel).await.unwrap();
        let mut end = Vec::new();
        let mut reader = channel.into_split().0;
        reader.read_to_end(&mut end).await.unwrap();
        println!("{}", (cpu() - before).as_millis());
        control.send_exit_status(0);
    }
}

/// Returns a port that forwards to another one, with a delay in each direction.
async fn far_away(port: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        let (near_in, near_out) = near.into_split();
        let (far_in, far_out) = far.into_split();
        tokio::spawn(slowly(near_in, far_out, delay));
        slowly(far_in, near_out, delay).await;
    });
    front
}

async fn slowly(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (put, mut get) = mpsc::channel::<(tokio::time::Instant, Vec<u8>)>(4096);
    tokio::spawn(async move {
        while let Some((at, bytes)) = get.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    loop {
        let mut bytes = Vec::with_capacity(128 << 10);
        match from.read_buf(&mut bytes).await {
            Ok(n) if n > 0 => {
                let at = tokio::time::Instant::now() + delay;
                if put.send((at, bytes)).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

async fn measure(algorithms: &str, gib: usize, delay: u64) {
    let mut server = Command::new(env::current_exe().unwrap())
        .arg("serve")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut port: u16 = lines.next().unwrap().unwrap().parse().unwrap();
    if delay > 0 {
        port = far_away(port, Duration::from_millis(delay)).await;
    }
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let login = Login::new("me").with_key(key());
    let mut config = ClientConfig::new(Arc::new(HostKeyFn(|_: &_| Ok(()))), login);
    let (cipher, mac) = algorithms.split_once(',').unwrap_or((algorithms, ""));
    config.transport.preferred.cipher = vec![Cipher::by_name(cipher).unwrap()];
    if let Some(mac) = Mac::by_name(mac) {
        config.transport.preferred.mac = vec![mac];
    }
    let session = Client::connect(Box::new(Tcp::new(socket)), config)
        .await
        .unwrap();
    let program = session.open_session().await.unwrap();
    let octets = gib << 30;
    let (start, before) = (Instant::now(), cpu());
    program.exec(octets.to_string()).await.unwrap();
    let mut channel = program.into_channel();
    let mut got = 0;
    loop {
        let n = fill_to(&mut channel, 1).await.unwrap();
        if n == 0 {
            break;
        }
        got += n;
        channel.consume(n);
    }
    finish_stream(&mut channel).await.unwrap();
    let (took, own) = (start.elapsed(), cpu() - before);
    assert_eq!(got, octets);
    let theirs: u64 = lines.next().unwrap().unwrap().parse().unwrap();
    let theirs = Duration::from_millis(theirs);
    #[allow(clippy::cast_precision_loss, reason = "a few")]
    let each = |time: Duration| time.as_secs_f64() / gib as f64;
    println!(
        "{algorithms}: client {:.2}, server {:.2}, both {:.2} CPU s/GiB; {:.2} s/GiB; rtt {:?}",
        each(own),
        each(theirs),
        each(own + theirs),
        each(took),
        session.rtt()
    );
    std::io::stdout().flush().unwrap();
    drop(session);
    server.kill().unwrap();
    server.wait().unwrap();
}
