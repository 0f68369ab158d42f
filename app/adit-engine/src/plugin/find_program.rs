//! Lookup of a plugin's program.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{PluginError, system};

/// Environment variable with a directory that is searched before those of `PATH`.
const PLUGIN_DIR_VARIABLE: &str = "ADIT_PLUGIN_DIR";

/// Finds the program with the environment of this process.
pub(super) fn find_program(name: &str) -> Result<PathBuf, PluginError> {
    let folders = [env::var_os(PLUGIN_DIR_VARIABLE), env::var_os("PATH")];
    find_program_in(name, &folders.each_ref().map(|f| f.as_deref()))
}

/// Finds the program: an absolute path is used unchanged, a plain name is searched in the directories.
///
/// Relative directories are skipped: the program that runs must not depend on the working directory.
fn find_program_in(name: &str, lists: &[Option<&OsStr>]) -> Result<PathBuf, PluginError> {
    let path = Path::new(name);
    // Includes all names with this prefix, which shadowsocks-libev treats specially.
    if path
        .file_name()
        .is_some_and(|file| file.as_encoded_bytes().starts_with(b"obfsproxy"))
    {
        return Err(PluginError::Obfsproxy(name.to_owned()));
    }
    if path.is_absolute() {
        let path = &system::with_extension(path.to_owned());
        return match PathKind::of_path(path) {
            PathKind::Program => Ok(path.to_owned()),
            PathKind::File => Err(PluginError::NotExecutable(path.to_owned())),
            PathKind::Nothing => Err(PluginError::NotFound {
                program: name.to_owned(),
                places: path
                    .parent()
                    .map_or_else(String::new, |dir| dir.display().to_string()),
            }),
        };
    }
    let plain = !name.is_empty() && !name.contains(system::NOT_IN_NAMES);
    if !plain || name == "." || name == ".." {
        return Err(PluginError::Relative(name.to_owned()));
    }
    let mut near_miss = None;
    let folders = lists.iter().flatten().flat_map(env::split_paths);
    for folder in folders.filter(|folder| folder.is_absolute()) {
        let file = system::with_extension(folder.join(name));
        match PathKind::of_path(&file) {
            PathKind::Program => return Ok(file),
            PathKind::File => near_miss = near_miss.or(Some(file)),
            PathKind::Nothing => {}
        }
    }
    Err(near_miss.map_or_else(
        || PluginError::NotFound {
            program: name.to_owned(),
            places: format!("{PLUGIN_DIR_VARIABLE} and PATH"),
        },
        PluginError::NotExecutable,
    ))
}

/// The kind of a path.
enum PathKind {
    Program,
    File,
    Nothing,
}

impl PathKind {
    fn of_path(path: &Path) -> Self {
        match path.metadata() {
            Ok(meta) if meta.is_file() && system::is_program(path, &meta) => Self::Program,
            Ok(meta) if meta.is_file() => Self::File,
            _ => Self::Nothing,
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Folders(PathBuf);

    impl Drop for Folders {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn put(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn names_are_looked_up_in_order_and_errors_say_what_is_wrong() {
        let root = env::temp_dir().join(format!("adit-find-{}", std::process::id()));
        let root = Folders(root);
        let [own, path] = ["own", "path"].map(|name| root.0.join(name));
        fs::create_dir_all(own.join("folder")).unwrap();
        fs::create_dir_all(&path).unwrap();
        put(&own.join("both"), 0o755);
        put(&path.join("both"), 0o755);
        put(&own.join("half"), 0o644);
        put(&path.join("half"), 0o755);
        put(&path.join("text"), 0o644);
        put(&path.join("a b;c"), 0o755);
        let list = env::join_paths([Path::new("."), Path::new(""), &path]).unwrap();
        let look = |name: &str| find_program_in(name, &[Some(own.as_os_str()), Some(&list)]);

        assert_eq!(look("both").unwrap(), own.join("both"));
        assert_eq!(look("half").unwrap(), path.join("half"));
        assert_eq!(look("a b;c").unwrap(), path.join("a b;c"));
        let full = path.join("both");
        assert_eq!(look(full.to_str().unwrap()).unwrap(), full);
        assert_eq!(
            find_program_in("both", &[None, Some(&list)]).unwrap(),
            path.join("both")
        );

        let told = |name: &str| look(name).unwrap_err().to_string();
        assert!(told("text").ends_with("text is not executable"));
        assert!(told("none").ends_with("`none` was not found in ADIT_PLUGIN_DIR and PATH"));
        assert!(told("folder").contains("not found"));
        assert!(told("/no/such").ends_with("was not found in /no"));
        for odd in ["./both", "own/both", "", ".", "..", "both/", "a\0b"] {
            assert!(
                matches!(look(odd), Err(PluginError::Relative(_))),
                "{odd:?}"
            );
        }
        for tor in ["obfsproxy", "obfsproxy-legacy", "/usr/bin/obfsproxy"] {
            assert!(told(tor).contains("not supported"), "{tor}");
        }
        // No relative directory of the list leads to files of the working directory.
        assert!(told("Cargo.toml").contains("not found"));
    }
}
