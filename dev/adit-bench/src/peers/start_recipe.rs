//! How a program is started: its arguments and its configuration.

/// The start of one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartRecipe {
    pub(super) program: &'static str,
    pub(super) args: Vec<String>,
    /// A configuration file, which becomes the last argument.
    pub(super) config: Option<String>,
    /// A program given as an argument after `-c`, and the file in which the reader finds it.
    pub(super) script: Option<(&'static str, &'static str)>,
    /// An environment variable and the number of threads it requests.
    pub(super) threads: Option<(&'static str, u32)>,
    /// True if SSH keys are in the working directory.
    pub(super) keys: bool,
}

impl StartRecipe {
    /// Creates a recipe; `line` is split at blanks.
    pub(super) fn new(program: &'static str, line: &str) -> Self {
        let recipe = Self {
            program,
            args: Vec::new(),
            config: None,
            script: None,
            threads: None,
            keys: false,
        };
        recipe.with_args(line.split_whitespace())
    }

    /// Adds arguments, which may contain blanks.
    pub(super) fn with_args<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(words.into_iter().map(str::to_owned));
        self
    }

    /// Adds `-c` and the program `text`, which is in `file` of this workspace.
    pub(super) const fn with_script(mut self, file: &'static str, text: &'static str) -> Self {
        self.script = Some((file, text));
        self
    }

    /// Starts the program in a folder with `host`, `id` and `authorized_keys`.
    pub(super) const fn with_keys(mut self) -> Self {
        self.keys = true;
        self
    }

    /// Adds a configuration file, in which `FOLDER` stands for the working directory.
    pub(super) fn with_config(mut self, text: impl ToString) -> Self {
        self.config = Some(text.to_string());
        self
    }

    /// Returns the command as a user would type it, without the folders of this machine.
    pub(super) fn to_shell(&self) -> String {
        let words = std::iter::once(self.program).chain(self.args.iter().map(String::as_str));
        let shown = |word: &str| match self.script {
            Some((file, text)) if word == text => format!("\"$(cat {file})\""),
            _ => shell_quoted(word),
        };
        let line = words.map(shown).collect::<Vec<_>>().join(" ");
        let line = match self.threads {
            Some((variable, count)) => format!("{variable}={count} {line}"),
            None => line,
        };
        match &self.config {
            Some(config) => format!(
                "cat > config <<'END'\n{}\nEND\n{line} config",
                config.trim()
            ),
            None => line,
        }
    }
}

fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_shown_before_its_program() {
        let recipe = StartRecipe::new("x", "-c").with_config("a: b c\n");
        assert_eq!(
            recipe.to_shell(),
            "cat > config <<'END'\na: b c\nEND\nx -c config"
        );
    }

    #[test]
    fn a_program_in_a_word_is_shown_by_its_file() {
        let recipe = StartRecipe::new("py", "-c").with_args(["print()\n", "x"]);
        let recipe = recipe.with_script("a/b.py", "print()\n");
        assert_eq!(recipe.to_shell(), "py -c \"$(cat a/b.py)\" x");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_quoted("a-b/c:1"), "a-b/c:1");
        assert_eq!(shell_quoted("it's ?"), r"'it'\''s ?'");
        assert_eq!(shell_quoted(""), "''");
    }
}
