//! `adit ss-local` and the other command lines of shadowsocks-libev and shadowsocksr-libev.
//!
//! ```text
//! options ─▶ JSON fields, which override those of -c FILE ─▶ Plan ─▶ as `adit run`
//! ```

mod process;

use std::io::ErrorKind;
use std::path::Path;

use adit_admin::manager::{Mode, Settings};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_convert::{AllowedPlugins, CommandLineFields, CommandLineProgram, ManagerFile};
use anyhow::Context;

use super::{convert, link_tools, manager, run};
use crate::args::classic::{self as args, AclOptions, ClassicCommand, CommonOptions, SsrOptions};
use crate::args::program_name::PROGRAM_NAMES;

/// Runs the command. `in_background` is true in the background process of `-f`.
pub(super) fn run_classic(typed: &ClassicCommand, in_background: bool) -> CommandResult {
    let common = common_options(typed);
    if common.process.pid_file.is_some() && !in_background {
        return process::start();
    }
    if common.password.is_some() {
        eprintln!(
            "warning: all users of this machine can read a password on the command line; \
             write it to a file (-c FILE)"
        );
    }
    if let ClassicCommand::SsManager(typed) = typed {
        return run_manager(typed);
    }
    let (fields, program) = fields_from_args(typed)?;
    let (plan, notes) =
        adit_convert::plan_from_command_line(fields, common.config.as_deref(), program)?;
    convert::print_notes(&notes);
    run::print_warnings(&plan);
    let process = &common.process;
    let user = process::prepare_process(process)?;
    adit_cli::block_on_with_nofile(process.nofile, |mut signals| async move {
        let engine = signals.run_until_ended(run::start_engine(&plan)).await?;
        process::settle(process, user)?;
        run::serve_until_signal(engine, signals).await
    })
}

const fn common_options(typed: &ClassicCommand) -> &CommonOptions {
    match typed {
        ClassicCommand::SsLocal(typed) => &typed.common,
        ClassicCommand::SsServer(typed) => &typed.common,
        ClassicCommand::SsTunnel(typed) => &typed.common,
        ClassicCommand::SsRedir(typed) => &typed.common,
        ClassicCommand::SsManager(typed) => &typed.common,
        ClassicCommand::SsrLocal(typed) => &typed.common,
        ClassicCommand::SsrServer(typed) => &typed.common,
    }
}

/// Returns the options as fields of a configuration file, and the program they are for.
fn fields_from_args(
    typed: &ClassicCommand,
) -> Result<(CommandLineFields, CommandLineProgram), Failure> {
    let common = common_options(typed);
    Ok(match typed {
        ClassicCommand::SsManager(_) => (shared_fields(common), CommandLineProgram::Server),
        ClassicCommand::SsLocal(typed) => {
            let mut fields = client_fields(common);
            add_acl(&mut fields, &typed.acl)?;
            (fields, CommandLineProgram::Client)
        }
        ClassicCommand::SsTunnel(typed) => {
            if typed.target.is_none() && common.config.is_none() {
                let what = "-L, the target of the port, is missing";
                return Err(Failure::new(FailureCode::Usage, what).with_hint("-L 8.8.8.8:53"));
            }
            let mut fields = client_fields(common);
            fields.add_string("tunnel_address", typed.target.as_deref());
            (fields, CommandLineProgram::Client)
        }
        ClassicCommand::SsRedir(typed) => {
            let mut fields = client_fields(common);
            fields.add_flag("tcp_tproxy", typed.tproxy);
            (fields, CommandLineProgram::Redirector)
        }
        ClassicCommand::SsServer(typed) => {
            if typed.manager_address.is_some() {
                let what = "--manager-address is not supported: a single server does not report its traffic";
                let hint =
                    "`adit ss-manager` runs many servers in one process and reports their traffic";
                return Err(Failure::new(FailureCode::Usage, what).with_hint(hint));
            }
            let mut fields = server_fields(common)?;
            add_acl(&mut fields, &typed.acl)?;
            fields.add_string("nameserver", typed.nameserver.as_deref());
            fields.add_string("allow_private", typed.allow_private.as_deref());
            (fields, CommandLineProgram::Server)
        }
        ClassicCommand::SsrLocal(typed) => {
            let mut fields = client_fields(common);
            add_ssr_fields(&mut fields, &typed.ssr);
            add_acl(&mut fields, &typed.acl)?;
            (fields, CommandLineProgram::SsrClient)
        }
        ClassicCommand::SsrServer(typed) => {
            let mut fields = server_fields(common)?;
            fields.add_string("allow_private", typed.allow_private.as_deref());
            add_ssr_fields(&mut fields, &typed.ssr);
            add_acl(&mut fields, &typed.acl)?;
            (fields, CommandLineProgram::SsrServer)
        }
    })
}

/// Returns the fields that clients and servers share.
fn shared_fields(common: &CommonOptions) -> CommandLineFields {
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
    fields.add_string("mode", mode_name(common));
    fields
}

