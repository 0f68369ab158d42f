//! The option `--json`.

// The option of commands that print facts. Like all arguments that are flattened into others, it has no documentation,
// which clap would show as the description of each of these commands.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct JsonOption {
    /// Print JSON instead of text: one document, or one per line for a command that keeps running
    #[arg(long)]
    pub(crate) json: bool,
}
