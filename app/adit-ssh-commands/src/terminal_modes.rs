//! Conversion between the terminal modes of SSH (RFC 4254 section 8, RFC 8160) and of the system: a client
//! sends the modes of its terminal, a server applies them.

use std::io;
use std::os::fd::AsFd;

use adit_ssh_proto::connection::TerminalModes;
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
    tcgetattr, tcsetattr,
};

/// Value that disables a special character in SSH; on the system it is 0.
const DISABLED_CHARACTER: u32 = 255;

/// Special characters.
const CHARACTER_MODES: [(u8, SpecialCodeIndex); 14] = [
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

/// Input modes.
const INPUT_FLAGS: &[(u8, InputModes)] = &[
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
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    (42, InputModes::IUTF8),
];

/// Local modes.
const LOCAL_FLAGS: [(u8, LocalModes); 11] = [
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

/// Output modes.
const OUTPUT_FLAGS: [(u8, OutputModes); 5] = [
    (70, OutputModes::OPOST),
    (72, OutputModes::ONLCR),
    (73, OutputModes::OCRNL),
    (74, OutputModes::ONOCR),
    (75, OutputModes::ONLRET),
];

/// Control modes.
const CONTROL_FLAGS: [(u8, ControlModes); 2] =
    [(92, ControlModes::PARENB), (93, ControlModes::PARODD)];

/// PENDIN: pending input is to be reprinted. This is a state and not a setting, so it is applied but not sent.
const PENDIN_MODE: u8 = 62;

/// Seven bits per character.
const CS7_MODE: u8 = 90;
/// Eight bits per character.
const CS8_MODE: u8 = 91;

/// Input speed, in bit/s.
const INPUT_SPEED_MODE: u8 = 128;
/// Output speed, in bit/s.
const OUTPUT_SPEED_MODE: u8 = 129;

/// Returns the modes of a terminal. If it is not a terminal, they are empty, and the host uses its defaults.
pub(super) fn read_modes(terminal: impl AsFd) -> TerminalModes {
    let mut modes = TerminalModes::new();
    let Ok(now) = tcgetattr(terminal) else {
        return modes;
    };
    for (mode, index) in CHARACTER_MODES {
        let character = match u32::from(now.special_codes[index]) {
            0 => DISABLED_CHARACTER,
            character => character,
        };
        modes.set(mode, character);
    }
    for &(mode, flag) in INPUT_FLAGS {
        modes.set(mode, now.input_modes.contains(flag).into());
    }
    for (mode, flag) in LOCAL_FLAGS {
        modes.set(mode, now.local_modes.contains(flag).into());
    }
    for (mode, flag) in OUTPUT_FLAGS {
        modes.set(mode, now.output_modes.contains(flag).into());
    }
    let width = now.control_modes & ControlModes::CSIZE;
    modes.set(CS7_MODE, (width == ControlModes::CS7).into());
    modes.set(CS8_MODE, (width == ControlModes::CS8).into());
    for (mode, flag) in CONTROL_FLAGS {
        modes.set(mode, now.control_modes.contains(flag).into());
    }
    modes.set(INPUT_SPEED_MODE, now.input_speed());
    modes.set(OUTPUT_SPEED_MODE, now.output_speed());
    modes
}

/// Applies the modes that the system supports.
///
/// # Errors
/// The terminal cannot be read or changed.
pub(super) fn apply_modes(terminal: impl AsFd, modes: &TerminalModes) -> io::Result<()> {
    let mut termios = tcgetattr(&terminal)?;
    for (number, value) in modes.iter() {
        set_mode(&mut termios, number, value);
    }
    Ok(tcsetattr(&terminal, OptionalActions::Now, &termios)?)
}

/// Applies one mode.
fn set_mode(termios: &mut Termios, number: u8, value: u32) {
    let on = value != 0;
    if let Some((_, index)) = CHARACTER_MODES.iter().find(|(n, _)| *n == number) {
        let code = if value == DISABLED_CHARACTER {
            0
        } else {
            value
        };
        if let Ok(code) = u8::try_from(code) {
            termios.special_codes[*index] = code;
        }
    } else if let Some((_, mode)) = INPUT_FLAGS.iter().find(|(n, _)| *n == number) {
        termios.input_modes.set(*mode, on);
    } else if let Some((_, mode)) = LOCAL_FLAGS.iter().find(|(n, _)| *n == number) {
        termios.local_modes.set(*mode, on);
    } else if let Some((_, mode)) = OUTPUT_FLAGS.iter().find(|(n, _)| *n == number) {
        termios.output_modes.set(*mode, on);
    } else if let Some((_, mode)) = CONTROL_FLAGS.iter().find(|(n, _)| *n == number) {
        termios.control_modes.set(*mode, on);
    } else if number == PENDIN_MODE {
        termios.local_modes.set(LocalModes::PENDIN, on);
    } else if number == CS7_MODE && on {
        // The bits of the two sizes overlap: turning one off does not select the other.
        termios.control_modes.remove(ControlModes::CSIZE);
        termios.control_modes.insert(ControlModes::CS7);
    } else if number == CS8_MODE && on {
        termios.control_modes.insert(ControlModes::CS8);
    } else if number == INPUT_SPEED_MODE {
        // An unsupported speed is ignored: a pseudo-terminal has no real speed.
        let _ = termios.set_input_speed(value);
    } else if number == OUTPUT_SPEED_MODE {
        let _ = termios.set_output_speed(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_net::child::terminal::PseudoTerminal;

    #[tokio::test]
    async fn modes_are_set_and_unknown_ones_left_alone() {
        let (_terminal, theirs) = PseudoTerminal::open().unwrap();
        let mut modes = TerminalModes::new();
        for (number, value) in [
            (1, 7),
            (2, DISABLED_CHARACTER),
            (3, 300),
            (53, 0),
            (36, 0),
            (72, 0),
            (90, 0),
            (91, 1),
            (128, 9600),
            (129, 12_345_678),
            (71, 1),
            (159, 5),
        ] {
            modes.set(number, value);
        }
        let before = tcgetattr(&theirs).unwrap();
        apply_modes(&theirs, &modes).unwrap();
        let after = tcgetattr(&theirs).unwrap();
        let code = |index| after.special_codes[index];
        assert_eq!(code(SpecialCodeIndex::VINTR), 7);
        assert_eq!(code(SpecialCodeIndex::VQUIT), 0);
        let erase = before.special_codes[SpecialCodeIndex::VERASE];
        assert_eq!(code(SpecialCodeIndex::VERASE), erase);
        assert!(!after.local_modes.contains(LocalModes::ECHO));
        assert!(after.local_modes.contains(LocalModes::ICANON));
        assert!(!after.input_modes.contains(InputModes::ICRNL));
        assert!(!after.output_modes.contains(OutputModes::ONLCR));
        assert!(after.control_modes.contains(ControlModes::CS8));
    }
}
