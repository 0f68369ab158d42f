//! The key of a host: known, new, changed or revoked, and what is done about each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adit_config::ssh_config::{CheckHostKey, SshSettings};
use adit_net::ambient;
use adit_session::ssh::client::{HostKey, HostKeyPolicy};
use adit_session::ssh::{BoxFuture, HostKeyRefused};
use adit_ssh::key::{Place, PublicKey, Verdict};

use super::asked::is_quiet;
use super::known_files::Known;
use crate::command::ssh::terminal;

/// How often an answer that is neither yes nor no is asked for again.
const TRIES: u32 = 5;

/// Judges by the files, and asks or learns as `StrictHostKeyChecking` says.
pub(super) struct Policy {
    known: Known,
    check: CheckHostKey,
    /// Nobody is there to be asked.
    batch: bool,
    quiet: bool,
    /// Set if a key is taken that is not the known one.
    doubted: Arc<AtomicBool>,
}

type Judged = Result<(), HostKeyRefused>;

impl Policy {
    pub(super) fn new(settings: &SshSettings, known: Known, doubted: Arc<AtomicBool>) -> Self {
        Self {
            known,
            check: settings.check_host_key,
            batch: settings.batch_mode,
            quiet: is_quiet(settings),
            doubted,
        }
    }

    async fn judge(&self, shown: &HostKey) -> Judged {
        let key = shown.key.key();
        match self
            .known
            .hosts
            .check(&self.known.name, &shown.key, ambient::unix())
        {
            Verdict::Known(place) => {
                tracing::debug!("the key of {} is known: {place}", self.known.name);
                Ok(())
            }
            Verdict::Unknown { other_type } => self.unknown(key, other_type).await,
            Verdict::Changed(place) => self.changed(key, &place),
            Verdict::Revoked(place) => Err(HostKeyRefused(format!(
                "the key of {} is revoked: {place}\n\n  it shows  {}\n\nWhoever has it may not be \
                 the host. Nothing was sent.",
                self.known.name,
                named(key)
            ))),
            Verdict::BadCertificate(place, why) => Err(HostKeyRefused(format!(
                "the certificate of {} is not in order: {why} (its authority: {place})",
                self.known.name
            ))),
        }
    }

    async fn unknown(&self, key: &PublicKey, other: Option<Place>) -> Judged {
        let host = &self.known.name;
        match self.check {
            CheckHostKey::AcceptNew | CheckHostKey::Off => {}
            CheckHostKey::Ask if !self.batch => self.ask(key, other.as_ref()).await?,
            _ => {
                return Err(HostKeyRefused(format!(
                    "the key of {host} is not known\n\n  it shows  {}\n{}\nCompare it with what \
                     the host's keeper says, then make it known by connecting with\n  \
                     -o StrictHostKeyChecking=accept-new",
                    named(key),
                    beside(other.as_ref()),
                )));
            }
        }
        match (self.known.learn(key), self.known.file()) {
            (Ok(()), Some(file)) if file != Path::new("/dev/null") => self.say(&format!(
                "the key of {host} is taken as known from now on: {} ({})",
                named(key),
                file.display()
            )),
            (Ok(()), _) => self.say(&format!(
                "warning: the key of {host} is taken unknown, and not kept: {}",
                named(key)
            )),
            // Worth a word, but no reason not to go on.
            (Err(why), _) => self.say(&format!(
                "warning: the key of {host} was not written down: {why}"
            )),
        }
        Ok(())
    }

    async fn ask(&self, key: &PublicKey, other: Option<&Place>) -> Judged {
        let host = &self.known.name;
        let text = format!(
            "The key of {host} is not known. It shows\n\n  {}\n{}\nIs it the host's? \
             (yes, no, or its fingerprint) ",
            named(key),
            beside(other),
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
                        "the key of {host} is not known, and there is no terminal to ask at\n\n  \
                         it shows  {}\n\nCompare it with what the host's keeper says, then make it \
                         known by connecting with\n  -o StrictHostKeyChecking=accept-new",
                        named(key)
                    )));
                }
                Some(_) => question = "yes, no, or the fingerprint: ".to_owned(),
            }
        }
        Err(HostKeyRefused(format!("the key of {host} was not taken")))
    }

    fn changed(&self, key: &PublicKey, place: &Place) -> Judged {
        let host = &self.known.name;
        let was = self.known.hosts.key_at(place);
        let was = was.map(PublicKey::fingerprint).unwrap_or_default();
        let text = format!(
            "the key of {host} has changed\n\n  it shows  {}\n  known is  {was} ({place})\n\n\
             Somebody may be listening in between, or the host was set up anew. Ask its keeper \
             for the fingerprint.",
            named(key),
        );
        if self.check == CheckHostKey::Off {
            // Never silent, whatever the log level is.
            terminal::say(&format!(
                "warning: {text}\nGoing on, since StrictHostKeyChecking is `no`, but without \
                 passwords and forwards."
            ));
            self.doubted.store(true, Ordering::Relaxed);
            return Ok(());
        }
        Err(HostKeyRefused(format!(
            "{text} If it is the new one, forget the old one:\n  ssh-keygen -f '{}' -R '{host}'",
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
    fn verify<'a>(&'a self, key: &'a HostKey) -> BoxFuture<'a, Judged> {
        Box::pin(self.judge(key))
    }
}

/// The kind of a key and its fingerprint.
fn named(key: &PublicKey) -> String {
    format!("{} {}", key.type_name(), key.fingerprint())
}

/// A line about a key of another type that the host is known with.
fn beside(other: Option<&Place>) -> String {
    other.map_or_else(String::new, |place| {
        format!("  known is a key of another type ({place})\n")
    })
}
