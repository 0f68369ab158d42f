//! `adit scp`: copies files to, from and between remote hosts.

mod location;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use adit_cli::{CommandResult, Failure, FailureCode};

use self::location::Location;
use super::copy::{
    CopyError, CopyJob, CopyOptions, ProgressMeter, Remote, SftpHost, at_home, copy_through,
    display_path, expand_pattern, join_path, local_copy_name, path_bytes, path_from_bytes,
    run_jobs, to_failure,
};
use super::ssh::connect;
use crate::args::ScpArgs;

/// Runs `adit scp`.
///
/// # Errors
/// The failure, with its exit code.
pub fn scp(typed: &ScpArgs) -> CommandResult {
    let read = |word: &OsString| Location::parse(word);
    let places: Result<Vec<Location>, Failure> = typed.places.iter().map(read).collect();
    let mut sources = places?;
    let Some(target) = sources.pop().filter(|_| !sources.is_empty()) else {
        return Err(Failure::new(FailureCode::Usage, "nothing to copy"));
    };
    let rate = typed.copy_args.limit.map(|kbit| u64::from(kbit) * 1000 / 8);
    let how = CopyOptions {
        recursive: typed.copy_args.recursive,
        preserve: typed.copy_args.preserve,
        resume: typed.resume,
        meter: ProgressMeter::new(typed.host_args.quiet, rate),
        any_failed: Cell::new(false),
    };
    connect::block_on(2, async {
        let mut hosts = HostPool {
            args: typed,
            idle: HashMap::new(),
        };
        copy_all(&mut hosts, &sources, &target, &how).await?;
        match how.any_failed.get() {
            false => Ok(()),
            true => Err(Failure::Exit {
                status: 1,
                why: None,
            }),
        }
    })
}

/// Hosts by destination; each is connected once.
struct HostPool<'a> {
    args: &'a ScpArgs,
    idle: HashMap<String, SftpHost>,
}

impl HostPool<'_> {
    /// Removes a host from the pool, connecting it first if required. The caller puts it back.
    async fn take_host(&mut self, destination: &str) -> Result<SftpHost, Failure> {
        match self.idle.remove(destination) {
            Some(host) => Ok(host),
            None => {
                SftpHost::connect_to(destination, self.args.copy_args.port, &self.args.host_args)
                    .await
            }
        }
    }
}

/// Copies all sources to the target.
async fn copy_all(
    hosts: &mut HostPool<'_>,
    sources: &[Location],
    target: &Location,
    how: &CopyOptions,
) -> CommandResult {
    match target {
        Location::Local(to) => {
            let into = to.is_dir();
            if !into && (sources.len() > 1 || path_bytes(to).ends_with(b"/")) {
                return Err(not_a_folder(&to.display().to_string()));
            }
            for source in sources {
                match source {
                    Location::Local(from) => {
                        let what = format!("`{}` and the target are both local", from.display());
                        return Err(Failure::new(FailureCode::Usage, what)
                            .with_hint("use cp to copy on one machine"));
                    }
                    Location::Remote { destination, path } => {
                        let mut host = hosts.take_host(destination).await?;
                        let got = download_pattern(&mut host, path, to, into, how).await;
                        got.map_err(|fault| to_failure(&host.name, &fault))?;
                        hosts.idle.insert(destination.clone(), host);
                    }
                }
            }
            Ok(())
        }
        Location::Remote { destination, path } => {
            let mut host = hosts.take_host(destination).await?;
            let target = (destination.as_str(), &mut host);
            copy_to_host(hosts, target, sources, path, how).await
        }
    }
}

/// Copies the files that match a pattern to `to`, or into that folder if `into` is true.
async fn download_pattern(
    host: &mut SftpHost,
    path: &[u8],
    to: &Path,
    into: bool,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let found = match matching_paths(host, path).await {
        Ok(found) => found,
        Err(fault) => return how.report_and_skip(&display_path(path), fault),
    };
    if found.len() > 1 && !into {
        let why = CopyError::other(format!(
            "is not a folder, but {} files are to be copied",
            found.len()
        ));
        return how.report_and_skip(&to.display().to_string(), why);
    }
    let mut jobs = Vec::with_capacity(found.len());
    for from in found {
        let to = match into {
            true => match host.copy_name(&from).await {
                Ok(name) => to.join(path_from_bytes(&name)),
                Err(fault) => {
                    how.report_and_skip(&display_path(&from), fault)?;
                    continue;
                }
            },
            false => to.to_owned(),
        };
        jobs.push(CopyJob::Get {
            from,
            attrs: None,
            to,
            depth: 0,
        });
    }
    run_jobs(&host.remote, &host.session, jobs, how).await
}

