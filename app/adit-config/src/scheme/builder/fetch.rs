//! Reading of secrets and users from files and variables.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::schema::SecretValue;
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::keys;
use crate::scheme::typed::Login;
use crate::text::{
    Diagnostics, Excerpt, FileText, Flaw, Lookup, Secret, SecretText, Span, WarningKind,
};

impl EndpointBuilder<'_, '_> {
    /// Returns user and password of the URL: `None` if one is missing or wrong, `Some(None)` without both.
    pub(crate) fn login(&mut self) -> Option<Option<Login>> {
        let endpoint = self.endpoint;
        let Some(user) = &endpoint.user else {
            return Some(None);
        };
        let Some(written) = &endpoint.secret else {
            let flaw = Flaw::new(user.span, "a user without a password")
                .help("write `USER:PASSWORD@`; the password can be `@FILE` or `$NAME`");
            self.problem(flaw);
            return None;
        };
        if user.value.is_empty() {
            self.problem(Flaw::new(written.span, "a password without a user"));
            return None;
        }
        let password = self.secret(&written.value, written.span)?;
        if password.expose().is_empty() {
            self.problem(Flaw::new(written.span, "the password is empty"));
            return None;
        }
        Some(Some(Login {
            user: user.value.clone(),
            password,
        }))
    }

    /// Returns a secret, read from its file or variable if it names one.
    pub(crate) fn secret(&mut self, written: &SecretText, span: Span) -> Option<Secret> {
        secret(self.diagnostics, self.lookup, self.excerpt, written, span)
    }

    /// Returns a secret of the query, read from its file or variable if it names one.
    pub(crate) fn written_secret(&mut self, written: &SecretValue, span: Span) -> Option<Secret> {
        let text = &written.0;
        let place = match (text.strip_prefix('@'), text.strip_prefix('$')) {
            (Some(path), _) => SecretText::File(path.to_owned()),
            (_, Some(name)) => SecretText::Variable(name.to_owned()),
            _ => SecretText::Literal(Secret::from(text.as_str())),
        };
        self.secret(&place, span)
    }

    /// Reads a file that contains a secret.
    pub(crate) fn secret_file(&mut self, path: &str, span: Span) -> Option<Secret> {
        let file = self.file(path, span)?;
        Some(Secret::from(file.text.as_str()))
    }

    /// Reads a file that may be missing.
    pub(crate) fn optional_file(&self, path: &str) -> Option<Secret> {
        let file = self.lookup.sources.file(&self.resolve(path)).ok()?;
        Some(Secret::from(file.text.as_str()))
    }

    /// Reads a file that contains no secret.
    pub(crate) fn public_file(&mut self, path: &str, span: Span) -> Option<Zeroizing<String>> {
        match self.lookup.sources.file(&self.resolve(path)) {
            Ok(file) => Some(file.text),
            Err(why) => {
                let flaw = Flaw::new(span, format!("cannot read `{path}`")).label(why.to_string());
                self.problem(flaw);
                None
            }
        }
    }

    /// Returns a variable of the environment, if it is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = self.lookup.sources.variable(name)?;
        (!value.is_empty()).then(|| value.as_str().to_owned())
    }

    /// Returns the path of a file that adit creates itself, in the state directory of the user.
    pub(crate) fn state(&mut self, name: &str) -> Option<PathBuf> {
        let folder = |name: &str, below: &str| Some(Path::new(&self.variable(name)?).join(below));
        let found = folder("STATE_DIRECTORY", "")
            .or_else(|| folder("XDG_STATE_HOME", "adit"))
            .or_else(|| folder("HOME", ".local/state/adit"))
            .or_else(|| folder("USERPROFILE", ".local/state/adit"));
        if found.is_none() {
            let title = format!("HOME is not set, so there is no directory for `{name}`");
            let flaw = Flaw::new(self.endpoint.address, title).help("name a file for it");
            self.problem(flaw);
        }
        found.map(|folder| folder.join(name))
    }

    /// Reads the users of a file: `user:password` lines. Empty lines and `#` comments are skipped.
    pub(crate) fn users_file(&mut self, path: &str) -> Option<Vec<Login>> {
        let span = self.value_span(&keys::USERS);
        let file = self.file(path, span)?;
        let mut users = Vec::new();
        for (number, line) in file.text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(':') {
                Some((user, password)) if !user.is_empty() && !password.is_empty() => {
                    users.push(Login {
                        user: user.to_owned(),
                        password: Secret::from(password),
                    });
                }
                _ => {
                    let title = format!("line {} of `{path}` is not `user:password`", number + 1);
                    self.problem(Flaw::new(span, title));
                    return None;
                }
            }
        }
        if users.is_empty() {
            let title = format!("no user in `{path}`");
            self.problem(Flaw::new(span, title).label("write one `user:password` per line"));
            return None;
        }
        Some(users)
    }

    /// Reads a file of a secret or users.
    fn file(&mut self, path: &str, span: Span) -> Option<FileText> {
        file(
            self.diagnostics,
            self.lookup,
            self.excerpt,
            path,
            span,
            None,
        )
    }

    /// Reads a long file of at most `limit` bytes.
    pub(crate) fn long_file(&mut self, path: &str, span: Span, limit: u64) -> Option<FileText> {
        file(
            self.diagnostics,
            self.lookup,
            self.excerpt,
            path,
            span,
            Some(limit),
        )
    }

    /// Resolves a path of the URL.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        resolve(self.lookup, path)
    }
}

