//! `adit ss-local` and its like: the command lines of shadowsocks-libev and shadowsocksr-libev.
//!
//! ```text
//! options ─▶ fields of the JSON object, over those of -c FILE ─▶ Plan ─▶ as `adit run`
//! ```

mod process;

use std::io::ErrorKind;
use std::path::Path;

use adit_admin::manager::{Mode, Settings};
use adit_cli::{Code, Done, Failure};
use adit_convert::{AllowedPlugins, CommandLineFields, CommandLineProgram, ManagerFile};
use anyhow::Context;

use super::{convert, manager, run, tools};
use crate::args::classic::{self as args, Acl, Classic, Common, Ssr};

/// `in_background` says that this is the process that stays there (`-f`).
pub(super) fn classic(typed: &Classic, in_background: bool) -> Done {
    let common = common(typed);
    if common.process.pid_file.is_some() && !in_background {
        return process::start();
    }
    if common.password.is_some() {
        eprintln!(
            "warning: every user of this machine can read a password on the command line; a file \
             (-c FILE) keeps it to yourself"
        );
    }
    if let Classic::SsManager(typed) = typed {
        return manage(typed);
    }
    let (fields, program) = fields(typed)?;
    let (plan, notes) =
        adit_convert::plan_from_command_line(fields, common.config.as_deref(), program)?;
    convert::warn(&notes);
    run::warn(&plan);
    let process = &common.process;
    let user = process::prepare(process)?;
    adit_cli::block_on_within(process.nofile, |mut signals| async move {
        let engine = signals.unless_ended(run::start(&plan)).await?;
        process::settle(process, user)?;
        run::until_told(engine, signals).await
    })
}

const fn common(typed: &Classic) -> &Common {
    match typed {
        Classic::SsLocal(typed) => &typed.common,
        Classic::SsServer(typed) => &typed.common,
        Classic::SsTunnel(typed) => &typed.common,
        Classic::SsRedir(typed) => &typed.common,
        Classic::SsManager(typed) => &typed.common,
        Classic::SsrLocal(typed) => &typed.common,
        Classic::SsrServer(typed) => &typed.common,
    }
}

/// What was typed, as fields of a file, and for which program.
fn fields(typed: &Classic) -> Result<(CommandLineFields, CommandLineProgram), Failure> {
    let common = common(typed);
    Ok(match typed {
        Classic::SsManager(_) => (both(common), CommandLineProgram::Server),
        Classic::SsLocal(typed) => {
            let mut fields = client(common);
            acl(&mut fields, &typed.acl)?;
            (fields, CommandLineProgram::Client)
        }
        Classic::SsTunnel(typed) => {
            if typed.target.is_none() && common.config.is_none() {
                let what = "-L is missing: where the port leads";
                return Err(Failure::new(Code::Usage, what).hint("-L 8.8.8.8:53"));
            }
            let mut fields = client(common);
            fields.add_string("tunnel_address", typed.target.as_deref());
            (fields, CommandLineProgram::Client)
        }
        Classic::SsRedir(typed) => {
            let mut fields = client(common);
            fields.add_flag("tcp_tproxy", typed.tproxy);
            (fields, CommandLineProgram::Redirector)
        }
        Classic::SsServer(typed) => {
            if typed.manager_address.is_some() {
                let what = "--manager-address: a single server tells nobody its traffic";
                let hint = "`adit ss-manager` keeps many servers in one process, and tells theirs";
                return Err(Failure::new(Code::Usage, what).hint(hint));
            }
            let mut fields = server(common)?;
            acl(&mut fields, &typed.acl)?;
            fields.add_string("nameserver", typed.nameserver.as_deref());
            fields.add_string("allow_private", typed.allow_private.as_deref());
            (fields, CommandLineProgram::Server)
        }
        Classic::SsrLocal(typed) => {
            let mut fields = client(common);
            ssr(&mut fields, &typed.ssr);
            acl(&mut fields, &typed.acl)?;
            (fields, CommandLineProgram::SsrClient)
        }
        Classic::SsrServer(typed) => {
            let mut fields = server(common)?;
            fields.add_string("allow_private", typed.allow_private.as_deref());
            ssr(&mut fields, &typed.ssr);
            acl(&mut fields, &typed.acl)?;
            (fields, CommandLineProgram::SsrServer)
        }
    })
}

/// What both ends say.
fn both(common: &Common) -> CommandLineFields {
    let mut fields = CommandLineFields::default();
    fields.add_strings("server", &common.server);
    fields.add_number("server_port", common.server_port.map(u64::from));
    fields.add_string("password", common.password.as_deref());
    fields.add_string("key", common.key.as_deref());
    fields.add_string("method", common.method.as_deref());
    fields.add_number("timeout", common.timeout);
    fields.add_string("plugin", common.plugin.as_deref());
    fields.add_string("plugin_opts", common.plugin_opts.as_deref());
    fields.add_flag("fast_open", common.fast_open);
    fields.add_flag("ipv6_first", common.ipv6_first);
    fields.add_string("mode", mode(common));
    fields
}

