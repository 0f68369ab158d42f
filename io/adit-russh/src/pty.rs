//! Terminal modes (RFC 4254 section 8, RFC 8160).

use adit_ssh_proto::connection::{PtyRequest as Wanted, TerminalModes, TerminalSize};

macro_rules! modes {
    ($($name:ident = $number:literal,)*) => {
        /// A terminal mode, by its number.
        #[allow(non_camel_case_types, missing_docs, reason = "the names are POSIX's")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Pty { $($name = $number,)* }

        impl Pty {
            const ALL: &[(u8, Self)] = &[$(($number, Self::$name)),*];
        }
    };
}

modes! {
    TTY_OP_END = 0,
    VINTR = 1, VQUIT = 2, VERASE = 3, VKILL = 4, VEOF = 5, VEOL = 6, VEOL2 = 7, VSTART = 8,
    VSTOP = 9, VSUSP = 10, VDSUSP = 11, VREPRINT = 12, VWERASE = 13, VLNEXT = 14, VFLUSH = 15,
    VSWTCH = 16, VSTATUS = 17, VDISCARD = 18,
    IGNPAR = 30, PARMRK = 31, INPCK = 32, ISTRIP = 33, INLCR = 34, IGNCR = 35, ICRNL = 36,
    IUCLC = 37, IXON = 38, IXANY = 39, IXOFF = 40, IMAXBEL = 41, IUTF8 = 42,
    ISIG = 50, ICANON = 51, XCASE = 52, ECHO = 53, ECHOE = 54, ECHOK = 55, ECHONL = 56,
    NOFLSH = 57, TOSTOP = 58, IEXTEN = 59, ECHOCTL = 60, ECHOKE = 61, PENDIN = 62,
    OPOST = 70, OLCUC = 71, ONLCR = 72, OCRNL = 73, ONOCR = 74, ONLRET = 75,
    CS7 = 90, CS8 = 91, PARENB = 92, PARODD = 93,
    TTY_OP_ISPEED = 128, TTY_OP_OSPEED = 129,
}

impl Pty {
    fn number(self) -> u8 {
        let found = Self::ALL.iter().find(|(_, mode)| *mode == self);
        found.map_or(0, |(number, _)| *number)
    }

    fn from_number(number: u8) -> Option<Self> {
        let found = Self::ALL.iter().find(|(other, _)| *other == number);
        found.map(|(_, mode)| *mode)
    }
}

/// Creates a terminal request.
pub(crate) fn terminal_request(term: &str, size: [u32; 4], modes: &[(Pty, u32)]) -> Wanted {
    let mut all = TerminalModes::new();
    for (mode, value) in modes {
        all.set(mode.number(), *value);
    }
    Wanted {
        term: term.to_owned(),
        size: to_size(size),
        modes: all,
    }
}

/// Creates a size from columns, rows, width and height.
pub(crate) const fn to_size([columns, rows, width, height]: [u32; 4]) -> TerminalSize {
    TerminalSize {
        columns,
        rows,
        width,
        height,
    }
}

/// Returns the modes that have a name.
pub(crate) fn named_modes(modes: &TerminalModes) -> Vec<(Pty, u32)> {
    let named = modes
        .iter()
        .filter_map(|(number, value)| Some((Pty::from_number(number)?, value)));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_come_back() {
        let modes = [(Pty::ECHO, 1), (Pty::TTY_OP_OSPEED, 38400)];
        let pty = terminal_request("xterm", [80, 24, 0, 0], &modes);
        assert_eq!(pty.size.rows, 24);
        assert_eq!(named_modes(&pty.modes), modes);
    }
}
