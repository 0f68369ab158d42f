//! Authentication methods and host key checks, for users of Go's `x/crypto/ssh`.
//!
//! `ssh_login HOST PORT USER PASSWORD FINGERPRINT` logs in with a password at a host whose key has
//! this fingerprint (`SHA256:…`). The guide shows the functions:
//! `docs/guides/ssh-library.md`.

#![allow(
    dead_code,
    reason = "the guide shows them one by one; the tests run those that the program does not"
)]
#![allow(clippy::print_stdout, reason = "a terminal program")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::Secret;
use adit_ssh::client::{
    Agent, Client, ClientConfig, HostKey, HostKeyFn, HostKeyPolicy, LocalKey, Login, PinnedKeys,
    Prompter,
};
use adit_ssh::{BoxFuture, HostKeyRefused, Keepalive};
use adit_ssh_proto::algorithm::{Cipher, Kex, KeyAlgorithm, Mac};
use adit_ssh_proto::auth::InteractivePrompt;
use adit_ssh_proto::key::{AnyKey, Certificate, CertifiedKey, HostName, PrivateKey, PublicKey};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, password, fingerprint] = &*words else {
        return Err("usage: ssh_login HOST PORT USER PASSWORD FINGERPRINT".into());
    };
    let config = ClientConfig::new(
        host_key_callback(fingerprint.clone()),
        with_password(user, password),
    );
    let session = Client::connect_tcp(host, port.parse()?, config).await?;
    println!("{} ({})", session.version(), session.negotiated());
    Ok(())
}

// region: password
/// `ssh.Password`. It also answers a single hidden question, as asked by servers with PAM.
pub(crate) fn with_password(user: &str, password: &str) -> Login {
    Login::new(user).with_password(password)
}
// end

// region: interactive
/// `ssh.KeyboardInteractive`: a closure answers each question.
struct Answers<F>(F);

impl<F: Fn(&str) -> String + Send + Sync> Prompter for Answers<F> {
    fn ask_password(&self, _failed: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        Box::pin(async { None })
    }

    fn ask_questions<'a>(
        &'a self,
        _name: &'a str,
        _instruction: &'a str,
        prompts: &'a [InteractivePrompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        let answers = prompts
            .iter()
            .map(|prompt| Secret::new((self.0)(&prompt.text)));
        Box::pin(std::future::ready(Some(answers.collect())))
    }
}

pub(crate) fn interactive(
    user: &str,
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> Login {
    let mut login = Login::new(user);
    login.prompter = Some(Arc::new(Answers(answer)));
    login
}
// end

// region: agent
/// `agent.NewClient` and `ssh.PublicKeysCallback(agent.Signers)`.
pub(crate) async fn with_agent(user: &str, socket: &Path) -> Fallible<Login> {
    let mut login = Login::new(user);
    for key in Agent::connect(socket).await?.keys().await? {
        login = login.with_identity(key);
    }
    Ok(login)
}
// end

// region: certificate
/// `ssh.ParsePrivateKeyWithPassphrase`, `ssh.NewCertSigner` and `ssh.PublicKeys`.
pub(crate) fn with_certificate(
    user: &str,
    key: &str,
    passphrase: &str,
    certificate: &str,
) -> Fallible<Login> {
    let key = PrivateKey::from_text(key, Some(passphrase.as_bytes()))?;
    let (certificate, _comment) = Certificate::from_line(certificate)?;
    let key = CertifiedKey::new(key, Some(certificate))?;
    Ok(Login::new(user).with_identity(LocalKey::with_certificate(key)))
}
// end

// region: fixed
/// `ssh.FixedHostKey` of a line as in `ssh_host_ed25519_key.pub` (`ssh.ParseAuthorizedKey`).
pub(crate) fn fixed_host_key(line: &str) -> Fallible<Arc<dyn HostKeyPolicy>> {
    let (key, _comment) = PublicKey::from_line(line)?;
    Ok(Arc::new(PinnedKeys(vec![AnyKey::Plain(key)])))
}
// end

// region: callback
/// A custom `ssh.HostKeyCallback`, here by `ssh.FingerprintSHA256`.
pub(crate) fn host_key_callback(fingerprint: String) -> Arc<dyn HostKeyPolicy> {
    Arc::new(HostKeyFn(move |shown: &HostKey| {
        if shown.key.key().fingerprint() == fingerprint {
            return Ok(());
        }
        Err(HostKeyRefused("the fingerprint is different".to_owned()))
    }))
}
// end

// region: any
/// `ssh.InsecureIgnoreHostKey` has no equivalent, so that it stands out: this accepts any key.
pub(crate) fn any_host_key() -> Arc<dyn HostKeyPolicy> {
    Arc::new(HostKeyFn(|_| Ok(())))
}
// end

// region: known
/// `knownhosts.Line`, and with a salt `knownhosts.HashHostname`.
pub(crate) fn known_line(host: &str, port: u16, key: &PublicKey) -> Fallible<String> {
    let host = HostName::new(host, port).ok_or("not a host name")?;
    let salt = None;
    Ok(host.known_hosts_line(key, salt))
}
// end

// region: config
/// `ssh.Config`: `Ciphers`, `MACs`, `KeyExchanges`, `RekeyThreshold`; `ClientConfig.Timeout` and
/// `ClientConfig.HostKeyAlgorithms`.
pub(crate) fn choose(config: &mut ClientConfig) {
    let preferred = &mut config.transport.preferred;
    preferred.cipher = vec![Cipher::Aes128Ctr, Cipher::Aes256Ctr];
    preferred.mac = vec![Mac::Umac64Etm, Mac::HmacSha256Etm];
    preferred.kex = vec![Kex::Curve25519];
    preferred.host_key = vec![KeyAlgorithm::Ed25519];
    config.transport.rekey_bytes = Some(1 << 30);
    config.timeout = Duration::from_secs(10);
    // A Go program sends `keepalive@openssh.com` requests itself.
    config.keepalive = Some(Keepalive {
        interval: Duration::from_secs(15),
        max_missed: 3,
    });
}
// end

// region: keys
/// `ssh.MarshalAuthorizedKey`, `PublicKey.Marshal`, `ssh.FingerprintSHA256`, `ssh.MarshalPrivateKey`.
pub(crate) fn forms(key: &PrivateKey) -> Fallible<[String; 3]> {
    let public = key.public_key();
    let line = public.to_line("me@here");
    let blob = public.to_blob();
    assert_eq!(AnyKey::parse(&blob)?.key(), public); // ssh.ParsePublicKey
    let file = key.to_openssh(None, &mut adit_net::system::ThreadRng)?;
    Ok([line, public.fingerprint(), file.expose().clone()])
}
// end
