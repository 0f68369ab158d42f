//! One module for each thing that can be done.

mod admin;
mod bench;
mod classic;
mod client;
mod complete;
mod convert;
mod doctor;
mod help;
mod kcp;
mod manager;
mod run;
mod server;
mod subscribe;
mod tools;
mod topic;
mod up;

use adit_cli::Done;

use crate::args::{Args, Command};

/// Does what was typed.
pub(crate) fn dispatch(args: Args) -> Done {
    #[cfg(unix)]
    let in_background = args.in_background;
    #[cfg(not(unix))]
    let in_background = false;
    match args.command {
        Command::Up(up) => up::up(&up),
        Command::Server(server) => server::server(&server),
        Command::Client(client) => client::client(&client),
        Command::Run(run) => run::run(&run),
        Command::Manager(manager) => manager::manager(&manager),
        Command::Url(url) => tools::url(&url),
        Command::Qr(url) => tools::qr(&url),
        Command::Keygen(keygen) => tools::keygen(&keygen),
        Command::Check(plan) => tools::check(&plan),
        Command::Convert(convert) => convert::convert(&convert),
        Command::Explain(plan) => tools::explain(&plan),
        Command::Classic(typed) => classic::classic(&typed, in_background),
        Command::InstallAliases(typed) => classic::install_aliases(&typed.dir),
        Command::Bench(typed) => bench::bench(&typed),
        Command::Kcp(kcp) => kcp::kcp(kcp),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
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
        Command::Help(help) => help::help(&help),
        Command::Completion(completion) => complete::completion(&completion),
        Command::Complete(typed) => complete::complete(&typed),
        Command::Man(man) => help::man(&man),
    }
}
