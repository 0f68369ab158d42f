//! The steps of an installation or a removal, which are planned first and then performed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use adit_cli::{CommandResult, Failure, FailureCode};

/// The line by which a file that `adit service` has written is recognized.
pub(super) const MARK: &str = "Written by `adit service install`";

/// One change of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes a file, with these permissions, and the missing folders above it.
    Write {
        path: PathBuf,
        text: String,
        mode: u32,
    },
    /// Removes a file.
    Remove(PathBuf),
    /// Runs a program, which has to succeed.
    Run(Vec<String>),
    /// Runs a program that may fail: there may be nothing for it to do.
    Try(Vec<String>),
}

impl Step {
    pub(super) fn run(words: &[&str]) -> Self {
        Self::Run(words.iter().map(|&word| word.to_owned()).collect())
    }

    pub(super) fn attempt(words: &[&str]) -> Self {
        Self::Try(words.iter().map(|&word| word.to_owned()).collect())
    }

    fn perform(&self) -> CommandResult {
        match self {
            Self::Write { path, text, mode } => write_file(path, text, *mode),
            Self::Remove(path) => match fs::remove_file(path) {
                Err(why) if why.kind() != ErrorKind::NotFound => Err(failed(path, &why)),
                _ => Ok(()),
            },
            Self::Run(words) => run_program(words),
            Self::Try(words) => {
                let _ = run_program(words);
                Ok(())
            }
        }
    }
}

/// Performs the steps up to the first that fails.
pub(super) fn perform(steps: &[Step]) -> CommandResult {
    steps.iter().try_for_each(Step::perform)
}

/// Returns true if `adit service` has written the file, and false if there is none.
///
/// # Errors
/// The file is someone else's, or cannot be read.
pub(super) fn is_own_file(path: &Path) -> Result<bool, Failure> {
    match fs::read_to_string(path) {
        Ok(text) if text.lines().take(4).any(|line| line.contains(MARK)) => Ok(true),
        Ok(_) => {
            let what = format!(
                "{} was not written by `adit service install`",
                path.display()
            );
            Err(Failure::new(FailureCode::Failure, what))
        }
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        Err(why) => Err(failed(path, &why)),
    }
}

/// Returns the output of a program that may fail; `None` if it cannot be started.
pub(super) fn output_of(words: &[&str]) -> Option<(bool, String)> {
    let (program, args) = words.split_first()?;
    let run = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output();
    let run = run.ok()?;
    let text = String::from_utf8_lossy(&run.stdout).trim().to_owned();
    Some((run.status.success(), text))
}

/// Writes the file under another name first: the service manager never reads a part of it.
fn write_file(path: &Path, text: &str, mode: u32) -> CommandResult {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|why| failed(folder, &why))?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = fs::write(&new, text)
        .and_then(|()| set_mode(&new, mode))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|why| {
        let _ = fs::remove_file(&new);
        failed(path, &why)
    })
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> std::io::Result<()> {
    Ok(())
}

fn run_program(words: &[String]) -> CommandResult {
    let Some((program, args)) = words.split_first() else {
        return Ok(());
    };
    let ended = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output();
    let line = words.join(" ");
    let ended = ended.map_err(|why| {
        Failure::new(
            FailureCode::Failure,
            format!("cannot start `{line}`: {why}"),
        )
    })?;
    if ended.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&ended.stderr);
    let what = format!("`{line}` failed ({}): {}", ended.status, text.trim());
    Err(Failure::new(FailureCode::Failure, what))
}

fn failed(path: &Path, why: &std::io::Error) -> Failure {
    let failure = Failure::new(FailureCode::Failure, format!("{}: {why}", path.display()));
    match why.kind() {
        ErrorKind::PermissionDenied => failure.with_hint(
            "a service of the system needs root: `sudo adit service …`; `--user` makes one of your own",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_others_is_recognized() {
        let folder = std::env::temp_dir().join(format!("adit-service-{}", std::process::id()));
        let path = folder.join("a/adit.service");
        assert!(!is_own_file(&path).unwrap());
        let write = |text: &str| Step::Write {
            path: path.clone(),
            text: text.to_owned(),
            mode: 0o644,
        };
        perform(&[write(&format!("# {MARK}\n[Unit]\n"))]).unwrap();
        assert!(is_own_file(&path).unwrap());
        perform(&[write("[Unit]\n")]).unwrap();
        is_own_file(&path).unwrap_err();
        let remove = Step::Remove(path.clone());
        perform(&[remove.clone(), remove]).unwrap();
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_first_failure_ends_the_steps() {
        let path = std::env::temp_dir().join(format!("adit-steps-{}", std::process::id()));
        let steps = [
            Step::attempt(&["false"]),
            Step::run(&["sh", "-c", "echo reason >&2; exit 3"]),
            Step::Write {
                path: path.clone(),
                text: String::new(),
                mode: 0o644,
            },
        ];
        let why = perform(&steps).unwrap_err().to_log_line();
        assert!(why.contains("reason") && why.contains('3'), "{why}");
        assert!(!path.exists());
    }
}
