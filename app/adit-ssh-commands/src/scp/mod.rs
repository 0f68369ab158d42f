//! `adit scp`: files to, from and between other machines.

mod place;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use adit_cli::{Code, Done, Failure};

use self::place::Place;
use super::copy::{
    Fault, Host, How, Job, Meter, Remote, at_home, carry, expand, failure, join, name_here, native,
    octets, shown, through,
};
use super::ssh::connect;
use crate::args::Scp;

/// Copies files between machines.
///
/// # Errors
/// What went wrong, with the exit code.
pub fn scp(typed: &Scp) -> Done {
    let read = |word: &OsString| Place::read(word);
    let places: Result<Vec<Place>, Failure> = typed.places.iter().map(read).collect();
    let mut sources = places?;
    let Some(target) = sources.pop().filter(|_| !sources.is_empty()) else {
        return Err(Failure::new(Code::Usage, "nothing to be copied"));
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

/// The hosts by their destinations, each reached once.
struct Hosts<'a> {
    typed: &'a Scp,
    reached: HashMap<String, Host>,
}

impl Hosts<'_> {
    /// Takes a host out, to be put back with its destination.
    async fn take(&mut self, destination: &str) -> Result<Host, Failure> {
        match self.reached.remove(destination) {
            Some(host) => Ok(host),
            None => Host::reach(destination, self.typed.how.port, &self.typed.way).await,
        }
    }
}

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
                        let what = format!("`{}` is here, and so is the target", from.display());
                        return Err(
                            Failure::new(Code::Usage, what).hint("cp copies on one machine")
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

/// Copies what one pattern stands for to `to`, or into that folder.
async fn get(host: &mut Host, path: &[u8], to: &Path, into: bool, how: &How) -> Result<(), Fault> {
    let found = match found(host, path).await {
        Ok(found) => found,
        Err(fault) => return how.skip(&shown(path), fault),
    };
    if found.len() > 1 && !into {
        let why = Fault::unfit(format!("is no folder, for {} files", found.len()));
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
    carry(&host.remote, &host.session, jobs, how).await
}

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
    let to = at_home(&host.remote, to).await.map_err(failed)?;
    let to = if to.is_empty() { b".".to_vec() } else { to };
    let into = host
        .remote
        .is_dir(&to)
        .await
        .map_err(|why| failed(why.into()))?;
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
                let second = Remote::open(&host.session).await;
                let second = second.map_err(|why| failed(why.into()))?;
                let mut source = Host {
                    session: host.session.clone(),
                    remote: second,
                    name: name.clone(),
                };
                let copied = between(&mut source, path, &host.remote, &to, into, how);
                copied.await.map_err(failed)?;
            }
            Place::There {
                destination: from,
                path,
            } => {
                let mut source = hosts.take(from).await?;
                let both = format!("{} or {name}", source.name);
                let copied = between(&mut source, path, &host.remote, &to, into, how);
                copied.await.map_err(|fault| failure(&both, &fault))?;
                hosts.reached.insert(from.clone(), source);
            }
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let carried = carry(&host.remote, &host.session, jobs, how);
    carried.await.map_err(failed)
}

/// Copies what one pattern stands for from one host to another.
async fn between(
    source: &mut Host,
    path: &[u8],
    target: &Remote,
    to: &[u8],
    into: bool,
    how: &How,
) -> Result<(), Fault> {
    let found = match found(source, path).await {
        Ok(found) => found,
        Err(fault) => return how.skip(&shown(path), fault),
    };
    if found.len() > 1 && !into {
        let why = Fault::unfit(format!("is no folder, for {} files", found.len()));
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
        through(&source.remote, target, from, to, how).await?;
    }
    Ok(())
}

/// The paths that one pattern stands for.
async fn found(host: &mut Host, pattern: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let path = at_home(&host.remote, pattern).await?;
    match path.is_empty() {
        true => Ok(vec![b".".to_vec()]),
        false => expand(&path, &mut host.remote).await,
    }
}

fn no_folder(path: &str) -> Failure {
    let what = format!("`{path}` is no folder");
    Failure::new(Code::Failure, what).hint("more than one file needs a folder that is there")
}
