//! The commands, one module for each.

mod admin;
mod bench;
mod classic;
mod client;
mod complete;
mod convert;
mod doctor;
mod help;
mod help_topic;
mod kcp;
mod link_tools;
mod manager;
mod reload;
mod rule_sets;
mod run;
mod server;
mod status;
mod subscribe;
mod up;
mod upgrade;

use adit_cli::CommandResult;

use crate::args::{Args, Command};

/// Runs the command of the arguments.
pub(crate) fn run_command(args: Args) -> CommandResult {
    #[cfg(unix)]
    let in_background = args.in_background;
    #[cfg(not(unix))]
    let in_background = false;
    match args.command {
        Command::Up(up) => up::run_trial(&up),
        Command::Server(server) => server::run_server(&server),
        Command::Client(client) => client::run_client(&client),
        Command::Run(run) => run::run_plan(&run),
        Command::Status(status) => status::check_status(&status),
        Command::Upgrade(upgrade) => upgrade::run_upgrade(&upgrade),
        Command::Manager(manager) => manager::run_manager(&manager),
        Command::Url(url) => link_tools::print_url(&url),
        Command::Qr(url) => link_tools::print_qr_code(&url),
        Command::Keygen(keygen) => link_tools::print_new_key(&keygen),
        Command::Check(plan) => link_tools::check_plan(&plan),
        Command::Convert(convert) => convert::run_convert(&convert),
        Command::Schema => link_tools::print_schema(),
        Command::Explain(typed) => link_tools::explain_plan(&typed),
        Command::Classic(typed) => classic::run_classic(&typed, in_background),
        Command::InstallAliases(typed) => classic::install_aliases(&typed.dir),
        Command::Bench(typed) => bench::run_bench(&typed),
        Command::Kcp(kcp) => kcp::run_kcp(kcp),
        Command::Doctor(doctor) => doctor::run_doctor(&doctor),
        #[cfg(unix)]
        Command::Ssh(ssh) => adit_ssh_commands::ssh(&ssh, in_background),
        #[cfg(unix)]
        Command::Sftp(typed) => adit_ssh_commands::sftp(&typed),
        #[cfg(unix)]
        Command::Scp(typed) => adit_ssh_commands::scp(&typed),
        #[cfg(unix)]
        Command::SftpServer(sftp) => adit_ssh_commands::sftp_server(&sftp),
        #[cfg(unix)]
        Command::Sshd(typed) => adit_ssh_commands::sshd(&typed),
        Command::Help(help) => help::print_help(&help),
        Command::Completion(completion) => complete::print_script(&completion),
        Command::Complete(typed) => complete::print_candidates(&typed),
        Command::Man(man) => help::write_manual(&man),
    }
}
