//! Files matched by an `Include` pattern.

use std::path::{Path, PathBuf};

use super::SshConfigSources;
use super::pattern;

/// Maximum number of files per `Include` pattern.
const MAX_FILES: usize = 256;

/// Returns the files that match a path with `*` and `?`, sorted by name. Hidden files match only if the
/// pattern starts with a dot. A path without wildcards is returned unchanged.
pub(super) fn matching_files(path: &Path, sources: &dyn SshConfigSources) -> Vec<PathBuf> {
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
            let mut names = sources.file_names(folder).unwrap_or_default();
            names.retain(|name| {
                pattern::matches_pattern(wild, name)
                    && (!name.starts_with('.') || wild.starts_with('.'))
            });
            names.sort_unstable();
            next.extend(names.iter().map(|name| folder.join(name)));
            if next.len() > MAX_FILES {
                next.truncate(MAX_FILES);
                break;
            }
        }
        found = next;
    }
    found
}
