//! Scripts of OpenRC.

use std::path::{Path, PathBuf};

use adit_cli::{Failure, FailureCode};

use super::definition::{SERVICE_USER, ServiceDefinition, ServiceScope};
use super::status::{ServiceStatus, not_installed};
use super::steps::{MARK, Step, output_of};

/// Returns the script of a service. `supervise-daemon` restarts the process when it fails.
///
/// The option instead of the variable `no_new_privs`, and a file instead of `error_logger`: OpenRC 0.45 passes a wrong
/// option for the first and does not know the second.
pub(super) fn script(definition: &ServiceDefinition) -> String {
    let arguments: Vec<String> = definition
        .arguments
        .iter()
        .map(|word| shell_quoted(word))
        .collect();
    let capabilities: Vec<String> = definition
        .needed
        .capabilities()
        .into_iter()
        .map(|name| format!("^{}", name.to_lowercase()))
        .collect();
    // The arguments are evaluated by a shell once more.
    let (arguments, program) = (arguments.join(" "), shell_quoted(&definition.program));
    let arguments = shell_quoted(&arguments);
    let capabilities = match capabilities.is_empty() {
        true => String::new(),
        false => format!("capabilities=\"{}\"\n", capabilities.join(",")),
    };
    let (commands, reload) = match definition.can_reload {
        true => ("extra_started_commands=\"reload\"\n", RELOAD),
        false => ("", ""),
    };
    format!(
        "\
#!/sbin/openrc-run
# {MARK}
description=\"adit, encrypted tunnels and proxies\"
supervisor=supervise-daemon
command={program}
command_args={arguments}
command_user=\"{SERVICE_USER}:{SERVICE_USER}\"
{capabilities}supervise_daemon_args=--no-new-privs
umask=0077
respawn_delay=2
respawn_max=0
error_log=\"/var/log/${{RC_SVCNAME}}.log\"
{commands}
export STATE_DIRECTORY=\"/var/lib/${{RC_SVCNAME}}\"

depend() {{
	use net dns
	after firewall
}}

start_pre() {{
	checkpath --file --mode 0640 --owner \"${{command_user}}\" \"${{error_log}}\"
	checkpath --directory --mode 0700 --owner \"${{command_user}}\" \"${{STATE_DIRECTORY}}\"
	checkpath --directory --mode 0750 --owner \"${{command_user}}\" \"/run/${{RC_SVCNAME}}\"
}}
{reload}"
    )
}

const RELOAD: &str = "
reload() {
	ebegin \"Reloading ${RC_SVCNAME}\"
	supervise-daemon \"${RC_SVCNAME}\" --signal HUP
	eend $?
}
";

/// Quotes a word for a shell.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the path of a script.
pub(super) fn path(scope: ServiceScope, name: &str) -> Result<PathBuf, Failure> {
    match scope {
        ServiceScope::System => Ok(Path::new("/etc/init.d").join(name)),
        ServiceScope::User => Err(Failure::new(
            FailureCode::Usage,
            "`--user` is not supported with OpenRC: its services belong to the system",
        )),
    }
}

pub(super) fn install_steps(definition: &ServiceDefinition, path: PathBuf) -> Vec<Step> {
    let name = &definition.name;
    // Alpine has the program of busybox, others that of shadow; one of them exists, and `id` checks the result.
    let shadow = [
        "useradd",
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/var/lib/adit",
        "--shell",
        "/sbin/nologin",
        SERVICE_USER,
    ];
    let group = ["addgroup", "-S", SERVICE_USER];
    let busybox = [
        "adduser",
        "-S",
        "-D",
        "-H",
        "-h",
        "/var/lib/adit",
        "-s",
        "/sbin/nologin",
        "-G",
        SERVICE_USER,
        SERVICE_USER,
    ];
    vec![
        Step::attempt(&shadow),
        Step::attempt(&group),
        Step::attempt(&busybox),
        Step::run(&["id", SERVICE_USER]),
        Step::Write {
            path,
            text: script(definition),
            mode: 0o755,
        },
        Step::run(&["rc-update", "add", name, "default"]),
        Step::run(&["rc-service", name, "restart"]),
    ]
}

pub(super) fn uninstall_steps(name: &str, path: PathBuf) -> Vec<Step> {
    vec![
        Step::attempt(&["rc-service", name, "stop"]),
        Step::attempt(&["rc-update", "delete", name, "default"]),
        Step::Remove(path),
    ]
}

/// Prints the state of the service.
pub(super) fn status(name: &str, path: &Path) -> Result<ServiceStatus, Failure> {
    if !path.exists() {
        return Err(not_installed(name));
    }
    let (is_running, text) = output_of(&["rc-service", name, "status"]).unwrap_or_default();
    let text = text.trim_start_matches([' ', '*']);
    let state = text.strip_prefix("status: ").unwrap_or(text);
    Ok(ServiceStatus {
        name: name.to_owned(),
        manager: "openrc",
        is_running,
        state: match state {
            "" => "unknown".to_owned(),
            state => state.to_owned(),
        },
        file: path.to_owned(),
        is_enabled: None,
        process: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_two_shells() {
        for word in ["a b", "it's", "$HOME", "`x`", "\\", "%3D"] {
            let text = format!(
                "command_args={}\neval printf %s \"$command_args\"",
                shell_quoted(&shell_quoted(word))
            );
            let (_, printed) = output_of(&["sh", "-c", &text]).unwrap();
            assert_eq!(printed, word);
        }
    }
}
