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

const EXCHANGES: u32 = 3;

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
    for _ in 0..EXCHANGES {
        runtime.block_on(async {
            let guest = Guest {
                host: Some(host.clone()),
                log: Log::default(),
                arrived: tokio::sync::mpsc::channel(1).0,
            };
            let to = ("127.0.0.1", port);
            let client = client::connect(Arc::clone(&config), to, guest).await;
            let key = PrivateKeyWithHashAlg::new(Arc::new(id.clone()), None::<HashAlg>);
            let entered = client.unwrap().authenticate_publickey("me", key).await;
            assert!(entered.unwrap().success());
        });
    }
    let clients = spent() - before;
    handle.shutdown(String::new());
    let servers = server.join().unwrap();
    assert!(
        servers < clients / 3,
        "{EXCHANGES} exchanges: {servers:?} on the server's thread, {clients:?} on the client's"
    );
}
