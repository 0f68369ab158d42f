//! What goes for every text that came over a socket.

use std::io;
use std::path::Path;

use adit_config::{FileText, Problem, Sources};
use zeroize::Zeroizing;

/// No files and no variables: a text from elsewhere must not name those of this machine.
pub(crate) struct NoSources;

impl Sources for NoSources {
    fn read_file(&self, _: &Path) -> io::Result<FileText> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn read_variable(&self, _: &str) -> Option<Zeroizing<String>> {
        None
    }
}

/// Problems in one line: their titles, which hold no secret.
pub(crate) fn join_titles(problems: &[Problem]) -> String {
    let titles: Vec<&str> = problems.iter().map(|p| p.title.as_str()).collect();
    titles.join("; ")
}

/// True for what can be the name of a user.
pub(crate) fn is_user_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.chars().any(char::is_control)
}
