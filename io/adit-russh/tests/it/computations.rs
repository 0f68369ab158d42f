//! The cost of a key exchange and a signature on a server.

use std::borrow::Cow;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use adit_russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg};
use adit_russh::server::Server as _;
use adit_russh::{Preferred, client, kex, server};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::world::{Guest, Host, Log, new_key};

/// Of these, the cheapest counts: interrupts and the first use of a page cost a thread its time too.
const ROUNDS: usize = 5;

/// Returns the CPU time of the calling thread.
fn spent() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn costly() -> Preferred {
    Preferred {
        kex: Cow::Borrowed(&[kex::DH_G16_SHA512]),
        ..Preferred::DEFAULT
    }
}

struct Hosts(PrivateKey);

impl server::Server for Hosts {
    type Handler = Host;

    fn new_client(&mut self, from: Option<std::net::SocketAddr>) -> Host {
        assert!(from.unwrap().ip().is_loopback());
        Host::new(self.0.clone(), Log::default())
    }
}

/// Both ends compute the same, each on a single-threaded runtime; the server uses other threads.
#[test]
fn nothing_is_computed_on_the_thread_of_the_connections() {
    let rounds: Vec<_> = (0..ROUNDS).map(|_| cost_of_a_connection()).collect();
    let server = rounds.iter().map(|(server, _)| server).min().unwrap();
    let client = rounds.iter().map(|(_, client)| client).min().unwrap();
    assert!(
        *server < *client / 2,
        "server's thread and client's thread: {rounds:?}"
    );
}

/// Returns the CPU time of the threads of a server and of a client, for a key exchange and a login.
fn cost_of_a_connection() -> (Duration, Duration) {
    let (host, id) = (new_key(), new_key());
    let (tell, told) = mpsc::channel();
    let (keys, mut hosts) = (vec![host.clone()], Hosts(id.clone()));
    let server = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let config = server::Config {
                keys,
                preferred: costly(),
                ..Default::default()
            };
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let running = hosts.run_on_socket(Arc::new(config), &socket);
            let port = socket.local_addr().unwrap().port();
            tell.send((port, running.handle())).unwrap();
            let before = spent();
            running.await.unwrap();
            spent() - before
        })
    });
    let (port, handle) = told.recv().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let config = Arc::new(client::Config {
        preferred: costly(),
        ..Default::default()
    });
    let before = spent();
    runtime.block_on(async {
        let guest = Guest {
            host: Some(host),
            log: Log::default(),
            arrived: tokio::sync::mpsc::channel(1).0,
        };
        let client = client::connect(config, ("127.0.0.1", port), guest).await;
        let key = PrivateKeyWithHashAlg::new(Arc::new(id), None::<HashAlg>);
        let entered = client.unwrap().authenticate_publickey("me", key).await;
        assert!(entered.unwrap().success());
    });
    let client = spent() - before;
    handle.shutdown(String::new());
    (server.join().unwrap(), client)
}
