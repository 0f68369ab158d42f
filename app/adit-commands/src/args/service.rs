//! The arguments of `adit service` and `adit system-proxy`.

use std::path::PathBuf;

use super::json_option::JsonOption;

/// The actions of `adit service`.
#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum ServiceCommand {
    /// Write the file of the service, and enable and start it
    ///
    /// Without -c and ARGS, the file is /etc/adit/NAME.toml, or ~/.config/adit/NAME.toml with --user.
    /// A system service runs as the user `adit`, which is created if it is missing and has to be able
    /// to read the file: `chgrp adit FILE && chmod 640 FILE`. On macOS it runs as the user who calls
    /// sudo.
    Install(ServiceInstallArgs),
    /// Show if the service is installed and runs; exit code 1 if it does not run
    Status(ServiceStatusArgs),
    /// Stop and disable the service, and remove its file
    ///
    /// The configuration, the state folder and the user `adit` are kept.
    Uninstall(ServiceNameArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceNameArgs {
    /// A service of your own user, which starts when you log in, instead of one of the system
    #[arg(long)]
    pub(crate) user: bool,
    /// Name of the service: letters, digits, `-` and `_`
    #[arg(long, value_name = "NAME", default_value = "adit")]
    pub(crate) name: String,
    /// The service manager, instead of the one that runs here
    #[arg(long, value_enum, value_name = "systemd|openrc|launchd")]
    pub(crate) manager: Option<ServiceManager>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceStatusArgs {
    #[command(flatten)]
    pub(crate) service: ServiceNameArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceInstallArgs {
    #[command(flatten)]
    pub(crate) service: ServiceNameArgs,
    /// The configuration file of `adit run`
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Print the file of the service and change nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Replace a file that `adit service` has not written
    #[arg(long)]
    pub(crate) force: bool,
    /// Arguments of adit instead of a file: URLs, or `run`, `server` or `client` with their arguments
    #[arg(
        value_name = "ARGS",
        conflicts_with = "config",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<String>,
}

/// The supported service managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServiceManager {
    Systemd,
    // Not `open-rc`.
    #[value(name = "openrc")]
    OpenRc,
    Launchd,
}

/// The actions of `adit system-proxy`.
#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum SystemProxyCommand {
    /// Have programs of this desktop use a proxy, and store the settings that were there before
    On(SystemProxyOnArgs),
    /// Restore the settings that `on` has replaced
    Off(SystemProxyDesktopArgs),
    /// Print the current settings
    Status(SystemProxyStatusArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SystemProxyOnArgs {
    #[command(flatten)]
    pub(crate) desktop: SystemProxyDesktopArgs,
    /// The proxy: a socks5://, http:// or mixed:// URL without a password
    #[arg(value_name = "URL", default_value = "mixed://127.0.0.1:1080")]
    pub(crate) url: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SystemProxyStatusArgs {
    #[command(flatten)]
    pub(crate) desktop: SystemProxyDesktopArgs,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SystemProxyDesktopArgs {
    /// The desktop, instead of the one of this session
    #[arg(long, value_enum, value_name = "gnome|kde|macos|windows")]
    pub(crate) desktop: Option<DesktopKind>,
}

/// The desktops whose proxy settings can be changed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DesktopKind {
    Gnome,
    Kde,
    Macos,
    Windows,
}