const fn mode(common: &Common) -> Option<&'static str> {
    match (common.udp_alone, common.udp) {
        (true, _) => Some("udp_only"),
        (false, true) => Some("tcp_and_udp"),
        (false, false) => None,
    }
}

fn client(common: &Common) -> CommandLineFields {
    let mut fields = both(common);
    fields.add_number("local_port", common.local_port.map(u64::from));
    fields.add_string("local_address", common.local_address.as_deref());
    fields
}

fn server(common: &Common) -> Result<CommandLineFields, Failure> {
    match common.local_address.as_deref() {
        // The example that distributions ship has a local port, too, which says nothing.
        None | Some("0.0.0.0" | "::" | "::0") => Ok(both(common)),
        Some(_) => {
            let what = "-b: the address that connections leave from cannot be chosen";
            let hint = "-i NAME chooses the interface; the address to listen on is -s";
            Err(Failure::new(Code::Usage, what).hint(hint))
        }
    }
}

fn ssr(fields: &mut CommandLineFields, ssr: &Ssr) {
    fields.add_string("protocol", ssr.protocol.as_deref());
    fields.add_string("protocol_param", ssr.protocol_param.as_deref());
    fields.add_string("obfs", ssr.obfs.as_deref());
    fields.add_string("obfs_param", ssr.obfs_param.as_deref());
}

/// The path as it was typed begins in this folder, and not in that of a file.
fn acl(fields: &mut CommandLineFields, acl: &Acl) -> Done {
    if let Some(path) = &acl.acl {
        let path = std::path::absolute(path).context("finding this folder")?;
        fields.add_string("acl", Some(&path.to_string_lossy()));
    }
    Ok(())
}

/// `ss-manager`: `adit manager` with its options, and the first servers from a file.
fn manage(typed: &args::Manager) -> Done {
    let common = &typed.common;
    let (file, notes) = match &common.config {
        Some(path) => adit_convert::read_manager_file(path)?,
        None => (ManagerFile::default(), Vec::new()),
    };
    convert::warn(&notes);
    let address = typed.manager_address.clone().or(file.manager_address);
    let Some(address) = address else {
        let what = "--manager-address is missing: where commands come in";
        return Err(Failure::new(Code::Usage, what).hint("--manager-address 127.0.0.1:6001"));
    };
    let mode = mode(common).or(file.mode.as_deref()).unwrap_or("tcp_only");
    let Some(mode) = Mode::named(mode) else {
        let what = format!("`mode`: `{mode}` is not tcp_only, udp_only or tcp_and_udp");
        return Err(Failure::new(Code::Config, what));
    };
    let method = common.method.as_deref().or(file.method.as_deref());
    let plugin = common.plugin.clone();
    let plugin = plugin.map(|name| (name, common.plugin_opts.clone().unwrap_or_default()));
    let hosts = match common.server.is_empty() {
        true => &file.hosts,
        false => &common.server,
    };
    let settings = Settings {
        hosts: manager::hosts(hosts)?,
        method: tools::method(method.unwrap_or(adit_convert::DEFAULT_METHOD))?,
        mode,
        plugin: plugin.or(file.plugin),
        plugins: AllowedPlugins::none(),
        private: typed.allow_private.clone(),
    };
    let process = &common.process;
    let user = process::prepare(process)?;
    let opened = manager::Opened {
        address: &address,
        exposed: false,
        nofile: process.nofile,
        first: file.ports,
    };
    manager::serve(settings, opened, || process::settle(process, user))
}

/// `adit install-aliases`: links of the names to this program.
pub(super) fn install_aliases(folder: &Path) -> Done {
    let program = std::env::current_exe().context("finding this program")?;
    if !folder.is_dir() {
        let what = format!("{} is not a folder", folder.display());
        return Err(Failure::new(Code::Usage, what).hint("make it first, or name another"));
    }
    let mut others = Vec::new();
    for name in args::NAMES {
        let path = folder.join(name);
        // A file that is something else is a program of somebody's.
        match link(&program, &path) {
            Ok(()) => println!("{}", path.display()),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => others.push(name),
            Err(why) => {
                let what = format!("{}: {why}", path.display());
                return Err(Failure::new(Code::Failure, what));
            }
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    let what = format!(
        "{} in {} are something else and stay",
        others.join(", "),
        folder.display()
    );
    Err(Failure::new(Code::Failure, what).hint("remove them first, or name another folder"))
}

/// Makes the link, unless it is there already.
#[cfg(unix)]
fn link(program: &Path, path: &Path) -> std::io::Result<()> {
    match std::os::unix::fs::symlink(program, path) {
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            match std::fs::canonicalize(path).is_ok_and(|at| at == program) {
                true => Ok(()),
                false => Err(why),
            }
        }
        done => done,
    }
}

/// Links need a privilege there: a copy that shares the file's content.
#[cfg(not(unix))]
fn link(program: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::hard_link(program, path.with_extension("exe"))
}