/// Copies all sources to a remote target.
async fn copy_to_host(
    hosts: &mut HostPool<'_>,
    target: (&str, &mut SftpHost),
    sources: &[Location],
    to: &[u8],
    how: &CopyOptions,
) -> CommandResult {
    let (destination, host) = target;
    let name = host.name.clone();
    let failed = |fault: CopyError| to_failure(&name, &fault);
    let to = at_home(&host.remote, to).await.map_err(failed)?;
    let to = if to.is_empty() { b".".to_vec() } else { to };
    let into = host
        .remote
        .is_dir(&to)
        .await
        .map_err(|why| failed(why.into()))?;
    if !into && (sources.len() > 1 || to.ends_with(b"/")) {
        return Err(not_a_folder(&display_path(&to)));
    }
    let mut jobs = Vec::new();
    for source in sources {
        match source {
            Location::Local(from) => jobs.push(CopyJob::Put {
                from: from.clone(),
                to: match into {
                    true => join_path(&to, &local_copy_name(from)),
                    false => to.clone(),
                },
                depth: 0,
            }),
            Location::Remote {
                destination: from,
                path,
            } if from == destination => {
                // Source and target are the same host: a second channel is used for the source.
                let second = Remote::open(&host.session).await;
                let second = second.map_err(|why| failed(why.into()))?;
                let mut source = SftpHost {
                    session: host.session.clone(),
                    remote: second,
                    name: name.clone(),
                };
                let copied = copy_between_hosts(&mut source, path, &host.remote, &to, into, how);
                copied.await.map_err(failed)?;
            }
            Location::Remote {
                destination: from,
                path,
            } => {
                let mut source = hosts.take_host(from).await?;
                let both = format!("{} or {name}", source.name);
                let copied = copy_between_hosts(&mut source, path, &host.remote, &to, into, how);
                copied.await.map_err(|fault| to_failure(&both, &fault))?;
                hosts.idle.insert(from.clone(), source);
            }
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let carried = run_jobs(&host.remote, &host.session, jobs, how);
    carried.await.map_err(failed)
}

/// Copies the files that match a pattern from one host to another.
async fn copy_between_hosts(
    source: &mut SftpHost,
    path: &[u8],
    target: &Remote,
    to: &[u8],
    into: bool,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let found = match matching_paths(source, path).await {
        Ok(found) => found,
        Err(fault) => return how.report_and_skip(&display_path(path), fault),
    };
    if found.len() > 1 && !into {
        let why = CopyError::other(format!(
            "is not a folder, but {} files are to be copied",
            found.len()
        ));
        return how.report_and_skip(&display_path(to), why);
    }
    for from in found {
        let to = match into {
            true => match source.copy_name(&from).await {
                Ok(name) => join_path(to, &name),
                Err(fault) => {
                    how.report_and_skip(&display_path(&from), fault)?;
                    continue;
                }
            },
            false => to.to_vec(),
        };
        copy_through(&source.remote, target, from, to, how).await?;
    }
    Ok(())
}

/// Returns the paths that match a pattern.
async fn matching_paths(host: &mut SftpHost, pattern: &[u8]) -> Result<Vec<Vec<u8>>, CopyError> {
    let path = at_home(&host.remote, pattern).await?;
    match path.is_empty() {
        true => Ok(vec![b".".to_vec()]),
        false => expand_pattern(&path, &mut host.remote).await,
    }
}

/// Returns the failure for a target that is not a folder.
fn not_a_folder(path: &str) -> Failure {
    let what = format!("`{path}` is not a folder");
    Failure::new(FailureCode::Failure, what)
        .with_hint("the target of several files must be an existing folder")
}
