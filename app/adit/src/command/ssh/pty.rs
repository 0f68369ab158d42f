//! The terminal here as the host is told of it: type, size, modes (RFC 4254 section 8, RFC 8160).

use std::os::fd::AsFd;

use adit_ssh::connection::{Modes, Pty, Size};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OutputModes, SpecialCodeIndex, tcgetattr, tcgetwinsize,
};

/// The number that means "no character": the system's own is 0.
const NO_CHARACTER: u32 = 255;

const CHARACTERS: [(u8, SpecialCodeIndex); 14] = [
    (1, SpecialCodeIndex::VINTR),
    (2, SpecialCodeIndex::VQUIT),
    (3, SpecialCodeIndex::VERASE),
    (4, SpecialCodeIndex::VKILL),
    (5, SpecialCodeIndex::VEOF),
    (6, SpecialCodeIndex::VEOL),
    (7, SpecialCodeIndex::VEOL2),
    (8, SpecialCodeIndex::VSTART),
    (9, SpecialCodeIndex::VSTOP),
    (10, SpecialCodeIndex::VSUSP),
    (12, SpecialCodeIndex::VREPRINT),
    (13, SpecialCodeIndex::VWERASE),
    (14, SpecialCodeIndex::VLNEXT),
    (18, SpecialCodeIndex::VDISCARD),
];

const INPUT: [(u8, InputModes); 11] = [
    (30, InputModes::IGNPAR),
    (31, InputModes::PARMRK),
    (32, InputModes::INPCK),
    (33, InputModes::ISTRIP),
    (34, InputModes::INLCR),
    (35, InputModes::IGNCR),
    (36, InputModes::ICRNL),
    (38, InputModes::IXON),
    (39, InputModes::IXANY),
    (40, InputModes::IXOFF),
    (41, InputModes::IMAXBEL),
];

const LOCAL: [(u8, LocalModes); 11] = [
    (50, LocalModes::ISIG),
    (51, LocalModes::ICANON),
    (53, LocalModes::ECHO),
    (54, LocalModes::ECHOE),
    (55, LocalModes::ECHOK),
    (56, LocalModes::ECHONL),
    (57, LocalModes::NOFLSH),
    (58, LocalModes::TOSTOP),
    (59, LocalModes::IEXTEN),
    (60, LocalModes::ECHOCTL),
    (61, LocalModes::ECHOKE),
];

const OUTPUT: [(u8, OutputModes); 5] = [
    (70, OutputModes::OPOST),
    (72, OutputModes::ONLCR),
    (73, OutputModes::OCRNL),
    (74, OutputModes::ONOCR),
    (75, OutputModes::ONLRET),
];

const CONTROL: [(u8, ControlModes); 2] = [(92, ControlModes::PARENB), (93, ControlModes::PARODD)];

/// What is asked for: a terminal like this one.
pub(super) fn like(terminal: impl AsFd) -> Pty {
    Pty {
        term: std::env::var("TERM").unwrap_or_default(),
        size: size(&terminal).unwrap_or_default(),
        modes: modes(&terminal),
    }
}

/// Its size; `None` if it is no terminal.
pub(super) fn size(terminal: impl AsFd) -> Option<Size> {
    let size = tcgetwinsize(terminal).ok()?;
    Some(Size {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
        width: size.ws_xpixel.into(),
        height: size.ws_ypixel.into(),
    })
}

fn modes(terminal: impl AsFd) -> Modes {
    let mut modes = Modes::new();
    // Without a terminal here the host's own defaults hold.
    let Ok(now) = tcgetattr(terminal) else {
        return modes;
    };
    for (mode, index) in CHARACTERS {
        let character = match u32::from(now.special_codes[index]) {
            0 => NO_CHARACTER,
            character => character,
        };
        modes.set(mode, character);
    }
    for (mode, flag) in INPUT {
        modes.set(mode, now.input_modes.contains(flag).into());
    }
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    modes.set(42, now.input_modes.contains(InputModes::IUTF8).into());
    for (mode, flag) in LOCAL {
        modes.set(mode, now.local_modes.contains(flag).into());
    }
    for (mode, flag) in OUTPUT {
        modes.set(mode, now.output_modes.contains(flag).into());
    }
    let width = now.control_modes & ControlModes::CSIZE;
    modes.set(90, (width == ControlModes::CS7).into());
    modes.set(91, (width == ControlModes::CS8).into());
    for (mode, flag) in CONTROL {
        modes.set(mode, now.control_modes.contains(flag).into());
    }
    modes.set(128, now.input_speed());
    modes.set(129, now.output_speed());
    modes
}
