//! Property lists of launchd.

use std::path::{Path, PathBuf};

use adit_cli::{Failure, FailureCode};

use super::definition::{ServiceDefinition, ServiceScope};
use super::folders::home;
use super::status::{ServiceStatus, not_installed};
use super::steps::{MARK, Step, output_of};

/// Returns the property list of a service. A system service runs as `user`.
pub(super) fn property_list(definition: &ServiceDefinition, user: Option<&str>) -> String {
    let words = std::iter::once(&definition.program).chain(&definition.arguments);
    let words: String = words
        .map(|word| format!("        <string>{}</string>\n", escaped(word)))
        .collect();
    let (name, log) = (&definition.name, log_path(definition));
    let mut keys = String::new();
    if let Some(user) = user {
        let user = escaped(user);
        keys.push_str(&format!(
            "    <key>UserName</key>\n    <string>{user}</string>\n"
        ));
    }
    if let Some(log) = log {
        let log = escaped(&log);
        keys.push_str(&format!(
            "    <key>StandardErrorPath</key>\n    <string>{log}</string>\n"
        ));
    }
    format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- {MARK} -->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
    <key>Label</key>
    <string>{name}</string>
    <key>ProgramArguments</key>
    <array>
{words}    </array>
    <key>RunAtLoad</key>
    <true/>
    <key>KeepAlive</key>
    <dict>
        <key>SuccessfulExit</key>
        <false/>
    </dict>
    <key>ExitTimeOut</key>
    <integer>40</integer>
    <key>ProcessType</key>
    <string>Interactive</string>
    <key>Umask</key>
    <integer>63</integer>
    <key>SoftResourceLimits</key>
    <dict>
        <key>NumberOfFiles</key>
        <integer>65536</integer>
    </dict>
{keys}</dict>
</plist>
"
    )
}

/// Returns the file of the log. A user finds that of their own service in their home.
fn log_path(definition: &ServiceDefinition) -> Option<String> {
    let name = &definition.name;
    match definition.scope {
        ServiceScope::System => Some(format!("/var/log/{name}.log")),
        ServiceScope::User => {
            let home = home().ok()?;
            Some(
                home.join("Library/Logs")
                    .join(format!("{name}.log"))
                    .to_str()?
                    .to_owned(),
            )
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns the path of a property list.
pub(super) fn path(scope: ServiceScope, name: &str) -> Result<PathBuf, Failure> {
    let file = format!("{name}.plist");
    Ok(match scope {
        ServiceScope::System => Path::new("/Library/LaunchDaemons").join(file),
        ServiceScope::User => home()?.join("Library/LaunchAgents").join(file),
    })
}

/// Returns the user that a system service runs as: the one who called sudo.
pub(super) fn run_user(scope: ServiceScope) -> Result<Option<String>, Failure> {
    match (scope, std::env::var("SUDO_USER")) {
        (ServiceScope::User, _) => Ok(None),
        (ServiceScope::System, Ok(user)) if user != "root" => Ok(Some(user)),
        (ServiceScope::System, _) => Err(Failure::new(
            FailureCode::Usage,
            "a system service of launchd runs as the user who calls sudo, and there is none",
        )
        .with_hint("run `sudo adit service install …` as that user")),
    }
}

pub(super) fn install_steps(
    definition: &ServiceDefinition,
    user: Option<&str>,
    path: PathBuf,
) -> Result<Vec<Step>, Failure> {
    let domain = domain(definition.scope)?;
    let file = path.display().to_string();
    let mut steps = vec![Step::Write {
        path,
        text: property_list(definition, user),
        mode: 0o644,
    }];
    if let (Some(user), Some(log)) = (user, log_path(definition)) {
        steps.push(Step::run(&["touch", &log]));
        steps.push(Step::run(&["chown", user, &log]));
    }
    let target = format!("{domain}/{}", definition.name);
    steps.push(Step::attempt(&["launchctl", "bootout", &target]));
    steps.push(Step::run(&["launchctl", "enable", &target]));
    steps.push(Step::run(&["launchctl", "bootstrap", &domain, &file]));
    Ok(steps)
}

pub(super) fn uninstall_steps(
    scope: ServiceScope,
    name: &str,
    path: PathBuf,
) -> Result<Vec<Step>, Failure> {
    let target = format!("{}/{name}", domain(scope)?);
    Ok(vec![
        Step::attempt(&["launchctl", "bootout", &target]),
        Step::Remove(path),
    ])
}

/// Prints the state of the service.
pub(super) fn status(
    scope: ServiceScope,
    name: &str,
    path: &Path,
) -> Result<ServiceStatus, Failure> {
    if !path.exists() {
        return Err(not_installed(name));
    }
    let target = format!("{}/{name}", domain(scope)?);
    let (_, text) = output_of(&["launchctl", "print", &target]).unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
        line.map(|rest| rest.trim_start_matches([' ', '=']))
    };
    let state = value("state");
    Ok(ServiceStatus {
        name: name.to_owned(),
        manager: "launchd",
        is_running: state == Some("running"),
        state: state.unwrap_or("not loaded").to_owned(),
        file: path.to_owned(),
        is_enabled: None,
        process: value("pid").and_then(|process| process.parse().ok()),
    })
}

/// Returns the domain of launchd that the services of this scope belong to.
fn domain(scope: ServiceScope) -> Result<String, Failure> {
    match scope {
        ServiceScope::System => Ok("system".to_owned()),
        ServiceScope::User => match output_of(&["id", "-u"]) {
            Some((true, id)) => Ok(format!("gui/{id}")),
            _ => Err(Failure::new(FailureCode::Failure, "`id -u` failed")),
        },
    }
}
