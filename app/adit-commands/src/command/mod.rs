//! The commands, one module for each.

#[cfg(feature = "admin")]
mod admin;
#[cfg(not(feature = "admin"))]
#[path = "admin_left_out.rs"]
mod admin;
#[cfg(feature = "admin")]
mod age;
#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "classic")]
mod classic;
mod client;
#[cfg(feature = "manual")]
mod complete;
#[cfg(feature = "convert")]
mod convert;
#[cfg(not(feature = "convert"))]
#[path = "convert_left_out.rs"]
mod convert;
#[cfg(feature = "admin")]
mod dashboard;
mod decision;
mod doctor;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "fleet")]
mod fleet_announcer;
#[cfg(feature = "fleet")]
mod fleet_node;
#[cfg(not(feature = "fleet"))]
#[path = "fleet_node_left_out.rs"]
mod fleet_node;
mod help;
mod help_topic;
#[cfg(feature = "kcp")]
mod kcp;
mod link_tools;
#[cfg(feature = "admin")]
mod manager;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp_left_out.rs"]
mod otlp;
mod plan_keys;
#[cfg(feature = "admin")]
mod process_documents;
mod reload;
#[cfg(feature = "admin")]
mod routes;
mod rule_sets;
mod run;
#[cfg(feature = "admin")]
mod running_process;
mod server;
mod service;
#[cfg(feature = "admin")]
mod sessions;
#[cfg(feature = "admin")]
mod status;
#[cfg(feature = "admin")]
mod subscribe;
#[cfg(not(feature = "admin"))]
#[path = "subscribe_left_out.rs"]
mod subscribe;
mod system_proxy;
#[cfg(feature = "top")]
mod top;
mod up;
mod upgrade;
#[cfg(feature = "admin")]
mod user;
#[cfg(feature = "admin")]
pub(crate) mod user_values;

use adit_cli::CommandResult;

use crate::args::{Args, Command};

/// Runs the command of the arguments.
pub(crate) fn run_command(args: Args) -> CommandResult {
    #[cfg(unix)]
    let in_background = args.in_background;
    #[cfg(not(unix))]
    let in_background = false;
    // Commands that a build can leave out are all that have a background.
    let _ = in_background;
    match args.command {
        Command::Up(up) => up::run_trial(&up),
        Command::Server(server) => server::run_server(&server),
        Command::Client(client) => client::run_client(&client),
        Command::Run(run) => run::run_plan(&run),
        #[cfg(feature = "admin")]
        Command::Status(status) => status::check_status(&status),
        #[cfg(feature = "admin")]
        Command::Sessions(typed) => sessions::run_sessions(&typed),
        #[cfg(feature = "admin")]
        Command::Routes(typed) => routes::run_routes(&typed),
        #[cfg(feature = "top")]
        Command::Top(typed) => top::run_top(&typed),
        #[cfg(feature = "admin")]
        Command::Dashboard(dashboard) => dashboard::run_dashboard(&dashboard),
        #[cfg(feature = "admin")]
        Command::Upgrade(upgrade) => upgrade::run_upgrade(&upgrade),
        #[cfg(feature = "admin")]
        Command::User(user) => user::run_user(&user),
        #[cfg(feature = "fleet")]
        Command::Fleet(fleet) => fleet::run_fleet(&fleet),
        Command::Service(service) => service::run_service(&service),
        Command::SystemProxy(typed) => system_proxy::run_system_proxy(&typed),
        #[cfg(feature = "admin")]
        Command::Manager(manager) => manager::run_manager(&manager),
        Command::Url(url) => link_tools::print_url(&url),
        Command::Qr(url) => link_tools::print_qr_code(&url),
        Command::Keygen(keygen) => link_tools::print_new_key(&keygen),
        Command::Check(plan) => link_tools::check_plan(&plan),
        #[cfg(feature = "convert")]
        Command::Convert(convert) => convert::run_convert(&convert),
        Command::Schema => link_tools::print_schema(),
        Command::Explain(typed) => link_tools::explain_plan(&typed),
        #[cfg(feature = "classic")]
        Command::Classic(typed) => classic::run_classic(&typed, in_background),
        #[cfg(feature = "classic")]
        Command::InstallAliases(typed) => classic::install_aliases(&typed.dir),
        #[cfg(feature = "bench")]
        Command::Bench(typed) => bench::run_bench(&typed),
        #[cfg(feature = "kcp")]
        Command::Kcp(kcp) => kcp::run_kcp(kcp),
        Command::Doctor(doctor) => doctor::run_doctor(&doctor),
        #[cfg(feature = "ssh")]
        Command::Ssh(ssh) => adit_ssh_commands::ssh(&ssh, in_background),
        #[cfg(all(unix, feature = "ssh"))]
        Command::Sftp(typed) => adit_ssh_commands::sftp(&typed),
        #[cfg(all(unix, feature = "ssh"))]
        Command::Scp(typed) => adit_ssh_commands::scp(&typed),
        #[cfg(all(unix, feature = "ssh"))]
        Command::SftpServer(sftp) => adit_ssh_commands::sftp_server(&sftp),
        #[cfg(all(unix, feature = "ssh"))]
        Command::Sshd(typed) => adit_ssh_commands::sshd(&typed),
        Command::Help(help) => help::print_help(&help),
        #[cfg(feature = "manual")]
        Command::Completion(completion) => complete::print_script(&completion),
        #[cfg(feature = "manual")]
        Command::Complete(typed) => complete::print_candidates(&typed),
        #[cfg(feature = "manual")]
        Command::Man(man) => manual::write_manual(&man),
    }
}
