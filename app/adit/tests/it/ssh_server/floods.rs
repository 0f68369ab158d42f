//! Unauthenticated peers that request key exchanges repeatedly, at both servers of adit.

use std::thread;

use adit_interop::TempFolder;
use adit_interop::openssh::generate_key;
use adit_ssh_proto::algorithm::{Cipher, Kex, KeyAlgorithm, Mac};
use adit_ssh_proto::kex::write_kexinit;
use adit_ssh_proto::transport::TransportConfig;

use super::world::Host;
use crate::setup::{ALLOW, start};
use crate::ssh_hop::Ours;
use crate::ssh_transport::{Talk, only, reason};

fn lists() -> TransportConfig {
    only(
        Kex::Curve25519,
        KeyAlgorithm::Ed25519,
        Cipher::Aes128Gcm,
        Mac::HmacSha256,
    )
}

#[test]
fn a_second_key_exchange_before_the_login_ends_the_connection() {
    let (host, listener) = (Host::start(&[]), Ours::start(""));
    for port in [host.port(), listener.adit.addr().port()] {
        let mut talk = Talk::client(port, lists()).unwrap();
        talk.handshake().unwrap();
        let mut again = Vec::new();
        write_kexinit(&lists().preferred, &[], [7; 16], &mut again);
        talk.send(&again).unwrap();
        let why = talk.payload().unwrap_err();
        assert_eq!(reason(&why), Some(2), "{why:#}");
        assert!(why.to_string().contains("second key exchange"), "{why:#}");
    }
}

/// Eight peers exchange keys and leave, up to twenty times each. Returns the number of exchanges.
fn exchanges(port: u16) -> usize {
    let stranger = move || {
        (0..20)
            .take_while(|_| {
                let talk = Talk::client(port, lists());
                talk.is_ok_and(|mut talk| talk.handshake().is_ok())
            })
            .count()
    };
    let strangers: Vec<_> = (0..8).map(|_| thread::spawn(stranger)).collect();
    strangers.into_iter().map(|one| one.join().unwrap()).sum()
}

/// At most the number that a source is allowed, and those that the eight have started before a busy
/// server has seen the ends of the others.
#[test]
fn key_exchanges_without_a_login_come_to_an_end() {
    let host = Host::start(&[
        "--penalty-exempt",
        "192.0.2.0/24",
        "--max-startups",
        "100:100:200",
    ]);
    let got = exchanges(host.port());
    assert!((7..=80).contains(&got), "{got} of 160");
    assert_eq!(host.run(&[], "true").0, Some(255), "with the right key too");

    let folder = TempFolder::new("ssh-flood").unwrap();
    generate_key(folder.path(), "id").unwrap();
    let at = folder.path().display();
    let url = format!("ssh://0.0.0.0:0?host_key=@{at}/host&authorized_keys=@{at}/id.pub&{ALLOW}");
    let listener = start(&["run", &url]);
    let port = listener.addr().port();
    let got = exchanges(port);
    assert!((30..=100).contains(&got), "{got} of 160");
}
