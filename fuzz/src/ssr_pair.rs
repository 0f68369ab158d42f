//! A client and a server of ShadowsocksR with matching settings, and a reader of their frames.

use std::sync::Arc;

use adit_shadowsocksr::{
    ClientParam, FrameOpen, OpenedFrame, Protocol, ProtocolClient, ProtocolServer, ReplayStore,
    ServerParam,
};
use adit_wire::ProtocolError;

use crate::NOW;

/// The port's key.
const PORT_KEY: [u8; 32] = [3; 32];

/// The user of [`new_pair`], if there are users.
pub const UID: u32 = 42;

/// Returns a client and its server, with users if the protocol has them and `users` is true.
///
/// # Panics
/// Never.
#[must_use]
pub fn new_pair(protocol: Protocol, users: bool) -> (ProtocolClient, Arc<ProtocolServer>) {
    let kind = protocol.kind;
    let (client, server) = match users && kind.has_users() {
        true => ("42:userpw", "64#42:userpw,7:other"),
        false => ("", ""),
    };
    let client = ClientParam::parse(kind, client).expect("a user");
    let server = ServerParam::parse(kind, server).expect("users");
    let replays = Arc::new(ReplayStore::new([7; 16], NOW));
    (
        ProtocolClient::new(kind, &PORT_KEY, client, 0),
        Arc::new(ProtocolServer::new(
            protocol, &PORT_KEY, &server, 0, replays,
        )),
    )
}

/// Opens frames after the bytes in `held`, as they arrive in pieces. Returns the data and the
/// number of bytes that wait for more.
pub fn open_frames(
    open: &mut FrameOpen,
    mut held: Vec<u8>,
    wire: &[u8],
    pieces: &[usize],
) -> Result<(Vec<u8>, usize), ProtocolError> {
    let (mut plain, mut rest) = (Vec::new(), wire);
    for piece in pieces.iter().cycle() {
        let mut used = 0;
        loop {
            let front = &mut held[used..];
            match open.open_frame(front)? {
                OpenedFrame::NeedMore { total } => {
                    assert!(
                        total > front.len(),
                        "NeedMore must ask for more than there is"
                    );
                    break;
                }
                OpenedFrame::Plain { consumed, payload } => {
                    assert!(consumed > 0 && payload.end <= consumed && consumed <= front.len());
                    plain.extend_from_slice(&front[payload]);
                    used += consumed;
                }
                OpenedFrame::Inflated { consumed } => {
                    assert!(consumed > 0 && consumed <= front.len());
                    assert!(open.inflated().len() <= 32_768);
                    plain.extend_from_slice(open.inflated());
                    used += consumed;
                }
            }
        }
        held.drain(..used);
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at(rest.len().min(*piece));
        held.extend_from_slice(now);
        rest = later;
    }
    Ok((plain, held.len()))
}
