//! Expansion of `~`, `%h` and `${NAME}` in values.

use std::path::{Path, PathBuf};

use adit_config::text::Sources;

/// Maximum length of a value after expansion, in bytes.
const MAX_EXPANDED_LEN: usize = 65_536;

/// Values of the tokens.
pub(super) struct ExpansionContext<'a> {
    pub(super) host_name: &'a str,
    pub(super) original_host: &'a str,
    pub(super) port: u16,
    pub(super) remote_user: &'a str,
    pub(super) local_user: &'a str,
    pub(super) local_host: &'a str,
    pub(super) home: &'a Path,
    pub(super) sources: &'a dyn Sources,
}

impl ExpansionContext<'_> {
    /// Expands a path: a leading `~` becomes the home folder; tokens and variables are replaced.
    pub(super) fn expand_path(&self, text: &str) -> Result<PathBuf, String> {
        let expanded = self.expand_text(text)?;
        Ok(match expanded.strip_prefix('~') {
            Some("") => self.home.to_owned(),
            Some(rest) => match rest.strip_prefix('/') {
                Some(below) => self.home.join(below.trim_start_matches('/')),
                None => return Err("the home of another user is not supported".to_owned()),
            },
            None => PathBuf::from(expanded),
        })
    }

    /// Replaces tokens and variables.
    fn expand_text(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = self.expand_percent(text)?;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, tail) = after
                .split_once('}')
                .ok_or_else(|| "`${` has no `}`".to_owned())?;
            let value = self
                .sources
                .read_variable(name)
                .ok_or_else(|| format!("the variable `{name}` is not set"))?;
            out.push_str(before);
            out.push_str(&value);
            check_length(&out)?;
            rest = tail.to_owned();
        }
        out.push_str(&rest);
        Ok(out)
    }

    /// Replaces tokens only.
    pub(super) fn expand_percent(&self, text: &str) -> Result<String, String> {
        replace_percent(text, |token| {
            Some(match token {
                'd' => self.home.to_str()?.to_owned(),
                'h' => self.host_name.to_owned(),
                'k' | 'n' => self.original_host.to_owned(),
                'L' => self.local_host.split('.').next()?.to_owned(),
                'l' => self.local_host.to_owned(),
                'p' => self.port.to_string(),
                'r' => self.remote_user.to_owned(),
                'u' => self.local_user.to_owned(),
                _ => return None,
            })
        })
    }
}

/// Replaces `%x` with the result of `meaning`, and `%%` with `%`.
pub(super) fn replace_percent(
    text: &str,
    meaning: impl Fn(char) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some(token) => {
                let value =
                    meaning(token).ok_or_else(|| format!("`%{token}` is not a supported token"))?;
                out.push_str(&value);
            }
            None => return Err("`%` needs a letter or another `%`".to_owned()),
        }
        check_length(&out)?;
    }
    Ok(out)
}

fn check_length(text: &str) -> Result<(), String> {
    if text.len() > MAX_EXPANDED_LEN {
        return Err(format!("longer than {MAX_EXPANDED_LEN} bytes"));
    }
    Ok(())
}
