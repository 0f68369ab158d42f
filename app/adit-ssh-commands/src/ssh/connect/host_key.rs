//! Policy for host keys that are known, new, changed or revoked, as in OpenSSH.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::ssh_config::{CheckHostKey, SshSettings};
use adit_ssh::client::{HostKey, HostKeyPolicy, KnownHost, KnownHostsError};
use adit_ssh::{BoxFuture, HostKeyRefused};
use adit_ssh_proto::key::{HostKeyVerdict, LinePosition, PublicKey};

use super::asked::is_quiet;
use crate::ssh::terminal;

/// Maximum number of prompts for an answer.
const TRIES: u32 = 5;

/// Reason why the host key of a session was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The key is in the known hosts files.
    Known,
    /// The key is new, and the user has confirmed it.
    Confirmed,
    /// The key is new, and the user was not asked.
    Unasked,
    /// The files have other keys of the host, and `StrictHostKeyChecking` is `no`.
    Doubted,
}

/// The result of the host key check of a session, set once it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken(Arc<OnceLock<Standing>>);

impl Taken {
    pub(super) fn standing(&self) -> Option<Standing> {
        self.0.get().copied()
    }

    /// Returns true if the files have other keys of the host: then nothing may be sent that would help a man
    /// in the middle.
    pub(super) fn is_doubted(&self) -> bool {
        self.standing() == Some(Standing::Doubted)
    }
}

/// A policy that checks keys against the known hosts files, and asks the user or adds keys according to
/// `StrictHostKeyChecking`.
pub(super) struct Policy {
    known: KnownHost,
    check: CheckHostKey,
    /// True if the user cannot be asked.
    batch: bool,
    quiet: bool,
    taken: Taken,
}

/// The way in which a presented key contradicts the known one.
#[derive(Debug, Clone, Copy)]
enum Contradiction {
    /// The known key of this type differs.
    SameType,
    /// Only keys of other types are known.
    OtherType,
}

impl Policy {
    pub(super) fn new(settings: &SshSettings, known: KnownHost, taken: &Taken) -> Self {
        Self {
            known,
            check: settings.check_host_key,
            batch: settings.batch_mode,
            quiet: is_quiet(settings),
            taken: taken.clone(),
        }
    }

    /// Checks a key; returns the reason for accepting it, or the message for refusing it.
    async fn judge(&self, shown: &HostKey) -> Result<Standing, HostKeyRefused> {
        let key = shown.key.key();
        let host = self.known.name();
        match self.known.check_key(&shown.key) {
            HostKeyVerdict::Known(place) => {
                tracing::debug!("the key of {host} is known: {place}");
                Ok(Standing::Known)
            }
            HostKeyVerdict::Unknown => self.unknown(key).await,
            HostKeyVerdict::OtherType(place) => {
                self.contradicts(key, &place, Contradiction::OtherType)
            }
            HostKeyVerdict::Changed(place) => {
                self.contradicts(key, &place, Contradiction::SameType)
            }
            HostKeyVerdict::Revoked(place) => Err(HostKeyRefused(format!(
                "the key of {host} is revoked: {place}\n\n  presented  {}\n\nThe server may not be \
                 the host. Nothing was sent.",
                named(key)
            ))),
            HostKeyVerdict::BadCertificate(place, why) => Err(HostKeyRefused(format!(
                "the certificate of {host} is not valid: {why} (its authority: {place})"
            ))),
        }
    }

    /// Accepts or refuses a new key, and adds an accepted one to the user's file.
    async fn unknown(&self, key: &PublicKey) -> Result<Standing, HostKeyRefused> {
        let host = self.known.name();
        let standing = match self.check {
            CheckHostKey::AcceptNew | CheckHostKey::Off => Standing::Unasked,
            CheckHostKey::Ask if !self.batch => {
                self.ask(key).await?;
                Standing::Confirmed
            }
            _ => {
                return Err(HostKeyRefused(format!(
                    "the key of {host} is not known\n\n  presented  {}\n\nCompare it with the fingerprint \
                     from the host's administrator, then accept it by connecting with\n  \
                     -o StrictHostKeyChecking=accept-new",
                    named(key),
                )));
            }
        };
        match (self.known.add_key(key), self.known.write_path()) {
            (Ok(()), Some(file)) if file != Path::new("/dev/null") => self.say(&format!(
                "permanently added the key of {host}: {} ({})",
                named(key),
                file.display()
            )),
            (Ok(()), _) => self.say(&format!(
                "warning: the unknown key of {host} is accepted and not saved: {}",
                named(key)
            )),
            // Another program has added a different key meanwhile.
            (Err(KnownHostsError::Contradicted(why)), _) => return Err(HostKeyRefused(why)),
            // Worth a warning, but not a reason to stop.
            (Err(why), _) => self.say(&format!(
                "warning: the key of {host} cannot be saved: {why}"
            )),
        }
        Ok(standing)
    }

    /// Asks the user to confirm a new key.
    async fn ask(&self, key: &PublicKey) -> Result<(), HostKeyRefused> {
        let host = self.known.name();
        let text = format!(
            "The authenticity of {host} cannot be established. Its key is\n\n  {}\n\n\
             Are you sure you want to continue connecting? (yes, no, or the fingerprint) ",
            named(key),
        );
        let print = key.fingerprint();
        let mut question = text;
        for _ in 0..TRIES {
            let answer = terminal::ask(question).await;
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
                        named(key)
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
    fn contradicts(
        &self,
        key: &PublicKey,
        place: &LinePosition,
        how: Contradiction,
    ) -> Result<Standing, HostKeyRefused> {
        let host = self.known.name();
        let what = match how {
            Contradiction::SameType => format!("the key of {host} has changed"),
            Contradiction::OtherType => {
                format!("the key of {host} is of another type than the known one")
            }
        };
        let text = format!(
            "{what}\n\n  presented  {}\n  known      {}\n\n\
             Someone may be intercepting the connection, or the host was reinstalled. Ask its \
             administrator for the fingerprint.",
            named(key),
            self.known.lines().describe_key_at(place),
        );
        if self.check == CheckHostKey::Off {
            // Printed at any log level.
            terminal::say(&format!(
                "warning: {text}\nContinuing because StrictHostKeyChecking is `no`, but without \
                 passwords and forwards."
            ));
            return Ok(Standing::Doubted);
        }
        Err(HostKeyRefused(format!(
            "{text} If the new key is right, remove the old one:\n  ssh-keygen -f '{}' -R '{host}'",
            place.file
        )))
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            terminal::say(text);
        }
    }
}

impl HostKeyPolicy for Policy {
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        Box::pin(async {
            let standing = self.judge(key).await?;
            // Called once per session.
            let _ = self.taken.0.set(standing);
            Ok(())
        })
    }
}

/// Returns the type and the fingerprint of a key.
fn named(key: &PublicKey) -> String {
    format!("{} {}", key.type_name(), key.fingerprint())
}