/// Returns a secret, read from its file or variable if it names one. Errors are reported at `span` of
/// `excerpt`.
pub(crate) fn secret(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    excerpt: Excerpt<'_>,
    written: &SecretText,
    span: Span,
) -> Option<Secret> {
    match written {
        SecretText::Literal(secret) => {
            diagnostics.literal_secret();
            if excerpt.is_argument() && !secret.expose().is_empty() {
                let about = Flaw::new(span, "a secret on the command line")
                    .label("every user of this machine can read it")
                    .help("write `@FILE` or `$NAME` instead (quote the `$` for the shell)");
                diagnostics.warning(WarningKind::LiteralSecret, excerpt.problem(about));
            }
            Some(Secret::from(secret.expose()))
        }
        SecretText::File(path) => {
            let file = file(diagnostics, lookup, excerpt, path, span, None)?;
            Some(Secret::from(file.text.trim_end_matches(['\r', '\n'])))
        }
        SecretText::Variable(name) => match lookup.sources.variable(name) {
            Some(value) => Some(Secret::from(value.as_str())),
            None => {
                let title = format!("the environment variable `{name}` is not set");
                diagnostics.flaw(
                    &excerpt,
                    escaped(Flaw::new(span, title), excerpt, "`$`", "`%24`"),
                );
                None
            }
        },
    }
}

/// Reads a file. Errors, and a warning if other users can read it, are reported at `span` of `excerpt`.
fn file(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    excerpt: Excerpt<'_>,
    path: &str,
    span: Span,
    limit: Option<u64>,
) -> Option<FileText> {
    let found = resolve(lookup, path);
    let file = match limit {
        None => lookup.sources.file(&found),
        Some(limit) => lookup.sources.long_file(&found, limit),
    };
    match file {
        Ok(file) => {
            if file.readable_by_others {
                let title = format!("every user of this machine can read `{path}`");
                let about = Flaw::new(span, title).help(format!("chmod 600 {path}"));
                diagnostics.warning(WarningKind::ReadableSecret, excerpt.problem(about));
            }
            Some(file)
        }
        Err(why) => {
            let flaw = Flaw::new(span, format!("cannot read `{path}`")).label(why.to_string());
            diagnostics.flaw(&excerpt, escaped(flaw, excerpt, "`@`", "`%40`"));
            None
        }
    }
}

/// Adds the hint on how to write a secret that begins with `@` or `$`.
fn escaped(flaw: Flaw, excerpt: Excerpt<'_>, character: &str, code: &str) -> Flaw {
    if !excerpt.is_url() {
        return flaw;
    }
    flaw.help(format!(
        "if the secret begins with {character}, write {code}"
    ))
}

/// Resolves a path: `~/` is the home directory, other relative paths begin at the base.
fn resolve(lookup: Lookup<'_>, path: &str) -> PathBuf {
    if let Some(rest) = path.strip_prefix("~/")
        && let Some(home) = lookup.sources.variable("HOME")
    {
        return Path::new(home.as_str()).join(rest);
    }
    lookup.base.join(path)
}
