//! `/readyz`, which differs from `/healthz` while the process ends.

use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::TEST_TIMEOUT;
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::Destination;
use rustix::process::Signal;

use crate::admin::world::{ANNA, KEY, METHOD, World, anna, server_url, session};

#[test]
fn a_process_that_ends_is_healthy_and_not_ready() {
    let mut world = World::start(&server_url(), &anna());
    let host = format!("Host: {}", world.api);
    // Both need no token.
    let ready = world.raw("GET /readyz", &[&host], "");
    assert_eq!((ready.status, ready.body.as_str()), (200, "ready\n"));
    assert_eq!(world.raw("POST /readyz", &[&host], "").status, 405);

    let origin = OriginServer::start().unwrap();
    let client = world.client(METHOD, &format!("{KEY}:{ANNA}"));
    let open: TcpStream = session(client.addr(), &Destination::Addr(origin.addr()));
    world.adit.process().send_signal(Signal::TERM).unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
    let drained = loop {
        let reply = world.raw("GET /readyz", &[&host], "");
        if reply.status == 503 || Instant::now() > deadline {
            break reply;
        }
        sleep(Duration::from_millis(20));
    };
    assert_eq!((drained.status, drained.body.as_str()), (503, "draining\n"));
    assert_eq!(world.raw("GET /healthz", &[&host], "").status, 200);
    world.number("/metrics", "\nadit_draining", 1);
    drop(open);
    client.stop().unwrap();
    let end = world.adit.process().wait(TEST_TIMEOUT).unwrap();
    assert_eq!(end.code(), Some(0));
}