const fn mode_name(common: &CommonOptions) -> Option<&'static str> {
    match (common.udp_alone, common.udp) {
        (true, _) => Some("udp_only"),
        (false, true) => Some("tcp_and_udp"),
        (false, false) => None,
    }
}

fn client_fields(common: &CommonOptions) -> CommandLineFields {
    let mut fields = shared_fields(common);
    fields.add_number("local_port", common.local_port.map(u64::from));
    fields.add_string("local_address", common.local_address.as_deref());
    fields
}

fn server_fields(common: &CommonOptions) -> Result<CommandLineFields, Failure> {
    match common.local_address.as_deref() {
        // The example of the distributions also has a local port; it has no meaning for servers.
        None | Some("0.0.0.0" | "::" | "::0") => Ok(shared_fields(common)),
        Some(_) => {
            let what = "-b: the source address of connections cannot be chosen";
            let hint = "-i NAME chooses the interface; -s HOST is the address to listen on";
            Err(Failure::new(FailureCode::Usage, what).with_hint(hint))
        }
    }
}

fn add_ssr_fields(fields: &mut CommandLineFields, ssr: &SsrOptions) {
    fields.add_string("protocol", ssr.protocol.as_deref());
    fields.add_string("protocol_param", ssr.protocol_param.as_deref());
    fields.add_string("obfs", ssr.obfs.as_deref());
    fields.add_string("obfs_param", ssr.obfs_param.as_deref());
}

/// Adds the ACL. A relative path starts at the current folder, not at that of a file.
fn add_acl(fields: &mut CommandLineFields, acl: &AclOptions) -> CommandResult {
    if let Some(path) = &acl.acl {
        let path = std::path::absolute(path).context("finding the current folder")?;
        fields.add_string("acl", Some(&path.to_string_lossy()));
    }
    Ok(())
}

/// Runs `ss-manager`: `adit manager` with other options, and the first servers from a file.
fn run_manager(typed: &args::SsManagerArgs) -> CommandResult {
    let common = &typed.common;
    let (file, notes) = match &common.config {
        Some(path) => adit_convert::read_manager_file(path)?,
        None => (ManagerFile::default(), Vec::new()),
    };
    convert::print_notes(&notes);
    let address = typed.manager_address.clone().or(file.manager_address);
    let Some(address) = address else {
        let what = "--manager-address, where commands are received, is missing";
        return Err(
            Failure::new(FailureCode::Usage, what).with_hint("--manager-address 127.0.0.1:6001")
        );
    };
    let mode = mode_name(common)
        .or(file.mode.as_deref())
        .unwrap_or("tcp_only");
    let Some(mode) = Mode::named(mode) else {
        let what = format!("unknown `mode`: `{mode}` is not tcp_only, udp_only or tcp_and_udp");
        return Err(Failure::new(FailureCode::Config, what));
    };
    let method = common.method.as_deref().or(file.method.as_deref());
    let plugin = common.plugin.clone();
    let plugin = plugin.map(|name| (name, common.plugin_opts.clone().unwrap_or_default()));
    let hosts = match common.server.is_empty() {
        true => &file.hosts,
        false => &common.server,
    };
    let settings = Settings {
        hosts: manager::parse_hosts(hosts)?,
        method: link_tools::parse_method(method.unwrap_or(adit_convert::DEFAULT_METHOD))?,
        mode,
        plugin: plugin.or(file.plugin),
        plugins: AllowedPlugins::none(),
        private: typed.allow_private.clone(),
    };
    let process = &common.process;
    let user = process::prepare_process(process)?;
    let opened = manager::ManagerStart {
        address: &address,
        exposed: false,
        nofile: process.nofile,
        first_servers: file.ports,
    };
    manager::serve_commands(settings, opened, || process::settle(process, user))
}

/// Creates links to this program under the names of the others: `adit install-aliases`.
pub(super) fn install_aliases(folder: &Path) -> CommandResult {
    let program = std::env::current_exe().context("finding this program")?;
    if !folder.is_dir() {
        let what = format!("{} is not a folder", folder.display());
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("create it first, or name another folder"));
    }
    let mut others = Vec::new();
    for name in PROGRAM_NAMES {
        let path = folder.join(name);
        // Any other file may be another program, and is kept.
        match link(&program, &path) {
            Ok(()) => println!("{}", path.display()),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => others.push(name),
            Err(why) => {
                let what = format!("{}: {why}", path.display());
                return Err(Failure::new(FailureCode::Failure, what));
            }
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    let what = format!(
        "not replaced, because they are not links to this program: {} in {}",
        others.join(", "),
        folder.display()
    );
    Err(Failure::new(FailureCode::Failure, what)
        .with_hint("remove them first, or name another folder"))
}

/// Creates the link, unless it exists.
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

/// Creates a hard link, because symbolic links need a privilege on this system.
#[cfg(not(unix))]
fn link(program: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::hard_link(program, path.with_extension("exe"))
}
