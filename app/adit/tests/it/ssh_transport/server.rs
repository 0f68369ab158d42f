//! The server's side with OpenSSH's `ssh`.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use std::{fs, net};

use adit_interop::{TEST_TIMEOUT, TempFolder, external_tools, openssh};
use adit_ssh_proto::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use adit_ssh_proto::key::{CertifiedKey, KeySet, PrivateKey, Signer};
use adit_ssh_proto::transport::TransportConfig;
use adit_ssh_proto::wire::{MessageReader, SshBufMut};
use adit_ssh_proto::{Disconnect, msg};
use adit_wire::Time;
use anyhow::{Context, Result, bail};

use super::{Talk, methods, only, suites};

/// Bytes of data in one message.
const PIECE: usize = 30_000;

/// A host with keys of every type, and a user's key that is not checked.
struct Host {
    folder: TempFolder,
    signer: Arc<dyn Signer>,
}

impl Host {
    fn new() -> Self {
        let folder = TempFolder::new("ssh-host").unwrap();
        openssh::generate_key(folder.path(), "id").unwrap();
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../proto/adit-ssh-proto/vectors/ssh/keys");
        let read = |name: &str| {
            let text = fs::read_to_string(vectors.join(name)).unwrap();
            let key = PrivateKey::from_text(&text, None).unwrap();
            CertifiedKey::new(key, None).unwrap()
        };
        let keys = ["ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa2048"].map(read);
        Self {
            folder,
            signer: Arc::new(KeySet::new(keys.into())),
        }
    }

    fn user_key(&self) -> PathBuf {
        self.folder.path().join("id")
    }

