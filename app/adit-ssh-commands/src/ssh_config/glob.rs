//! The files that an `Include` means.

use std::path::{Path, PathBuf};

use super::SshSources;
use super::pattern;

/// Files that one `Include` means at most.
const MOST: usize = 256;

/// The files that a path with `*` and `?` describes, in the order of their names; hidden ones
/// must be named with their point. A path without these is itself.
pub(super) fn files(path: &Path, sources: &dyn SshSources) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in path {
        let wild = part.to_str().filter(|part| part.contains(['*', '?']));
        let Some(wild) = wild else {
            for path in &mut found {
                path.push(part);
            }
            continue;
        };
        let mut next = Vec::new();
        for folder in &found {
            let mut names = sources.names(folder).unwrap_or_default();
            names.retain(|name| {
                pattern::matches(wild, name) && (!name.starts_with('.') || wild.starts_with('.'))
            });
            names.sort_unstable();
            next.extend(names.iter().map(|name| folder.join(name)));
            if next.len() > MOST {
                next.truncate(MOST);
                break;
            }
        }
        found = next;
    }
    found
}
