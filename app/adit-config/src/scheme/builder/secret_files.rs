//! Reading of secrets and users from files and variables.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::schema::SecretValue;
use crate::scheme::builder::EndpointBuilder;
use crate::scheme::endpoint_types::UserPassword;
use crate::scheme::password_file::{self, PASSWORD_LINE, PasswordFileFlaw};
use crate::scheme::shared_keys;
use crate::text::{
    ConfigError, Diagnostics, FileText, Secret, SecretLookup, SecretText, Span, UrlSnippet,
    WarningKind,
};

impl EndpointBuilder<'_, '_> {
    /// Returns user and password of the URL: `None` if one is missing or wrong, `Some(None)` without both.
    pub(crate) fn read_login(&mut self) -> Option<Option<UserPassword>> {
        let endpoint = self.endpoint;
        let Some(user) = &endpoint.user else {
            return Some(None);
        };
        let Some(written) = &endpoint.secret else {
            let flaw = ConfigError::new(user.span, "a user without a password")
                .with_help("write `USER:PASSWORD@`; the password can be `@FILE` or `$NAME`");
            self.report_error(flaw);
            return None;
        };
        if user.value.is_empty() {
            self.report_error(ConfigError::new(written.span, "a password without a user"));
            return None;
        }
        let password = self.read_secret(&written.value, written.span)?;
        if password.expose().is_empty() {
            self.report_error(ConfigError::new(written.span, "the password is empty"));
            return None;
        }
        Some(Some(UserPassword {
            user: user.value.clone(),
            password,
        }))
    }

    /// Returns a secret, read from its file or variable if it names one.
    pub(crate) fn read_secret(&mut self, written: &SecretText, span: Span) -> Option<Secret> {
        read_secret(self.diagnostics, self.lookup, self.excerpt, written, span)
    }

    /// Returns a secret of the query, read from its file or variable if it names one.
    pub(crate) fn read_query_secret(
        &mut self,
        written: &SecretValue,
        span: Span,
    ) -> Option<Secret> {
        let text = &written.0;
        let place = match (text.strip_prefix('@'), text.strip_prefix('$')) {
            (Some(path), _) => SecretText::File(path.to_owned()),
            (_, Some(name)) => SecretText::Variable(name.to_owned()),
            _ => SecretText::Literal(Secret::from(text.as_str())),
        };
        self.read_secret(&place, span)
    }

    /// Reads a file that contains a secret.
    pub(crate) fn read_secret_file(&mut self, path: &str, span: Span) -> Option<Secret> {
        let file = self.read_file(path, span)?;
        Some(Secret::from(file.text.as_str()))
    }

    /// Reads a file that may be missing.
    pub(crate) fn read_optional_file(&self, path: &str) -> Option<Secret> {
        let file = self
            .lookup
            .sources
            .read_file(&self.resolve_path(path))
            .ok()?;
        Some(Secret::from(file.text.as_str()))
    }

    /// Reads a file that contains no secret.
    pub(crate) fn read_public_file(&mut self, path: &str, span: Span) -> Option<Zeroizing<String>> {
        match self.lookup.sources.read_file(&self.resolve_path(path)) {
            Ok(file) => Some(file.text),
            Err(why) => {
                let flaw = ConfigError::new(span, format!("cannot read `{path}`"))
                    .with_label(why.to_string());
                self.report_error(flaw);
                None
            }
        }
    }

    /// Returns a variable of the environment, if it is set and not empty.
    pub(crate) fn environment_variable(&self, name: &str) -> Option<String> {
        let value = self.lookup.sources.read_variable(name)?;
        (!value.is_empty()).then(|| value.as_str().to_owned())
    }

    /// Returns the path of a file that adit creates itself, in the state directory of the user.
    pub(crate) fn state_path(&mut self, name: &str) -> Option<PathBuf> {
        let folder = |name: &str, below: &str| {
            Some(Path::new(&self.environment_variable(name)?).join(below))
        };
        let found = folder("STATE_DIRECTORY", "")
            .or_else(|| folder("XDG_STATE_HOME", "adit"))
            .or_else(|| folder("HOME", ".local/state/adit"))
            .or_else(|| folder("USERPROFILE", ".local/state/adit"));
        if found.is_none() {
            let title = format!("HOME is not set, so there is no directory for `{name}`");
            let flaw =
                ConfigError::new(self.endpoint.address, title).with_help("name a file for it");
            self.report_error(flaw);
        }
        found.map(|folder| folder.join(name))
    }

