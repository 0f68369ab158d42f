//! Files of users: any text is a list that a server accepts, or problems that show no key.

#![no_main]

use std::io;
use std::path::Path;

use adit_config::{FileText, Secret, Sources, read_users};
use adit_fuzz::{ActionScript, user_fixture};
use adit_shadowsocks::{MAX_TRIAL_USERS, Method, Users};
use libfuzzer_sys::fuzz_target;
use zeroize::Zeroizing;

/// A key that a message must never show.
const PLANTED_KEY: &str = "AAECAwQFBgcICQoLDA0ODw";

/// A machine whose one file has this text.
struct OneFile<'a>(&'a str);

impl Sources for OneFile<'_> {
    fn read_file(&self, _: &Path) -> io::Result<FileText> {
        Ok(FileText {
            text: Zeroizing::new(self.0.to_owned()),
            readable_by_others: false,
        })
    }

    fn read_variable(&self, _: &str) -> Option<Zeroizing<String>> {
        None
    }
}

/// Returns true if no character adjoins the key, or could: otherwise it is not a key, and may be a
/// name.
fn is_key_delimited(text: &str) -> bool {
    let glue = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let alone = |(at, _): (usize, &str)| {
        let (before, key) = text.split_at(at);
        let behind = &key[PLANTED_KEY.len()..];
        let behind = behind.strip_prefix("==").unwrap_or(behind);
        !before.ends_with(glue) && !behind.starts_with(glue)
    };
    !text.contains('\\') && text.match_indices(PLANTED_KEY).all(alone)
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let methods = [
        Method::Blake3Aes128Gcm,
        Method::Blake3Aes256Gcm,
        Method::Aes128Gcm,
    ];
    let method = script.pick_one(&methods);
    let Ok(text) = std::str::from_utf8(script.take_rest()) else {
        return;
    };
    let (key, secret) = user_fixture::generate_key(method, 99);
    let identity = method.has_identities().then(|| Secret::from(&*secret));
    let path = Path::new("users.json");
    match read_users(method, identity.as_ref(), path, &OneFile(text)) {
        Ok(list) => {
            assert!(!list.is_empty());
            if identity.is_none() && list.len() > MAX_TRIAL_USERS {
                return;
            }
            // A server can be started with the parsed list.
            let named = list
                .iter()
                .map(|user| (user.name.as_str(), user.secret.expose()));
            let made = match identity {
                Some(_) => Users::with_identity_key(&key, named),
                None => Users::with_trial_keys(method, named),
            };
            let made = made.unwrap_or_else(|why| panic!("the server refuses it: {why}"));
            let names = list.iter().map(|user| user.name.as_str());
            assert!(made.iter().map(|user| user.name().to_owned()).eq(names));
        }
        Err(problems) => {
            assert!(!problems.is_empty() && problems.len() < 1000);
            let is_key = method == Method::Blake3Aes128Gcm && is_key_delimited(text);
            for problem in problems {
                let shown = problem.to_string();
                assert!(!shown.is_empty());
                assert!(!is_key || !shown.contains(PLANTED_KEY), "{shown}");
                let lines = text.lines().count().max(1);
                assert!(problem.place.is_none_or(|place| place.line <= lines + 1));
            }
        }
    }
});
