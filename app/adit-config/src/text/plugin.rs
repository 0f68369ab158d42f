//! `PROGRAM;OPTIONS` of a plugin, as in share links (SIP002, SIP003).

/// Characters that lose their meaning after a `\`.
const SPECIAL: [char; 4] = ['\\', ';', '=', ':'];

/// The text of `plugin`, split at the first `;` that has no `\` before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginText {
    /// The program, without escapes.
    pub program: String,
    /// The options as they were written: the plugin interprets their escapes.
    pub options: String,
}

impl PluginText {
    /// Parses the text.
    ///
    /// # Errors
    ///
    /// A text that says what was expected, if there is no program or a zero byte.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut program = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                ';' => break,
                // Before any other character it is literal: some paths contain it.
                '\\' => match rest.clone().next().filter(|next| SPECIAL.contains(next)) {
                    Some(next) => {
                        program.push(next);
                        rest.next();
                    }
                    None => program.push(c),
                },
                other => program.push(other),
            }
        }
        if program.is_empty() {
            return Err("expected a program, then `;` and its options".to_owned());
        }
        // Arguments and variables of a process end at a zero byte.
        if text.contains('\0') {
            return Err("a zero byte cannot be passed to a program".to_owned());
        }
        Ok(Self {
            program,
            options: rest.as_str().to_owned(),
        })
    }

    /// Formats the program and the options as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for c in self.program.chars() {
            if matches!(c, '\\' | ';') {
                text.push('\\');
            }
            text.push(c);
        }
        if !self.options.is_empty() {
            text.push(';');
            text.push_str(&self.options);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_program_ends_at_the_first_bare_semicolon() {
        for (text, program, options) in [
            ("obfs-local", "obfs-local", ""),
            ("obfs-local;", "obfs-local", ""),
            ("obfs-local;obfs=http", "obfs-local", "obfs=http"),
            (
                "v2ray-plugin;server;path=/a\\;b\\=c;host=h",
                "v2ray-plugin",
                "server;path=/a\\;b\\=c;host=h",
            ),
            (r"/opt/a\;b\\c\=d\:e;f", r"/opt/a;b\c=d:e", "f"),
            (r"C\:\bin\p.exe;x", r"C:\bin\p.exe", "x"),
            (r"p\", r"p\", ""),
            (r"p\\;x", r"p\", "x"),
        ] {
            let read = PluginText::parse(text).unwrap();
            assert_eq!(
                (read.program.as_str(), read.options.as_str()),
                (program, options)
            );
            assert_eq!(PluginText::parse(&read.to_text()), Ok(read));
        }
        for text in ["", ";", ";x", "a\0", "a;b\0"] {
            assert!(PluginText::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(text in "[a\\\\;=:/ä]{0,12}") {
            if let Ok(read) = PluginText::parse(&text) {
                prop_assert_eq!(PluginText::parse(&read.to_text()), Ok(read));
            }
        }
    }
}
