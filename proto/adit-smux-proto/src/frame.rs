//! The header of a frame: version, command, length and stream, little-endian.

use adit_wire::ProtocolError;

use crate::{StreamId, Version};

/// Length of the header of a frame, in bytes.
pub const FRAME_HEADER: usize = 8;

/// Length of a window update after its header, in bytes: consumed u32, window u32.
pub(crate) const UPDATE_LEN: usize = 8;

/// The command of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameCommand {
    /// SYN: opens the stream.
    Open,
    /// FIN: no more data from its sender.
    Finish,
    /// PSH: data.
    Data,
    /// NOP: a keep-alive.
    KeepAlive,
    /// UPD: a window update, version 2 only.
    Update,
}

impl FrameCommand {
    const fn number(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Finish => 1,
            Self::Data => 2,
            Self::KeepAlive => 3,
            Self::Update => 4,
        }
    }
}

/// A checked header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) command: FrameCommand,
    /// Number of bytes that follow: any with data, 8 with updates, otherwise 0.
    pub(crate) len: u16,
    pub(crate) stream: StreamId,
}

impl FrameHeader {
    pub(crate) const fn new(command: FrameCommand, len: u16, stream: StreamId) -> Self {
        Self {
            command,
            len,
            stream,
        }
    }

    pub(crate) fn parse(
        bytes: [u8; FRAME_HEADER],
        version: Version,
    ) -> Result<Self, ProtocolError> {
        let [number, command, l0, l1, s0, s1, s2, s3] = bytes;
        if number != version.number() {
            return Err(ProtocolError::Malformed("smux version"));
        }
        let command = match (command, version) {
            (0, _) => FrameCommand::Open,
            (1, _) => FrameCommand::Finish,
            (2, _) => FrameCommand::Data,
            (3, _) => FrameCommand::KeepAlive,
            (4, Version::V2) => FrameCommand::Update,
            _ => return Err(ProtocolError::Malformed("smux command")),
        };
        let len = u16::from_le_bytes([l0, l1]);
        let fits = match command {
            FrameCommand::Data => true,
            FrameCommand::Update => usize::from(len) == UPDATE_LEN,
            FrameCommand::Open | FrameCommand::Finish | FrameCommand::KeepAlive => len == 0,
        };
        let stream = StreamId(u32::from_le_bytes([s0, s1, s2, s3]));
        fits.then_some(Self::new(command, len, stream))
            .ok_or(ProtocolError::Malformed("smux frame length"))
    }

    pub(crate) fn encode(self, version: Version) -> [u8; FRAME_HEADER] {
        let [l0, l1] = self.len.to_le_bytes();
        let [s0, s1, s2, s3] = self.stream.0.to_le_bytes();
        let (version, command) = (version.number(), self.command.number());
        [version, command, l0, l1, s0, s1, s2, s3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_read_is_written(bytes in any::<[u8; 8]>(), number in 1u8..3, command in 0u8..6, short in any::<bool>()) {
            let mut bytes = bytes;
            (bytes[0], bytes[1]) = (number, command);
            if short { (bytes[2], bytes[3]) = (bytes[2] & 8, 0); }
            for version in [Version::V1, Version::V2] {
                match FrameHeader::parse(bytes, version) {
                    Ok(header) => prop_assert_eq!(header.encode(version), bytes),
                    Err(why) => prop_assert!(matches!(why, ProtocolError::Malformed(_))),
                }
            }
        }
    }

    #[test]
    fn refuses_what_no_peer_may_send() {
        let header = |number, command, len| [number, command, len, 0, 3, 0, 0, 0];
        let parse = |bytes| FrameHeader::parse(bytes, Version::V2);
        assert!(parse(header(2, 4, 8)).is_ok() && parse(header(2, 2, 0)).is_ok());
        assert_eq!(
            parse(header(1, 2, 1)),
            Err(ProtocolError::Malformed("smux version"))
        );
        assert_eq!(
            parse(header(2, 5, 0)),
            Err(ProtocolError::Malformed("smux command"))
        );
        for (command, len) in [(0, 1), (1, 1), (3, 1), (4, 7), (4, 9), (4, 0)] {
            let found = parse(header(2, command, len));
            assert_eq!(found, Err(ProtocolError::Malformed("smux frame length")));
        }
        let update = FrameHeader::parse(header(1, 4, 8), Version::V1);
        assert_eq!(update, Err(ProtocolError::Malformed("smux command")));
    }
}
