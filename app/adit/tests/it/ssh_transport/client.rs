//! The client's side with sshd.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::openssh::{self, Sshd};
use adit_interop::{TEST_TIMEOUT, TempFolder, external_tools};
use adit_ssh_proto::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use adit_ssh_proto::auth::{
    ClientAnswer, ClientAuth, ClientAuthConfig, ClientAuthQuery, ClientIdentity, ClientStep,
};
use adit_ssh_proto::key::{AnyKey, PrivateKey};
use adit_ssh_proto::transport::{OpenStep, TransportConfig};
use adit_ssh_proto::wire::{MessageReader, SshBufMut};
use adit_ssh_proto::{Disconnect, msg};
use anyhow::{Result, bail};

use super::{Talk, methods, only, reason, suites};

/// Returns the algorithms that the tool `ssh -Q` lists.
fn known(what: &str) -> String {
    let mut ssh = Command::new("ssh");
    ssh.args(["-Q", what]);
    external_tools::run_to_end(ssh, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap()
}

/// Returns lines of configuration with all algorithms that both have.
fn everything() -> String {
    let names = |all: Vec<&str>| all.join(",");
    format!(
        "KexAlgorithms {}\nCiphers {}\nMACs {}",
        names(methods(&known("kex")).iter().map(|k| k.name()).collect()),
        names(Cipher::ALL.iter().map(|c| c.name()).collect()),
        names(Mac::ALL.iter().map(|m| m.name()).collect()),
    )
}

/// Connects, requests the authentication service and a login without a proof, which is
/// refused: packets passed in both directions under the keys.
fn probe(port: u16, config: TransportConfig) -> Result<()> {
    let wanted = config.preferred.clone();
    let mut talk = Talk::client(port, config)?;
    talk.greet(&wanted)?;
    let mut service = vec![msg::SERVICE_REQUEST];
    service.put_string(b"ssh-userauth");
    talk.send(&service)?;
    let mut expected = vec![msg::SERVICE_ACCEPT];
    expected.put_string(b"ssh-userauth");
    anyhow::ensure!(talk.payload()? == expected, "the service was not given");
    let mut none = vec![msg::USERAUTH_REQUEST];
    for word in [openssh::current_user().as_str(), "ssh-connection", "none"] {
        none.put_string(word.as_bytes());
    }
    talk.send(&none)?;
    let answer = talk.payload()?;
    let mut r = MessageReader::new(&answer, "answer");
    anyhow::ensure!(r.read_u8()? == msg::USERAUTH_FAILURE, "{answer:?}");
    anyhow::ensure!(r.read_name_list()?.contains("publickey"), "{answer:?}");
    Ok(())
}

#[test]
fn every_method_cipher_and_mac() {
    let sshd = Sshd::start(&everything()).unwrap();
    for kex in methods(&known("kex")) {
        for (cipher, mac) in suites() {
            let config = only(kex, KeyAlgorithm::Ed25519, cipher, mac);
            probe(sshd.port(), config).unwrap();
        }
    }
}

/// Keys of every type, and a certificate.
#[test]
fn every_host_key() {
    let folder = TempFolder::new("hostkeys").unwrap();
    let mut lines = String::new();
    let keygen = |args: &[&str]| {
        let mut command = Command::new("ssh-keygen");
        command.arg("-q").args(args).current_dir(folder.path());
        external_tools::run_to_end(command, TEST_TIMEOUT)
            .unwrap()
            .expect_success()
            .unwrap();
    };
    for (kind, bits) in [
        ("ed25519", "256"),
        ("ecdsa", "256"),
        ("ecdsa", "384"),
        ("ecdsa", "521"),
        ("rsa", "2048"),
    ] {
        let file = format!("{kind}{bits}");
        keygen(&["-t", kind, "-b", bits, "-N", "", "-f", &file]);
        // It is its own authority here.
        let line = format!("{file}.pub");
        keygen(&["-s", &file, "-I", "host", "-h", "-n", "127.0.0.1", &line]);
        let path = folder.path().join(file);
        let path = path.display();
        lines += &format!("HostKey {path}\nHostCertificate {path}-cert.pub\n");
    }
    let sshd = Sshd::start(&lines).unwrap();
    for algorithm in KeyAlgorithm::ALL {
        if algorithm.name().starts_with("sk-") {
            continue;
        }
        let config = only(Kex::Curve25519, *algorithm, Cipher::Aes128Gcm, Mac::Umac64);
        probe(sshd.port(), config).unwrap();
    }
}

/// Messages on both sides if there is nothing in common.
#[test]
fn nothing_in_common() {
    let sshd = Sshd::start("MACs hmac-sha2-512\nCiphers aes128-ctr").unwrap();
    let config = only(
        Kex::Curve25519,
        KeyAlgorithm::Ed25519,
        Cipher::Aes128Ctr,
        Mac::Umac64Etm,
    );
    let why = probe(sshd.port(), config).unwrap_err();
    let why = format!("{why:#}");
    let told = "no common MAC (client to server): we offer umac-64-etm@openssh.com; \
                the peer offers hmac-sha2-512";
    assert!(why.contains(told), "{why}");
}

/// A host key that is not accepted: sshd receives a disconnect message.
#[test]
fn a_host_key_is_rejected() {
    let sshd = Sshd::start("LogLevel DEBUG").unwrap();
    let config = only(
        Kex::Curve25519,
        KeyAlgorithm::Ed25519,
        Cipher::Aes128Gcm,
        Mac::Umac64,
    );
    let mut talk = Talk::client(sshd.port(), config).unwrap();
    // The question arrives with the reply; it is answered here instead of by the driver.
    let mut asked = false;
    while !asked {
        match talk.transport.open_next(&mut talk.inbox).unwrap() {
            OpenStep::NeedMore { .. } => {
                talk.flush().unwrap();
                assert!(talk.read().unwrap() > 0);
            }
            OpenStep::Consumed { consumed } => {
                talk.inbox.drain(..consumed);
            }
            OpenStep::Blocked => asked = true,
            OpenStep::Payload { .. } => panic!("before the keys"),
        }
    }
    talk.transport.reject_host_key();
    talk.flush().unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !sshd.process().output().contains("host key not accepted") {
        assert!(Instant::now() < deadline, "{}", sshd.process().output());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Logs in with the key.
fn log_in(talk: &mut Talk, sshd: &Sshd) -> Result<()> {
    talk.handshake()?;
    let key = PrivateKey::from_text(&sshd.user_key()?, None)?;
    let mut config = ClientAuthConfig::new(openssh::current_user());
    let identity = AnyKey::Plain(key.public_key().clone());
    config.identities = vec![ClientIdentity::new(identity)];
    let (session, host) = (talk.transport.session_id(), talk.transport.host_key());
    let mut auth = ClientAuth::new(
        config,
        session.unwrap_or_default(),
        host.unwrap_or_default(),
    );
    loop {
        while let Some(out) = auth.poll_output() {
            talk.send(out.payload.expose())?;
        }
        let payload = talk.payload()?;
        let mut step = auth.handle_input(&payload)?;
        while let ClientStep::Query(ask) = step {
            let ClientAuthQuery::Signature {
                algorithm, data, ..
            } = ask
            else {
                bail!("asked for {ask:?}");
            };
            step = auth.answer_query(ClientAnswer::Signature(key.sign(algorithm, &data)?))?;
        }
        match step {
            ClientStep::Success => return Ok(()),
            ClientStep::Failed { methods } => bail!("not let in: {methods:?}"),
            _ => {}
        }
    }
}

/// Starts a program in a channel, whose windows are wide from the start.
fn start(talk: &mut Talk, program: &str) -> Result<()> {
    let mut open = vec![msg::CHANNEL_OPEN];
    open.put_string(b"session");
    for number in [0, 1 << 30, 32_768] {
        open.put_u32(number);
    }
    talk.send(&open)?;
    let mut exec = vec![msg::CHANNEL_REQUEST];
    exec.put_u32(0);
    exec.put_string(b"exec");
    exec.put_bool(true);
    exec.put_string(program.as_bytes());
    loop {
        match talk.payload()?.first() {
            Some(&msg::CHANNEL_OPEN_CONFIRMATION) => talk.send(&exec)?,
            Some(&msg::CHANNEL_SUCCESS) => return Ok(()),
            Some(&(msg::GLOBAL_REQUEST | msg::CHANNEL_WINDOW_ADJUST)) => {}
            other => bail!("{other:?} instead of a channel"),
        }
    }
}

/// Returns the data of a payload for the channel.
fn data_of(payload: &[u8]) -> &[u8] {
    let mut r = MessageReader::new(payload, "data");
    if r.read_u8() != Ok(msg::CHANNEL_DATA) || r.read_u32().is_err() {
        return &[];
    }
    r.read_string().unwrap()
}

/// Bytes through `cat` and back while both sides exchange new keys continuously; sshd grants 2 MiB of
/// window, which is not exceeded.
#[test]
fn new_keys_in_bulk() {
    const PIECE: usize = 20_000;
    const PIECES: usize = 90;
    let more = format!("{}\nRekeyLimit 100K\nCompression yes", everything());
    let sshd = Sshd::start(&more).unwrap();
    let suites = [
        (Cipher::Aes128Gcm, Mac::Umac64),
        (Cipher::ChaCha20Poly1305, Mac::Umac64),
        (Cipher::Aes128Ctr, Mac::Umac64Etm),
        (Cipher::Aes256Ctr, Mac::Umac128),
    ];
    for (n, (cipher, mac)) in suites.into_iter().enumerate() {
        let mut config = only(Kex::Curve25519, KeyAlgorithm::Ed25519, cipher, mac);
        config.rekey_bytes = Some(70_000);
        if n == 3 {
            config.preferred.compression = vec![Compression::ZlibDelayed];
        }
        let mut talk = Talk::client(sshd.port(), config).unwrap();
        log_in(&mut talk, &sshd).unwrap();
        start(&mut talk, "cat").unwrap();
        let mut back = Vec::new();
        let mut sent = Vec::new();
        for turn in 0..PIECES {
            // Without a pattern that zlib would find.
            let mut piece = vec![0; PIECE];
            adit_wire::Entropy::fill(&mut adit_net::system::ThreadRng, &mut piece);
            sent.extend_from_slice(&piece);
            let mut payload = vec![msg::CHANNEL_DATA];
            payload.put_u32(0);
            payload.put_string(&piece);
            talk.send(&payload).unwrap();
            while let Some(payload) = talk.payload_now().unwrap() {
                back.extend_from_slice(data_of(&payload));
            }
            assert!(back.len() <= sent.len(), "{turn}");
        }
        while back.len() < sent.len() {
            let payload = talk.payload().unwrap();
            back.extend_from_slice(data_of(&payload));
        }
        assert!(back == sent, "{cipher} {mac}");
        // 1.8 MB in each direction with at most 100 KB per key.
        assert!(talk.keys > 15, "{}", talk.keys);
        talk.transport.disconnect(Disconnect::ByApplication, "done");
        talk.flush().unwrap();
    }
}

/// The reaction of sshd to invalid packets.
#[test]
fn an_altered_packet_is_told() {
    let sshd = Sshd::start("").unwrap();
    let config = only(
        Kex::Curve25519,
        KeyAlgorithm::Ed25519,
        Cipher::Aes128Gcm,
        Mac::Umac64,
    );
    let mut talk = Talk::client(sshd.port(), config).unwrap();
    talk.handshake().unwrap();
    talk.transport.send(&[msg::IGNORE, 0, 0, 0, 0]).unwrap();
    if let Some(last) = talk.transport.take_output().last_mut() {
        *last ^= 1;
    }
    talk.flush().unwrap();
    let why = talk.payload().unwrap_err();
    // Its own code for it, or a closed connection.
    assert!(matches!(reason(&why), Some(2 | 5) | None), "{why:#}");
}
