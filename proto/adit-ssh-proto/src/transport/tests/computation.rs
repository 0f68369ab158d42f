//! A server's computation is handed out, and its result returned.

use super::super::OpenStep;
use super::{End, Link, data, settings};
use crate::SshError;
use crate::algorithm::Kex;

/// Returns a link whose server computes nothing itself.
fn link(kex: Kex) -> Link {
    let mut config = settings();
    config.preferred.kex = vec![kex];
    let mut link = Link::new(config.clone(), config);
    link.server.transport.defer_computations();
    link
}

/// Exchanges messages and runs the requested computations; returns their number.
fn talk(link: &mut Link) -> usize {
    let mut computed = 0;
    for _ in 0..100 {
        let up = link.client.said();
        link.server.hear_until_blocked(&up).unwrap();
        while let Some(computation) = link.server.transport.take_computation() {
            assert!(link.server.transport.take_computation().is_none());
            let blocked = link.server.transport.open_next(&mut []).unwrap();
            assert_eq!(blocked, OpenStep::Blocked);
            let done = computation.run();
            link.server.transport.finish_computation(done).unwrap();
            computed += 1;
            link.server.hear_until_blocked(&[]).unwrap();
        }
        let down = link.server.said();
        link.client.hear(&down).unwrap();
        if up.is_empty() && down.is_empty() {
            return computed;
        }
    }
    panic!("they never fall silent");
}

#[test]
fn every_method_with_every_message() {
    for kex in Kex::ALL {
        let mut link = link(*kex);
        let messages = if *kex == Kex::GroupExchange { 2 } else { 1 };
        assert_eq!(talk(&mut link), messages, "{kex}");
        link.let_in();
        link.client.transport.rekey().unwrap();
        // Payloads sent meanwhile are queued.
        link.client.transport.send(&data(1, 100)).unwrap();
        link.server.transport.send(&data(2, 100)).unwrap();
        assert_eq!(talk(&mut link), messages, "{kex}");
        assert_eq!((link.client.keys(), link.server.keys()), (2, 2), "{kex}");
        assert_eq!(link.server.payloads, [data(1, 100)], "{kex}");
        assert_eq!(link.client.payloads, [data(2, 100)], "{kex}");
    }
}

#[test]
fn what_fails_elsewhere_fails_here() {
    let mut link = link(Kex::Curve25519);
    let up = link.client.said();
    link.server.hear_until_blocked(&up).unwrap();
    let down = link.server.said();
    link.client.hear(&down).unwrap();
    let _ = link.client.said();
    // A point of small order.
    let point = [&[30, 0, 0, 0, 32][..], &[0; 32]].concat();
    let server: &mut End = &mut link.server;
    server.hear_until_blocked(&super::clear(&point)).unwrap();
    let computation = server.transport.take_computation().unwrap();
    let failed = server.transport.finish_computation(computation.run());
    assert!(matches!(failed, Err(SshError::Kex(_))), "{failed:?}");
    assert!(!server.said().is_empty(), "the client learns why");
    assert!(server.transport.open_next(&mut []).is_err());
}
