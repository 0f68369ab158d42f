//! Files of users with passwords: one `user:password` per line.

use std::path::Path;

use crate::scheme::endpoint_types::UserPassword;
use crate::scheme::key_files::MAX_USERS_FILE;
use crate::text::{Secret, Sources};

/// The hint for wrong files.
pub(crate) const PASSWORD_LINE: &str = "write one `user:password` per line";

/// The reason why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PasswordFileFlaw {
    /// This line, counted from 1, is not `user:password`.
    Line(usize),
    /// There is no user.
    NoUser,
}

impl PasswordFileFlaw {
    /// Returns the title of a message about the file at `path`.
    pub(crate) fn title(self, path: &str) -> String {
        match self {
            Self::Line(number) => format!("line {number} of `{path}` is not `user:password`"),
            Self::NoUser => format!("no user in `{path}`"),
        }
    }
}

/// Parses a file. Empty lines and `#` comments are skipped.
pub(crate) fn parse_lines(text: &str) -> Result<Vec<UserPassword>, PasswordFileFlaw> {
    let mut users = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(':') {
            Some((user, password)) if !user.is_empty() && !password.is_empty() => {
                users.push(UserPassword {
                    user: user.to_owned(),
                    password: Secret::from(password),
                });
            }
            _ => return Err(PasswordFileFlaw::Line(number)),
        }
    }
    if users.is_empty() {
        return Err(PasswordFileFlaw::NoUser);
    }
    Ok(users)
}

/// Reads the file of a proxy listener's users again, for a running listener.
///
/// `in_url` is the user of the listener's URL, and `limits_length` is true if the listener accepts SOCKS5, where user
/// and password have at most 255 bytes.
///
/// # Errors
///
/// The file cannot be read, or is wrong anywhere: a message without secrets, in one line.
pub fn read_password_file(
    path: &Path,
    in_url: Option<&str>,
    limits_length: bool,
    sources: &dyn Sources,
) -> Result<Vec<UserPassword>, String> {
    let name = path.display();
    let file = sources
        .read_file_up_to(path, MAX_USERS_FILE)
        .map_err(|why| format!("cannot read `{name}`: {why}"))?;
    let users = parse_lines(&file.text)
        .map_err(|flaw| format!("{}: {PASSWORD_LINE}", flaw.title(&name.to_string())))?;
    let mut seen: std::collections::HashSet<&str> = in_url.into_iter().collect();
    for login in &users {
        if !seen.insert(&login.user) {
            return Err(format!("user `{}` is defined twice", login.user));
        }
        if limits_length && !login.fits_socks5() {
            return Err(format!(
                "user `{}` is too long for SOCKS5: user and password have 1 to 255 bytes",
                login.user
            ));
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::MemorySources;

    fn read(text: &str, in_url: Option<&str>) -> Result<Vec<String>, String> {
        let sources = MemorySources::default().with_file("users", text);
        let read = read_password_file(Path::new("users"), in_url, true, &sources)?;
        Ok(read.into_iter().map(|login| login.user).collect())
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        assert_eq!(
            read("# two\nann:1\n\nbob:2:3\n", None).unwrap(),
            ["ann", "bob"]
        );
        for (text, says) in [
            ("", "no user in `users`"),
            ("ann:1\nbob\n", "line 2 of `users` is not `user:password`"),
            ("ann:1\nann:2\n", "user `ann` is defined twice"),
            ("eve:2\n", "user `eve` is defined twice"),
            (&format!("ann:{}", "x".repeat(256)), "too long for SOCKS5"),
        ] {
            let why = read(text, Some("eve")).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
