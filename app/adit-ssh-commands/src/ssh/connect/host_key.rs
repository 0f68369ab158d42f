//! Policy for host keys that are known, new, changed or revoked, as in OpenSSH.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::ssh_config::{CheckHostKey, SshSettings};
use adit_ssh::client::{HostKey, HostKeyPolicy, KnownHost, KnownHostsError};
use adit_ssh::{BoxFuture, HostKeyRefused};
use adit_ssh_proto::key::{HostKeyVerdict, LinePosition, PublicKey};

use super::connect_request::is_quiet;
use crate::ssh::terminal;

/// Maximum number of prompts for an answer.
const MAX_PROMPTS: u32 = 5;

/// Reason why the host key of a session was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyTrust {
    /// The key is in the known hosts files.
    Known,
    /// The key is new, and the user has confirmed it.
    Confirmed,
    /// The key is new, and the user was not asked.
    Unconfirmed,
    /// The files have other keys of the host, and `StrictHostKeyChecking` is `no`.
    Mismatched,
}

/// The result of the host key check of a session, set once it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyTrustCell(Arc<OnceLock<KeyTrust>>);

impl KeyTrustCell {
    pub(super) fn trust(&self) -> Option<KeyTrust> {
        self.0.get().copied()
    }

    /// Returns true if the files have other keys of the host: then nothing may be sent that would help a man
    /// in the middle.
    pub(super) fn is_mismatched(&self) -> bool {
        self.trust() == Some(KeyTrust::Mismatched)
    }
}

/// A policy that checks keys against the known hosts files, and asks the user or adds keys according to
/// `StrictHostKeyChecking`.
pub(super) struct KnownHostsPolicy {
    known: KnownHost,
    check: CheckHostKey,
    /// True if the user cannot be asked.
    batch: bool,
    quiet: bool,
    trust: KeyTrustCell,
}

/// The way in which a presented key contradicts the known one.
#[derive(Debug, Clone, Copy)]
enum KeyMismatch {
    /// The known key of this type differs.
    SameType,
    /// Only keys of other types are known.
    OtherType,
}

impl KnownHostsPolicy {
    pub(super) fn new(settings: &SshSettings, known: KnownHost, taken: &KeyTrustCell) -> Self {
        Self {
            known,
            check: settings.check_host_key,
            batch: settings.batch_mode,
            quiet: is_quiet(settings),
            trust: taken.clone(),
        }
    }

    /// Checks a key; returns the reason for accepting it, or the message for refusing it.
    async fn evaluate_key(&self, shown: &HostKey) -> Result<KeyTrust, HostKeyRefused> {
        let key = shown.key.key();
        let host = self.known.name();
        match self.known.check_key(&shown.key) {
            HostKeyVerdict::Known(place) => {
                tracing::debug!("the key of {host} is known: {place}");
                Ok(KeyTrust::Known)
            }
            HostKeyVerdict::Unknown => self.accept_unknown_key(key).await,
            HostKeyVerdict::OtherType(place) => {
                self.handle_mismatch(key, &place, KeyMismatch::OtherType)
            }
            HostKeyVerdict::Changed(place) => {
                self.handle_mismatch(key, &place, KeyMismatch::SameType)
            }
            HostKeyVerdict::Revoked(place) => Err(HostKeyRefused(format!(
                "the key of {host} is revoked: {place}\n\n  presented  {}\n\nThe server may not be \
                 the host. Nothing was sent.",
                describe_key(key)
            ))),
            HostKeyVerdict::BadCertificate(place, why) => Err(HostKeyRefused(format!(
                "the certificate of {host} is not valid: {why} (its authority: {place})"
            ))),
        }
    }

