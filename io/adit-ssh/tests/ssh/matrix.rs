//! Every algorithm with OpenSSH, in both roles.

use std::process::{Command, Stdio};
use std::sync::Arc;

use adit_interop::openssh::{Sshd, generate_key, ssh_command};
use adit_interop::ssh_peer::AlgorithmNames;
use adit_interop::{Checksum, TempFolder};
use adit_ssh::client::{Client, ClientConfig, Exit};
use adit_ssh_proto::algorithm::{Cipher, Compression, Kex, Mac};
use adit_ssh_proto::key::PublicKey;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};

use crate::server::{serve, settings};
use crate::world::{config_for, dial, pour};

/// Size of each transfer, in bytes: several packets, the last one not full.
pub(crate) const SMALL: usize = 100_001;
/// Number of concurrent sessions.
const AT_A_TIME: usize = 4;

/// Returns OpenSSH's algorithms, as listed by `ssh -Q`.
fn known() -> AlgorithmNames {
    let list = |what: &str| {
        let output = Command::new("ssh").args(["-Q", what]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    AlgorithmNames {
        cipher: list("cipher"),
        mac: list("mac"),
        kex: list("kex"),
    }
}

pub(crate) type Choice = (Cipher, Mac, Kex, Compression);

/// Returns every cipher with every MAC that it uses, and each key exchange method, as far as `theirs`
/// has them. Checks that there are at least this many pairs and methods.
pub(crate) fn choices(theirs: &AlgorithmNames, pairs: usize, methods: usize) -> Vec<Choice> {
    let has = |all: &[String], name: &str| all.iter().any(|one| one == name);
    let macs = Mac::ALL.iter().copied();
    let macs: Vec<Mac> = macs.filter(|m| has(&theirs.mac, m.name())).collect();
    let mut both = Vec::new();
    let ciphers = Cipher::ALL.iter().copied();
    for one in ciphers.filter(|c| has(&theirs.cipher, c.name())) {
        let some = if one.is_aead() { &macs[..1] } else { &macs[..] };
        both.extend(some.iter().map(|mac| (one, *mac)));
    }
    let kex = Kex::ALL.iter().copied();
    let kex: Vec<Kex> = kex.filter(|k| has(&theirs.kex, k.name())).collect();
    assert!(
        both.len() >= pairs && kex.len() >= methods,
        "{} pairs, {} methods: {theirs:?}",
        both.len(),
        kex.len()
    );
    let compression = [
        Compression::None,
        Compression::None,
        Compression::ZlibDelayed,
    ];
    let rest = kex.iter().cycle().zip(compression.iter().cycle());
    let joined = both.iter().cycle().zip(rest);
    joined
        .take(both.len().max(kex.len()))
        .map(|((cipher, mac), (kex, zip))| (*cipher, *mac, *kex, *zip))
        .collect()
}

/// Offers only this choice.
pub(crate) fn choose(config: &mut ClientConfig, choice: Choice) {
    let preferred = &mut config.transport.preferred;
    preferred.cipher = vec![choice.0];
    preferred.mac = vec![choice.1];
    preferred.kex = vec![choice.2];
    preferred.compression = vec![choice.3];
}

/// Runs all of them, some concurrently.
pub(crate) async fn each<F: Future<Output = ()> + Send + 'static>(
    choices: Vec<Choice>,
    run: impl Fn(Choice) -> F,
) {
    let gate = Arc::new(Semaphore::new(AT_A_TIME));
    let mut all = JoinSet::new();
    for choice in choices {
        let (gate, run) = (Arc::clone(&gate), run(choice));
        all.spawn(async move {
            let _place = gate.acquire().await.unwrap();
            run.await;
        });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn with_its_server() {
    let known = known();
    let more = format!(
        "Ciphers {}\nMACs {}\nKexAlgorithms {}\nCompression yes",
        known.cipher.join(","),
        known.mac.join(","),
        known.kex.join(",")
    );
    let sshd = Arc::new(Sshd::start(&more).unwrap());
    each(
        choices(&known, 33, 11),
        |(cipher, mac, kex, compression)| {
            let sshd = Arc::clone(&sshd);
            async move {
                let mut config = config_for(&sshd);
                choose(&mut config, (cipher, mac, kex, compression));
                let session = Client::connect(dial(sshd.port()).await, config).await;
                let session = session.unwrap_or_else(|why| panic!("{cipher} {mac} {kex}: {why}"));
                let negotiated = session.negotiated();
                assert_eq!(
                    (negotiated.kex, negotiated.client_to_server.cipher),
                    (kex, cipher)
                );
                let command = format!("head -c {SMALL} /dev/zero");
                let program = session.open_session().await.unwrap();
                let output = program.collect_output(command).await.unwrap();
                assert_eq!(output.exit, Some(Exit::Status(0)), "{cipher} {mac} {kex}");
                assert_eq!(output.stdout, vec![0; SMALL], "{cipher} {mac} {kex}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn with_its_client() {
    let folder = TempFolder::new("matrix").unwrap();
    let id = generate_key(folder.path(), "id").unwrap();
    let line = std::fs::read_to_string(id.with_extension("pub")).unwrap();
    let (user, _) = PublicKey::from_line(&line).unwrap();
    let (mut config, _) = settings();
    config.transport.preferred.kex = Kex::ALL.to_vec();
    config.transport.preferred.mac = Mac::ALL.to_vec();
    let port = serve(config, user).await;
    let sum = pour(&mut tokio::io::sink(), SMALL, 1).await;
    each(
        choices(&known(), 33, 11),
        |(cipher, mac, kex, compression)| {
            let mut command = ssh_command(port, &id);
            command.args(["-c", cipher.name(), "-m", mac.name(), "-o"]);
            command.arg(format!("KexAlgorithms={}", kex.name()));
            if compression != Compression::None {
                command.arg("-C");
            }
            command.args(["me@127.0.0.1", &format!("give {SMALL}")]);
            command.stdin(Stdio::null());
            async move {
                let output = spawn_blocking(move || command.output().unwrap())
                    .await
                    .unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                let status = i32::try_from(SMALL % 256).ok();
                assert_eq!(output.status.code(), status, "{cipher} {mac} {kex}: {said}");
                let got = Checksum::EMPTY.extend_with(&output.stdout);
                assert_eq!(got, sum, "{cipher} {mac} {kex}");
            }
        },
    )
    .await;
}
