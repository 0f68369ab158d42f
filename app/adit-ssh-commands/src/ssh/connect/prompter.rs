//! Asks the user at the terminal for passwords and for answers to the server's questions.

use crate::ssh_config::SshSettings;
use adit_crypto::Secret;
use adit_ssh::BoxFuture;
use adit_ssh::client::Prompter;
use adit_ssh_proto::auth::{InteractivePrompt, passwords_equal, sanitize_for_display};

use super::connect_request::is_quiet;
use super::host_key::KeyTrustCell;
use crate::ssh::terminal;

/// A prompter that asks at the terminal, except in batch mode.
pub(super) struct TerminalPrompter {
    /// `user@host`.
    pub(super) name: String,
    batch: bool,
    quiet: bool,
    /// If the host key contradicts the known ones, no passwords and no answers are sent.
    trust: KeyTrustCell,
}

impl TerminalPrompter {
    pub(super) fn new(settings: &SshSettings, taken: &KeyTrustCell) -> Self {
        Self {
            name: format!("{}@{}", settings.user, settings.host_name),
            batch: settings.batch_mode,
            quiet: is_quiet(settings),
            trust: taken.clone(),
        }
    }

    /// Returns true if the user must not be asked.
    fn is_silent(&self) -> bool {
        self.batch || self.trust.is_mismatched()
    }
}

impl Prompter for TerminalPrompter {
    fn ask_password(&self, failed: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        Box::pin(async move {
            if self.is_silent() {
                return None;
            }
            let again = if failed > 0 {
                "permission denied; "
            } else {
                ""
            };
            terminal::ask_hidden(format!("{again}password for {}: ", self.name)).await
        })
    }

    fn ask_new_password<'a>(
        &'a self,
        prompt: &'a str,
    ) -> BoxFuture<'a, Option<(Secret<String>, Secret<String>)>> {
        Box::pin(async move {
            if self.is_silent() {
                return None;
            }
            terminal::print_message(&format!("{} requires a new password. {prompt}", self.name));
            let old = terminal::ask_hidden("old password: ".to_owned()).await?;
            loop {
                let new = terminal::ask_hidden("new password: ".to_owned()).await?;
                let same = terminal::ask_hidden("repeat the new password: ".to_owned()).await?;
                if passwords_equal(new.expose(), same.expose()) {
                    return Some((old, new));
                }
                terminal::print_message("the passwords do not match");
            }
        })
    }

    fn ask_questions<'a>(
        &'a self,
        name: &'a str,
        instruction: &'a str,
        prompts: &'a [InteractivePrompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        Box::pin(async move {
            if self.is_silent() {
                // A request without questions needs an answer without a user.
                let may = prompts.is_empty() && !self.trust.is_mismatched();
                return may.then(Vec::new);
            }
            for text in [name, instruction] {
                if !text.is_empty() && !self.quiet {
                    terminal::print_message(text);
                }
            }
            let mut answers = Vec::with_capacity(prompts.len());
            for prompt in prompts {
                // The prompt names the host, so that a server cannot imitate a question of adit.
                let text = format!("({}) {}", self.name, sanitize_for_display(&prompt.text));
                answers.push(match prompt.echo {
                    true => Secret::new(terminal::ask_visible(text).await?),
                    false => terminal::ask_hidden(text).await?,
                });
            }
            Some(answers)
        })
    }

    fn show_banner(&self, text: &str) {
        if !self.quiet {
            terminal::print_message(text.trim_end_matches('\n'));
        }
    }
}