    /// Accepts or refuses a new key, and adds an accepted one to the user's file.
    async fn accept_unknown_key(&self, key: &PublicKey) -> Result<KeyTrust, HostKeyRefused> {
        let host = self.known.name();
        let trust = match self.check {
            CheckHostKey::AcceptNew | CheckHostKey::Off => KeyTrust::Unconfirmed,
            CheckHostKey::Ask if !self.batch => {
                self.confirm_key(key).await?;
                KeyTrust::Confirmed
            }
            _ => {
                return Err(HostKeyRefused(format!(
                    "the key of {host} is not known\n\n  presented  {}\n\nCompare it with the fingerprint \
                     from the host's administrator, then accept it by connecting with\n  \
                     -o StrictHostKeyChecking=accept-new",
                    describe_key(key),
                )));
            }
        };
        match (self.known.add_key(key), self.known.write_path()) {
            (Ok(()), Some(file)) if file != Path::new("/dev/null") => self.print_message(&format!(
                "permanently added the key of {host}: {} ({})",
                describe_key(key),
                file.display()
            )),
            (Ok(()), _) => self.print_message(&format!(
                "warning: the unknown key of {host} is accepted and not saved: {}",
                describe_key(key)
            )),
            // Another program has added a different key meanwhile.
            (Err(KnownHostsError::Contradicted(why)), _) => return Err(HostKeyRefused(why)),
            // Worth a warning, but not a reason to stop.
            (Err(why), _) => self.print_message(&format!(
                "warning: the key of {host} cannot be saved: {why}"
            )),
        }
        Ok(trust)
    }

    /// Asks the user to confirm a new key.
    async fn confirm_key(&self, key: &PublicKey) -> Result<(), HostKeyRefused> {
        let host = self.known.name();
        let text = format!(
            "The authenticity of {host} cannot be established. Its key is\n\n  {}\n\n\
             Are you sure you want to continue connecting? (yes, no, or the fingerprint) ",
            describe_key(key),
        );
        let print = key.fingerprint();
        let mut question = text;
        for _ in 0..MAX_PROMPTS {
            let answer = terminal::ask_visible(question).await;
            match answer.as_deref().map(str::trim) {
                Some("yes") => return Ok(()),
                Some(typed) if typed == print => return Ok(()),
                Some("no") => break,
                None => {
                    return Err(HostKeyRefused(format!(
                        "the key of {host} is not known, and there is no terminal for a confirmation\n\n  \
                         presented  {}\n\nCompare it with the fingerprint from the host's \
                         administrator, then accept it by connecting with\n  \
                         -o StrictHostKeyChecking=accept-new",
                        describe_key(key)
                    )));
                }
                Some(_) => question = "please type yes, no, or the fingerprint: ".to_owned(),
            }
        }
        Err(HostKeyRefused(format!(
            "the key of {host} was not accepted"
        )))
    }

    /// Handles a key that contradicts the known one, of this or of another type: a man in the middle can
    /// present any. Only `StrictHostKeyChecking=no` continues, without passwords and forwards.
    fn handle_mismatch(
        &self,
        key: &PublicKey,
        place: &LinePosition,
        how: KeyMismatch,
    ) -> Result<KeyTrust, HostKeyRefused> {
        let host = self.known.name();
        let what = match how {
            KeyMismatch::SameType => format!("the key of {host} has changed"),
            KeyMismatch::OtherType => {
                format!("the key of {host} is of another type than the known one")
            }
        };
        let text = format!(
            "{what}\n\n  presented  {}\n  known      {}\n\n\
             Someone may be intercepting the connection, or the host was reinstalled. Ask its \
             administrator for the fingerprint.",
            describe_key(key),
            self.known.lines().describe_key_at(place),
        );
        if self.check == CheckHostKey::Off {
            // Printed at any log level.
            terminal::print_message(&format!(
                "warning: {text}\nContinuing because StrictHostKeyChecking is `no`, but without \
                 passwords and forwards."
            ));
            return Ok(KeyTrust::Mismatched);
        }
        Err(HostKeyRefused(format!(
            "{text} If the new key is right, remove the old one:\n  ssh-keygen -f '{}' -R '{host}'",
            place.file
        )))
    }

    fn print_message(&self, text: &str) {
        if !self.quiet {
            terminal::print_message(text);
        }
    }
}

impl HostKeyPolicy for KnownHostsPolicy {
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        Box::pin(async {
            let trust = self.evaluate_key(key).await?;
            // Called once per session.
            let _ = self.trust.0.set(trust);
            Ok(())
        })
    }
}

/// Returns the type and the fingerprint of a key.
fn describe_key(key: &PublicKey) -> String {
    format!("{} {}", key.type_name(), key.fingerprint())
}
