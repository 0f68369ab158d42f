//! The users that a reader has found, and the checks that all formats share.

use std::collections::HashMap;

use adit_config::text::{Problem, Secret, sanitize_for_terminal};
use adit_shadowsocks::{Edition, Key, Method};

use super::user_export::{
    ExportedLimits, ExportedUser, MAX_EXPORT_USERS, SkippedUser, UserExport, UserFormat,
};
use crate::conversion_context::ConversionContext;
use crate::json::Json;
use crate::server_entry::item_path;

/// The longest name, in bytes.
const MAX_NAME: usize = 255;
/// The largest number of sessions or devices.
const MAX_COUNT: u64 = 1_000_000;

/// Collects users, and the reasons why others are skipped.
pub(super) struct UserCollector<'a> {
    pub(super) clerk: ConversionContext<'a>,
    users: Vec<ExportedUser>,
    skipped: Vec<SkippedUser>,
    /// The position of each user by name.
    positions: HashMap<String, usize>,
    is_full: bool,
}

/// A user who is being read.
#[derive(Default)]
pub(super) struct UserDraft {
    pub(super) name: String,
    pub(super) password: Option<Secret>,
    pub(super) psk: Option<Secret>,
    pub(super) login: Option<Secret>,
    pub(super) limits: ExportedLimits,
    pub(super) used: Option<u64>,
    pub(super) is_disabled: bool,
}

impl UserDraft {
    /// Sets a secret of Shadowsocks for a method. Keys before the user's own are not part of the user.
    pub(super) fn set_secret(&mut self, method: &str, secret: &str) -> Result<(), String> {
        let Ok(method) = method.parse::<Method>() else {
            return Err(format!(
                "its method `{method}` is not known to this version"
            ));
        };
        match method.edition() {
            Edition::Aead2022 => {
                let own = secret.rsplit(':').next().unwrap_or(secret);
                Key::parse(method, own).map_err(|why| format!("its key: {why}"))?;
                self.psk = Some(own.into());
            }
            Edition::Aead => {
                Key::parse(method, secret).map_err(|why| format!("its password: {why}"))?;
                self.password = Some(secret.into());
            }
            Edition::None | Edition::Stream => {
                return Err(format!(
                    "its method `{}` has no users who can be told apart",
                    method.name()
                ));
            }
        }
        Ok(())
    }
}

impl<'a> UserCollector<'a> {
    pub(super) fn new(clerk: ConversionContext<'a>) -> Self {
        Self {
            clerk,
            users: Vec::new(),
            skipped: Vec::new(),
            positions: HashMap::new(),
            is_full: false,
        }
    }

    /// Adds the user of a reader, or records why there is none. The problems of the context are those of this user.
    pub(super) fn add(&mut self, place: &str, user: Result<UserDraft, (String, String)>) {
        let problems = core::mem::take(&mut self.clerk.problems);
        let (draft, why) = match (user, problems.into_iter().next()) {
            (Ok(draft), None) => (draft, None),
            (Ok(draft), Some(problem)) => (draft, Some(problem.title)),
            (Err((name, why)), _) => {
                let named = UserDraft {
                    name,
                    ..UserDraft::default()
                };
                (named, Some(why))
            }
        };
        let why = why.or_else(|| self.reason_unusable(&draft));
        if let Some(why) = why {
            self.skip(place, &draft.name, &why);
            return;
        }
        if self.users.len() >= MAX_EXPORT_USERS {
            self.is_full = true;
            return;
        }
        let UserDraft {
            name,
            password,
            psk,
            login,
            limits,
            used,
            is_disabled,
        } = draft;
        self.positions.insert(name.clone(), self.users.len());
        self.users.push(ExportedUser {
            name,
            password,
            psk,
            login,
            limits,
            used: used.filter(|used| *used > 0),
            is_disabled,
        });
    }

    /// Adds the users that `read` returns for the items of a list at `place`; it is called with an item and its place.
    pub(super) fn add_all<'j>(
        &mut self,
        place: &str,
        items: &'j [Json],
        mut read: impl FnMut(&'j Json, String, &mut Self) -> Result<UserDraft, (String, String)>,
    ) {
        for (i, item) in items.iter().enumerate() {
            let place = item_path(place, i);
            let user = read(item, place.clone(), self);
            self.add(&place, user);
        }
    }

    /// Returns the user of a name, who was found before.
    pub(super) fn find(&self, name: &str) -> Option<&ExportedUser> {
        self.users.get(*self.positions.get(name)?)
    }

    /// Records a user who is not imported.
    pub(super) fn skip(&mut self, place: &str, name: &str, why: &str) {
        if self.skipped.len() >= MAX_EXPORT_USERS {
            self.is_full = true;
            return;
        }
        let name = if name.is_empty() { place } else { name };
        self.skipped.push(SkippedUser {
            name: sanitize_for_terminal(name),
            why: sanitize_for_terminal(why),
        });
    }

    fn reason_unusable(&self, user: &UserDraft) -> Option<String> {
        let name = user.name.as_str();
        if name.is_empty() {
            return Some("it has no name".to_owned());
        }
        if name.len() > MAX_NAME || name.chars().any(char::is_control) || name.trim() != name {
            return Some(
                "a name has 1 to 255 bytes, no control characters, and no space at its ends"
                    .to_owned(),
            );
        }
        if self.positions.contains_key(name) {
            return Some("another user of the export has this name".to_owned());
        }
        if user.password.is_none() && user.psk.is_none() && user.login.is_none() {
            return Some("it has no password or key that adit can use".to_owned());
        }
        None
    }

    /// Returns everything that was found.
    pub(super) fn finish(self, format: UserFormat) -> Result<UserExport, Box<Problem>> {
        if self.is_full {
            let title = format!("the export has more than {MAX_EXPORT_USERS} users");
            let help = "export the users in several parts";
            return Err(Box::new(Problem::without_place(title, help)));
        }
        // A problem of the document as a whole.
        if let Some(problem) = self.clerk.problems.into_iter().next() {
            return Err(Box::new(problem));
        }
        Ok(UserExport {
            format,
            users: self.users,
            skipped: self.skipped,
            notes: self.clerk.notes,
        })
    }
}

/// Returns a number of sessions or devices, which has to be at least 1; more than a million is no limit.
pub(super) fn count_limit(number: u64) -> Option<u32> {
    let number = Some(number).filter(|number| (1..=MAX_COUNT).contains(number));
    number.and_then(|number| u32::try_from(number).ok())
}
