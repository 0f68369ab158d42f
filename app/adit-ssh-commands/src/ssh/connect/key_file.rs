//! A key in an encrypted file: the public key is offered, and the file is decrypted once the server accepts it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adit_crypto::Secret;
use adit_ssh::BoxFuture;
use adit_ssh::client::Identity;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{AnyKey, KeyError, PrivateKey, PublicKey};
use tokio::sync::Mutex;
use tracing::debug;

use crate::ssh::terminal;

/// A key in an encrypted file, whose passphrase is asked for at most once.
pub(super) struct EncryptedKey(Arc<LockedKey>);

/// An encrypted key file and its state.
struct LockedKey {
    file: PathBuf,
    text: Secret<String>,
    public: PublicKey,
    tries: u32,
    /// True if the user cannot be asked.
    batch: bool,
    state: Mutex<LockState>,
}

/// State of an encrypted key.
enum LockState {
    Closed,
    Open(Arc<PrivateKey>),
    /// The user does not know the passphrase, and is not asked again.
    GivenUp,
}

impl EncryptedKey {
    pub(super) fn new(
        file: &Path,
        text: Secret<String>,
        public: PublicKey,
        tries: u32,
        batch: bool,
    ) -> Self {
        Self(Arc::new(LockedKey {
            file: file.to_owned(),
            text,
            public,
            tries,
            batch,
            state: Mutex::new(LockState::Closed),
        }))
    }
}

impl LockedKey {
    /// Returns the decrypted key, asking for the passphrase the first time.
    async fn unlock(self: &Arc<Self>) -> Option<Arc<PrivateKey>> {
        let mut state = self.state.lock().await;
        match &*state {
            LockState::Open(key) => return Some(Arc::clone(key)),
            LockState::GivenUp => return None,
            LockState::Closed => {}
        }
        *state = match self.ask_passphrase().await {
            Some(key) => LockState::Open(Arc::new(key)),
            None => LockState::GivenUp,
        };
        match &*state {
            LockState::Open(key) => Some(Arc::clone(key)),
            _ => None,
        }
    }

    /// Asks for the passphrase until the file can be decrypted or the tries are used up.
    async fn ask_passphrase(self: &Arc<Self>) -> Option<PrivateKey> {
        if self.batch {
            debug!(
                "{} is encrypted, and batch mode asks for no passphrase",
                self.file.display()
            );
            return None;
        }
        for n in 0..self.tries {
            let again = if n > 0 { "bad passphrase; " } else { "" };
            let question = format!("{again}passphrase for {}: ", self.file.display());
            let phrase = terminal::ask_hidden(question).await?;
            if phrase.expose().is_empty() {
                return None;
            }
            let me = Arc::clone(self);
            // Key derivation is slow by design.
            let read = tokio::task::spawn_blocking(move || {
                PrivateKey::from_text(me.text.expose(), Some(phrase.expose().as_bytes()))
            });
            match read.await.ok()? {
                // Only the offered key is of use.
                Ok(key) if *key.public_key() == self.public => return Some(key),
                Ok(_) => {
                    terminal::print_message(&format!(
                        "warning: {} and its .pub file do not match",
                        self.file.display()
                    ));
                    return None;
                }
                Err(KeyError::WrongPassphrase) => {}
                Err(why) => {
                    terminal::print_message(&format!("warning: {}: {why}", self.file.display()));
                    return None;
                }
            }
        }
        None
    }
}

impl Identity for EncryptedKey {
    fn key(&self) -> AnyKey {
        AnyKey::Plain(self.0.public.clone())
    }

    fn needs_query(&self) -> bool {
        true
    }

    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.0.unlock().await?.sign(algorithm, data).ok() })
    }
}
