//! `adit scp`: files to, from and between other machines.

mod place;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use self::place::Place;
use super::Done;
use super::copy::{
    Fault, Host, How, Job, Local, Meter, base, carry, expand, failure, join, native, octets, shown,
};
use super::ssh::connect;
use crate::args::ssh::Scp;
use crate::report::{Code, Failure};

pub(super) fn scp(typed: &Scp) -> Done {
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
    connect::block_on(async {
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
                        return Err(Failure::new(Code::Usage, what).hint("cp copies on one machine"));
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
            let put = put(hosts, &mut host, sources, path, how);
            put.await
        }
    }
}

/// Copies what one pattern stands for to `to`, or into that folder.
async fn get(
    host: &mut Host,
    path: &[u8],
    to: &Path,
    into: bool,
    how: &How,
) -> Result<(), Fault> {
    let found = match host.remote.at_home(path).await {
        Ok(path) => expand(&path, &mut host.remote).await,
        Err(fault) => Err(fault),
    };
    let found = match found {
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
            true => to.join(native(&own_name(host, &from).await?)),
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

/// The name that a copy gets; `.` and `..` have one elsewhere.
async fn own_name(host: &mut Host, path: &[u8]) -> Result<Vec<u8>, Fault> {
    match base(path) {
        b"" | b"." | b".." => {
            let real = host.remote.real(path).await?;
            Ok(base(&real).to_vec())
        }
        name => Ok(name.to_vec()),
    }
}

async fn put(
    hosts: &mut Hosts<'_>,
    host: &mut Host,
    sources: &[Place],
    to: &[u8],
    how: &How,
) -> Done {
    let failed = |host: &Host, fault: Fault| failure(&host.name, &fault);
    let typed = match host.remote.at_home(to).await {
        Ok(path) => path,
        Err(fault) => return Err(failed(host, fault)),
    };
    let to = if typed.is_empty() { b".".to_vec() } else { typed };
    let into = match host.remote.is_folder(&to).await {
        Ok(into) => into,
        Err(fault) => return Err(failed(host, fault)),
    };
    if !into && (sources.len() > 1 || to.ends_with(b"/")) {
        return Err(no_folder(&shown(&to)));
    }
    let mut jobs = Vec::new();
    for source in sources {
        match source {
            Place::Here(from) => {
                let name = match from.file_name() {
                    Some(name) => octets(Path::new(name)).to_vec(),
                    None => from
                        .canonicalize()
                        .map(|path| base(octets(&path)).to_vec())
                        .unwrap_or_default(),
                };
                jobs.push(Job::Put {
                    from: from.clone(),
                    to: if into { join(&to, &name) } else { to.clone() },
                    depth: 0,
                });
            }
            Place::There { .. } => {
                return Err(Failure::new(Code::Usage, "between two hosts"));
            }
        }
    }
    let _ = hosts;
    carry(&mut host.remote, &host.session, jobs, how)
        .await
        .map_err(|fault| failed(host, fault))
}

fn no_folder(path: &str) -> Failure {
    let what = format!("`{path}` is no folder");
    Failure::new(Code::Failure, what).hint("more than one file needs a folder that is there")
}