    /// Runs `ssh` with these options against a server with `config`. Returns its output and the number of
    /// key exchanges.
    fn run(
        &self,
        config: TransportConfig,
        options: &[&str],
        text: &str,
    ) -> Result<(String, usize)> {
        let listener = TcpListener::bind((net::Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (signer, text) = (Arc::clone(&self.signer), text.to_owned());
        let server = thread::spawn(move || {
            let (tcp, _) = listener.accept()?;
            serve(Talk::server(tcp, config, signer)?, text.as_bytes())
        });
        let mut ssh = openssh::ssh_command(port, &self.user_key());
        ssh.arg("-n")
            .args(options)
            .args(["nobody@127.0.0.1", "words"]);
        let ended = openssh::run_command(ssh, Duration::from_secs(60))?;
        let served = server.join().ok().context("the server panicked")?;
        let keys = served.with_context(|| ended.output.clone())?;
        Ok((ended.expect_success()?, keys))
    }
}

/// Serves one command: the text is its output.
fn serve(mut talk: Talk, text: &[u8]) -> Result<usize> {
    talk.handshake()?;
    let mut theirs = 0;
    loop {
        let payload = talk.payload()?;
        let mut r = MessageReader::new(&payload, "message");
        match r.read_u8()? {
            msg::SERVICE_REQUEST => {
                let mut accept = vec![msg::SERVICE_ACCEPT];
                accept.put_string(r.read_string()?);
                talk.send(&accept)?;
            }
            msg::USERAUTH_REQUEST => talk.send(&[msg::USERAUTH_SUCCESS])?,
            msg::CHANNEL_OPEN => {
                r.read_string()?;
                theirs = r.read_u32()?;
                let mut confirm = vec![msg::CHANNEL_OPEN_CONFIRMATION];
                for number in [theirs, 0, 1 << 20, 32_768] {
                    confirm.put_u32(number);
                }
                talk.send(&confirm)?;
            }
            msg::CHANNEL_REQUEST => {
                r.read_u32()?;
                let (kind, answered) = (r.read_string()?, r.read_bool()?);
                let exec = kind == b"exec";
                if answered {
                    let mut granted = vec![msg::CHANNEL_SUCCESS];
                    granted.put_u32(theirs);
                    talk.send(&granted)?;
                }
                if exec {
                    output(&mut talk, theirs, text)?;
                }
            }
            msg::CHANNEL_CLOSE => break,
            msg::CHANNEL_WINDOW_ADJUST | msg::CHANNEL_EOF | msg::GLOBAL_REQUEST => {}
            other => bail!("message {other}"),
        }
    }
    talk.transport.disconnect(Disconnect::ByApplication, "done");
    talk.flush()?;
    Ok(talk.keys)
}

/// Sends the output of the command, which is below the window of 2 MiB, and its end.
fn output(talk: &mut Talk, theirs: u32, text: &[u8]) -> Result<()> {
    for piece in text.chunks(PIECE) {
        let mut data = vec![msg::CHANNEL_DATA];
        data.put_u32(theirs);
        data.put_string(piece);
        talk.send(&data)?;
        // Output that is queued during a key exchange is sent immediately under the next keys. Until the
        // peer's NEWKEYS arrives, there is a time limit.
        while talk.payload_now()?.is_some() || talk.transport.poll_timeout(Time(0)).is_some() {
            thread::sleep(Duration::from_micros(200));
        }
    }
    let mut status = vec![msg::CHANNEL_REQUEST];
    status.put_u32(theirs);
    status.put_string(b"exit-status");
    status.put_bool(false);
    status.put_u32(0);
    talk.send(&status)?;
    for number in [msg::CHANNEL_EOF, msg::CHANNEL_CLOSE] {
        let mut end = vec![number];
        end.put_u32(theirs);
        talk.send(&end)?;
    }
    Ok(())
}

/// Settings with everything; `ssh` is the side that leaves no choice.
fn everything() -> TransportConfig {
    let mut config = only(
        Kex::Curve25519,
        KeyAlgorithm::Ed25519,
        Cipher::Aes128Gcm,
        Mac::Umac64,
    );
    config.preferred.kex = Kex::ALL.to_vec();
    config.preferred.host_key = KeyAlgorithm::ALL.to_vec();
    config.preferred.cipher = Cipher::ALL.to_vec();
    config.preferred.mac = Mac::ALL.to_vec();
    config.preferred.compression = vec![Compression::None, Compression::ZlibDelayed];
    config
}

/// Every method with a few suites in turn, every suite with one method.
#[test]
fn every_method_cipher_and_mac() {
    let host = Host::new();
    let mut known = Command::new("ssh");
    known.args(["-Q", "kex"]);
    let known = external_tools::run_to_end(known, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    let suites = suites();
    let cheap = suites.iter().map(|suite| (Kex::Curve25519, *suite));
    let turns = methods(&known)
        .into_iter()
        .zip(suites.iter().copied().cycle());
    for (kex, (cipher, mac)) in turns.chain(cheap) {
        let kexes = format!("KexAlgorithms={kex}");
        let options = ["-o", &kexes, "-c", cipher.name(), "-m", mac.name()];
        let (told, keys) = host
            .run(everything(), &options, "all is well\n")
            .with_context(|| options.join(" "))
            .unwrap();
        assert_eq!((told.trim_end(), keys), ("all is well", 1), "{options:?}");
    }
}

#[test]
fn every_host_key() {
    let host = Host::new();
    for algorithm in host.signer.algorithms() {
        let wanted = format!("HostKeyAlgorithms={algorithm}");
        let (told, _) = host
            .run(everything(), &["-o", &wanted], "it is me\n")
            .with_context(|| wanted.clone())
            .unwrap();
        assert_eq!(told.trim_end(), "it is me");
    }
}

/// Both sides exchange new keys repeatedly while the output flows.
#[test]
fn new_keys_in_bulk() {
    let host = Host::new();
    let mut text = String::new();
    for n in 0..30_000u64 {
        // It differs from line to line, and is hard to compress.
        let noise = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        text += &format!("{n} {noise:x} {:x}\n", noise.wrapping_mul(noise));
    }
    assert!(text.len() > 1_000_000 && text.len() < 2 << 20);
    for (cipher, compression) in [
        ("aes128-gcm@openssh.com", "no"),
        ("chacha20-poly1305@openssh.com", "no"),
        ("aes128-ctr", "yes"),
    ] {
        let compress = format!("Compression={compression}");
        let options = ["-c", cipher, "-o", "RekeyLimit=30K", "-o", &compress];
        let mut config = everything();
        config.rekey_bytes = Some(40_000);
        let (told, keys) = host.run(config, &options, &text).unwrap();
        assert!(told.trim_end() == text.trim_end(), "{cipher}");
        assert!(keys > 12, "{cipher}: {keys}");
    }
}

/// The message of adit if there is nothing in common.
#[test]
fn nothing_in_common() {
    let host = Host::new();
    let mut config = everything();
    config.preferred.cipher = vec![Cipher::Aes256Gcm];
    let why = host.run(config, &["-c", "aes128-ctr"], "").unwrap_err();
    let why = format!("{why:#}");
    let told = "no common cipher (client to server): we offer aes256-gcm@openssh.com; \
                the peer offers aes128-ctr";
    assert!(why.contains(told), "{why}");
}