    /// Reads the users of a file: `user:password` lines. Empty lines and `#` comments are skipped.
    pub(crate) fn read_users_file(&mut self, path: &str) -> Option<Vec<UserPassword>> {
        let span = self.value_span(&shared_keys::USERS);
        let file = self.read_file(path, span)?;
        match password_file::parse_lines(&file.text) {
            Ok(users) => Some(users),
            Err(flaw) => {
                let error = ConfigError::new(span, flaw.title(path));
                self.report_error(match flaw {
                    PasswordFileFlaw::NoUser => error.with_label(PASSWORD_LINE),
                    PasswordFileFlaw::Line(_) => error,
                });
                None
            }
        }
    }

    /// Reads a file of a secret or users.
    fn read_file(&mut self, path: &str, span: Span) -> Option<FileText> {
        read_file(
            self.diagnostics,
            self.lookup,
            self.excerpt,
            path,
            span,
            None,
        )
    }

    /// Reads a long file of at most `limit` bytes.
    pub(crate) fn read_long_file(
        &mut self,
        path: &str,
        span: Span,
        limit: u64,
    ) -> Option<FileText> {
        read_file(
            self.diagnostics,
            self.lookup,
            self.excerpt,
            path,
            span,
            Some(limit),
        )
    }

    /// Resolves a path of the URL.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        resolve_path(self.lookup, path)
    }
}

/// Returns a secret, read from its file or variable if it names one. Errors are reported at `span` of
/// `excerpt`.
pub(crate) fn read_secret(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    excerpt: UrlSnippet<'_>,
    written: &SecretText,
    span: Span,
) -> Option<Secret> {
    match written {
        SecretText::Literal(secret) => {
            diagnostics.note_literal_secret();
            if excerpt.is_argument() && !secret.expose().is_empty() {
                let about = ConfigError::new(span, "a secret on the command line")
                    .with_label("every user of this machine can read it")
                    .with_help("write `@FILE` or `$NAME` instead (quote the `$` for the shell)");
                diagnostics.add_warning(WarningKind::LiteralSecret, excerpt.locate_error(about));
            }
            Some(Secret::from(secret.expose()))
        }
        SecretText::File(path) => {
            let file = read_file(diagnostics, lookup, excerpt, path, span, None)?;
            Some(Secret::from(file.text.trim_end_matches(['\r', '\n'])))
        }
        SecretText::Variable(name) => match lookup.sources.read_variable(name) {
            Some(value) => Some(Secret::from(value.as_str())),
            None => {
                let title = format!("the environment variable `{name}` is not set");
                diagnostics.add_url_error(
                    &excerpt,
                    add_escape_hint(ConfigError::new(span, title), excerpt, "`$`", "`%24`"),
                );
                None
            }
        },
    }
}

/// Reads a file. Errors, and a warning if other users can read it, are reported at `span` of `excerpt`.
pub(crate) fn read_file(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    excerpt: UrlSnippet<'_>,
    path: &str,
    span: Span,
    limit: Option<u64>,
) -> Option<FileText> {
    let found = resolve_path(lookup, path);
    let file = match limit {
        None => lookup.sources.read_file(&found),
        Some(limit) => lookup.sources.read_file_up_to(&found, limit),
    };
    match file {
        Ok(file) => {
            if file.readable_by_others {
                let title = format!("every user of this machine can read `{path}`");
                let about = ConfigError::new(span, title).with_help(format!("chmod 600 {path}"));
                diagnostics.add_warning(WarningKind::ReadableSecret, excerpt.locate_error(about));
            }
            Some(file)
        }
        Err(why) => {
            let flaw =
                ConfigError::new(span, format!("cannot read `{path}`")).with_label(why.to_string());
            diagnostics.add_url_error(&excerpt, add_escape_hint(flaw, excerpt, "`@`", "`%40`"));
            None
        }
    }
}

/// Adds the hint on how to write a secret that begins with `@` or `$`.
fn add_escape_hint(
    flaw: ConfigError,
    excerpt: UrlSnippet<'_>,
    character: &str,
    code: &str,
) -> ConfigError {
    if !excerpt.is_url() {
        return flaw;
    }
    flaw.with_help(format!(
        "if the secret begins with {character}, write {code}"
    ))
}

/// Resolves a path: `~/` is the home directory, other relative paths begin at the base.
pub(crate) fn resolve_path(lookup: SecretLookup<'_>, path: &str) -> PathBuf {
    if let Some(rest) = path.strip_prefix("~/")
        && let Some(home) = ["HOME", "USERPROFILE"]
            .into_iter()
            .find_map(|name| lookup.sources.read_variable(name))
    {
        return Path::new(home.as_str()).join(rest);
    }
    lookup.base.join(path)
}
