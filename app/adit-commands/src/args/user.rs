//! The arguments of `adit user`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ProcessArgs;
use super::json_option::JsonOption;
use crate::command::user_values::{self, Change, Quota};

/// The commands of `adit user`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum UserCommand {
    /// Add a user: make keys, set limits, print the URL and its QR code
    ///
    /// The running process makes a key for each listener that has users, writes it to the listener's
    /// file of users, and accepts the user from then on. The secrets are printed, also into a pipe.
    Add(UserAddArgs),
    /// List all users, with state, usage and limits
    List(UserListArgs),
    /// Show one user; with --reveal also URL and QR code
    Show(UserShowArgs),
    /// Make new keys and passwords for a user, whose sessions end
    Rotate(UserRotateArgs),
    /// Remove a user, whose sessions end
    Remove(UserRemoveArgs),
    /// Change the limits of a user; they apply to open sessions too
    Limit(UserLimitArgs),
    /// Start to count the quota of a user from zero
    Reset(UserResetArgs),
    /// Import the users of another program, with their secrets and limits
    ///
    /// Reads an export of Outline, Marzban or 3x-ui, keys by name (shadowsocks-go), SIP008, CSV, or `ss://`
    /// URLs, one in each line. Users who are right already stay as they are, so that an import can be
    /// repeated. Nothing that the export limits is imported without its limit: such users are skipped, and
    /// the output says why.
    Import(UserImportArgs),
}

impl UserCommand {
    /// Returns whether the result is JSON.
    pub(crate) const fn json(&self) -> &JsonOption {
        &self.api().json
    }

    /// Returns the process or realm.
    pub(crate) const fn api(&self) -> &UserApiArgs {
        match self {
            Self::Add(typed) => &typed.api,
            Self::List(typed) => &typed.api,
            Self::Show(typed) => &typed.api,
            Self::Rotate(typed) => &typed.api,
            Self::Remove(typed) => &typed.api,
            Self::Limit(typed) => &typed.api,
            Self::Reset(typed) => &typed.api,
            Self::Import(typed) => &typed.api,
        }
    }
}

// The running process, or the realm.
#[derive(Debug, Args)]
pub(crate) struct UserApiArgs {
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Act on the realm of this operator's membership, not on a process. Without FILE, and if no process
    /// is named and the file exists: /etc/adit/fleet.json for root, else ~/.config/adit/fleet.json
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["config", "admin", "admin_token"])]
    pub(crate) fleet: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

// The limits of a user.
#[derive(Debug, Args)]
pub(crate) struct UserLimitOptions {
    /// Traffic of both directions: 50GB once, or 50GB/month (day, week, month); `none` removes it
    #[arg(long, value_name = "SIZE[/PERIOD]", value_parser = user_values::parse_quota)]
    pub(crate) quota: Option<Change<Quota>>,
    /// When the user is refused: in 30d, or from 2027-01-01 on (UTC); `none` removes it
    #[arg(long, value_name = "TIME|DATE", value_parser = user_values::parse_expiry)]
    pub(crate) expires: Option<Change<u64>>,
    /// Speed in each direction: 10MB/s or 100Mbit/s; `none` removes it
    #[arg(long, value_name = "RATE", value_parser = user_values::parse_rate)]
    pub(crate) rate: Option<Change<u64>>,
    /// Maximum number of open sessions: connections, and UDP associations; `none` removes it
    #[arg(long, value_name = "N", value_parser = user_values::parse_count)]
    pub(crate) sessions: Option<Change<u32>>,
    /// Maximum number of client addresses at once; `none` removes it
    #[arg(long, value_name = "N", value_parser = user_values::parse_count)]
    pub(crate) devices: Option<Change<u32>>,
}

// The form of printed credentials.
#[derive(Debug, Args)]
pub(crate) struct UserUrlArgs {
    /// Host name or address for the printed URL, as clients reach this machine [default: `public_host`]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Do not print the QR code
    #[arg(long)]
    pub(crate) no_qr: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserAddArgs {
    /// The name of the user
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) limits: UserLimitOptions,
    /// A listener that the user may use: a route, or ROUTE:PORT; can be repeated [default: all with users]
    #[arg(long, value_name = "LISTENER")]
    pub(crate) listener: Vec<String>,
    #[command(flatten)]
    pub(crate) url: UserUrlArgs,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserListArgs {
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserShowArgs {
    /// The name of the user
    pub(crate) name: String,
    /// Print the URLs and the QR code. Needs a token that may read keys: one followed by `reveal` in the
    /// file of tokens
    #[arg(long)]
    pub(crate) reveal: bool,
    #[command(flatten)]
    pub(crate) url: UserUrlArgs,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserRotateArgs {
    /// The name of the user
    pub(crate) name: String,
    /// Only at this listener; can be repeated
    #[arg(long, value_name = "LISTENER")]
    pub(crate) listener: Vec<String>,
    #[command(flatten)]
    pub(crate) url: UserUrlArgs,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserRemoveArgs {
    /// The name of the user
    pub(crate) name: String,
    /// Only from this listener; the limits stay as long as another one has the user
    #[arg(long, value_name = "LISTENER")]
    pub(crate) listener: Option<String>,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserLimitArgs {
    /// The name of the user
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) limits: UserLimitOptions,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserResetArgs {
    /// The name of the user
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UserImportArgs {
    /// The export; `-` is standard input
    pub(crate) file: PathBuf,
    /// The format: outline, marzban, 3x-ui, upsk, sip008, csv, links, or auto, which finds it out
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = user_values::parse_export_format)]
    pub(crate) from: user_values::ExportFormat,
    /// Print what would be added, changed and skipped, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Users who have another key get the one of the export, and their sessions end
    #[arg(long)]
    pub(crate) replace_keys: bool,
    /// A listener that the users may use: a route, or ROUTE:PORT; can be repeated [default: all with users]
    #[arg(long, value_name = "LISTENER")]
    pub(crate) listener: Vec<String>,
    #[command(flatten)]
    pub(crate) api: UserApiArgs,
}
