//! `adit scp`: copies files to, from and between remote hosts.

mod place;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use adit_cli::{Code, Done, Failure};

use self::place::Place;
use super::copy::{
    Fault, Host, How, Job, Meter, Remote, carry, expand, failure, join, name_here, native, octets,
    shown, through,
};
use super::ssh::connect;
use crate::args::Scp;

/// Runs `adit scp`.
///
/// # Errors
/// The failure, with its exit code.
pub fn scp(typed: &Scp) -> Done {
    let read = |word: &OsString| Place::read(word);
    let places: Result<Vec<Place>, Failure> = typed.places.iter().map(read).collect();
    let mut sources = places?;
    let Some(target) = sources.pop().filter(|_| !sources.is_empty()) else {
        return Err(Failure::new(Code::Usage, "nothing to copy"));
    };
    let rate = typed.how.limit.map(|kbit| u64::from(kbit) * 1000 / 8);
    let how = How {
        recursive: typed.how.recursive,
        preserve: typed.how.preserve,
        resume: typed.resume,
        meter: Meter::new(typed.way.quiet, rate),
        failed: Cell::new(false),
    };
    connect::block_on(2, async {
        let mut hosts = Hosts {
            typed,
            reached: HashMap::new(),
        };
        copy(&mut hosts, &sources, &target, &how).await?;
        match how.failed.get() {
            false => Ok(()),
            true => Err(Failure::Exit {
                status: 1,
                why: None,
            }),
        }
    })
}

/// Hosts by destination; each is connected once.
struct Hosts<'a> {
    typed: &'a Scp,
    reached: HashMap<String, Host>,
}

impl Hosts<'_> {
    /// Removes a host from the pool, connecting it first if required. The caller puts it back.
    async fn take(&mut self, destination: &str) -> Result<Host, Failure> {
        match self.reached.remove(destination) {
            Some(host) => Ok(host),
            None => Host::reach(destination, self.typed.how.port, &self.typed.way).await,
        }
    }
}

/// Copies all sources to the target.
async fn copy(hosts: &mut Hosts<'_>, sources: &[Place], target: &Place, how: &How) -> Done {
    match target {
        Place::Here(to) => {
            let into = to.is_dir();
            if !into && (sources.len() > 1 || octets(to).ends_with(b"/")) {
                return Err(no_folder(&to.display().to_string()));
            }
            for source in sources {
                match source {
                    Place::Here(from) => {
                        let what = format!("`{}` and the target are both local", from.display());
                        return Err(
                            Failure::new(Code::Usage, what).hint("use cp to copy on one machine")
                        );
                    }
                    Place::There { destination, path } => {
                        let mut host = hosts.take(destination).await?;
                        let got = get(&mut host, path, to, into, how).await;
                        got.map_err(|fault| failure(&host.name, &fault))?;
                        hosts.reached.insert(destination.clone(), host);
                    }
                }
            }
            Ok(())
        }
        Place::There { destination, path } => {
            let mut host = hosts.take(destination).await?;
            let target = (destination.as_str(), &mut host);
            put(hosts, target, sources, path, how).await
        }
    }
}

/// Copies the files that match a pattern to `to`, or into that folder if `into` is true.
async fn get(host: &mut Host, path: &[u8], to: &Path, into: bool, how: &How) -> Result<(), Fault> {
    let found = match found(host, path).await {
        Ok(found) => found,
        Err(fault) => return how.skip(&shown(path), fault),
    };
    if found.len() > 1 && !into {
        let why = Fault::unfit(format!(
            "is not a folder, but {} files are to be copied",
            found.len()
        ));
        return how.skip(&to.display().to_string(), why);
    }
    let mut jobs = Vec::with_capacity(found.len());
    for from in found {
        let to = match into {
            true => match host.own_name(&from).await {
                Ok(name) => to.join(native(&name)),
                Err(fault) => {
                    how.skip(&shown(&from), fault)?;
                    continue;
                }
            },
            false => to.to_owned(),
        };
        jobs.push(Job::Get {
            from,
            attrs: None,
            to,
            depth: 0,
        });
    }
    carry(&mut host.remote, &host.session, jobs, how).await
}

/// Copies all sources to a remote target.
async fn put(
    hosts: &mut Hosts<'_>,
    target: (&str, &mut Host),
    sources: &[Place],
    to: &[u8],
    how: &How,
) -> Done {
    let (destination, host) = target;
    let name = host.name.clone();
    let failed = |fault: Fault| failure(&name, &fault);
    let to = host.remote.at_home(to).await.map_err(failed)?;
    let to = if to.is_empty() { b".".to_vec() } else { to };
    let into = host.remote.is_folder(&to).await.map_err(failed)?;
    if !into && (sources.len() > 1 || to.ends_with(b"/")) {
        return Err(no_folder(&shown(&to)));
    }
    let mut jobs = Vec::new();
    for source in sources {
        match source {
            Place::Here(from) => jobs.push(Job::Put {
                from: from.clone(),
                to: match into {
                    true => join(&to, &name_here(from)),
                    false => to.clone(),
                },
                depth: 0,
            }),
            Place::There {
                destination: from,
                path,
            } if from == destination => {
                // The same host: it talks to itself by a second channel.
                let second = Remote::open(&host.session).await.map_err(failed)?;
                let mut source = Host {
                    session: host.session.clone(),
                    remote: second,
                    name: name.clone(),
                };
                let copied = between(&mut source, path, &mut host.remote, &to, into, how);
                copied.await.map_err(failed)?;
            }
            Place::There {
                destination: from,
                path,
            } => {
                let mut source = hosts.take(from).await?;
                let both = format!("{} or {name}", source.name);
                let copied = between(&mut source, path, &mut host.remote, &to, into, how);
                copied.await.map_err(|fault| failure(&both, &fault))?;
                hosts.reached.insert(from.clone(), source);
            }
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let carried = carry(&mut host.remote, &host.session, jobs, how);
    carried.await.map_err(failed)
}

/// Copies the files that match a pattern from one host to another.
async fn between(
    source: &mut Host,
    path: &[u8],
    target: &mut Remote,
    to: &[u8],
    into: bool,
    how: &How,
) -> Result<(), Fault> {
    let found = match found(source, path).await {
        Ok(found) => found,
        Err(fault) => return how.skip(&shown(path), fault),
    };
    if found.len() > 1 && !into {
        let why = Fault::unfit(format!(
            "is not a folder, but {} files are to be copied",
            found.len()
        ));
        return how.skip(&shown(to), why);
    }
    for from in found {
        let to = match into {
            true => match source.own_name(&from).await {
                Ok(name) => join(to, &name),
                Err(fault) => {
                    how.skip(&shown(&from), fault)?;
                    continue;
                }
            },
            false => to.to_vec(),
        };
        through(&mut source.remote, target, from, to, how).await?;
    }
    Ok(())
}

/// Returns the paths that match a pattern.
async fn found(host: &mut Host, pattern: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let path = host.remote.at_home(pattern).await?;
    match path.is_empty() {
        true => Ok(vec![b".".to_vec()]),
        false => expand(&path, &mut host.remote).await,
    }
}

/// Returns the failure for a target that is not a folder.
fn no_folder(path: &str) -> Failure {
    let what = format!("`{path}` is not a folder");
    Failure::new(Code::Failure, what).hint("the target of several files must be an existing folder")
}
