//! Sessions with session keys: found by their id, from any address.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_crypto::packet::session::{Role, SessionId};
use adit_wire::{ProtocolError, Time, subslice};

use super::route::DatagramRoute;
use super::session::Session;
use super::table::{BatchStats, SessionTable};
use crate::new_peers::{NewPeer, NewPeerPacket};

impl SessionTable {
    /// Handles a packet that is sealed with session keys.
    pub(super) fn handle_sealed(
        &mut self,
        packet: &mut [u8],
        from: SocketAddr,
        now: Time,
        tally: &mut BatchStats,
    ) {
        let role = match self.new_peers {
            Some(_) => Role::Client,
            None => Role::Server,
        };
        let key = self.socket.settings.session.as_ref();
        let Some(head) = key.and_then(|key| key.decrypt_header(role, packet)) else {
            tally.refused += 1;
            return;
        };
        let id = head.id();
        let slot = match role {
            Role::Client => self.ids.get(&id).copied(),
            // A client has one session on a socket.
            Role::Server => Some(0),
        };
        let session = slot.and_then(|slot| self.slots.get(slot)?.clone());
        if let Some(session) = session {
            return match session.open(head, packet, from, now) {
                Ok(range) => self.deliver_opened(&session, packet.get(range), now, tally),
                // The network may duplicate packets.
                Err(ProtocolError::Replayed) => {}
                Err(_) => {
                    tally.refused += 1;
                    if session.peer_addr() == from {
                        self.socket.count_refused();
                    }
                }
            };
        }
        // A session of the previous process, whose client has moved.
        #[cfg(target_os = "linux")]
        if let Some(udp) = self.socket.transport.udp()
            && udp.forward_session(id.to_u64(), packet, from)
        {
            return;
        }
        if self.socket.transport.is_handed_over() {
            return;
        }
        let Some(newcomers) = &mut self.new_peers else {
            return;
        };
        match newcomers.handle_packet(head, packet, now) {
            NewPeerPacket::Foreign => tally.refused += 1,
            NewPeerPacket::Answer(answer) => {
                // Lost like any other: the client sends again.
                let _ = self.socket.transport.try_send(&answer[..], from);
            }
            NewPeerPacket::Fresh(one, range) => {
                let packet = subslice(packet, range);
                self.accept_new_peer(id, one, packet, from, now, tally);
            }
        }
    }

    /// Passes an opened packet to its session.
    fn deliver_opened(
        &mut self,
        session: &Arc<Session>,
        packet: Option<&[u8]>,
        now: Time,
        tally: &mut BatchStats,
    ) {
        let packet = packet.unwrap_or_default();
        match DatagramRoute::classify(packet) {
            _ if packet.is_empty() => {}
            DatagramRoute::Unknown => tally.malformed += 1,
            _ => {
                if session.handle_input(packet, now) {
                    self.touched.push(session.slot);
                }
            }
        }
    }

    /// Starts the session of a client that is not a recording, with its packets until now.
    fn accept_new_peer(
        &mut self,
        id: SessionId,
        mut one: NewPeer,
        packet: &[u8],
        from: SocketAddr,
        now: Time,
        tally: &mut BatchStats,
    ) {
        one.early.push(packet.to_vec());
        let conv = one
            .early
            .iter()
            .find_map(|packet| match DatagramRoute::classify(packet) {
                DatagramRoute::Bare(_, opening) | DatagramRoute::Data(_, Some(opening)) => {
                    Some(opening.conv)
                }
                _ => None,
            });
        let Some(conv) = conv else {
            // The packet with the conversation number was lost, and will be sent again.
            one.early.pop();
            if let Some(newcomers) = &mut self.new_peers {
                newcomers.put_back(id, one);
            }
            return;
        };
        let accept = self.accept.clone().filter(|_| self.is_within_limits(from));
        let Some(permit) = accept.and_then(|accept| accept.try_reserve_owned().ok()) else {
            return;
        };
        let NewPeer { session, early, .. } = one;
        let stream = self.insert_session(from, conv, true, Some(session));
        let session = Arc::clone(stream.session());
        permit.send(stream);
        self.ids.insert(id, session.slot);
        for packet in &early {
            self.deliver_opened(&session, Some(packet), now, tally);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use adit_crypto::packet::session::SessionKey;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UdpSocket;
    use tokio::time::timeout;

    use super::*;
    use crate::{Fec, KcpListener, KcpStream, PeerContact, Settings};

    fn settings(key: u8) -> Settings {
        Settings {
            session: Some(SessionKey::new(&[key; 32]).unwrap()),
            fec: Some(Fec {
                data: 3,
                parity: 1,
                matrix: adit_fec::CodeMatrix::Vandermonde,
            }),
            ..Settings::new(adit_kcp_proto::Config::fast3())
        }
    }

    /// A middlebox that changes the client's address every `life` packets, and keeps its first
    /// packets.
    async fn moving(server: SocketAddr, life: usize) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
        let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = near.local_addr().unwrap();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let ours = Arc::clone(&kept);
        tokio::spawn(async move {
            let mut far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let (mut up, mut down) = ([0; 2000], [0; 2000]);
            let (mut client, mut count) = (None, 0);
            loop {
                tokio::select! {
                    Ok((n, from)) = near.recv_from(&mut up) => {
                        client = Some(from);
                        count += 1;
                        if count % life == 0 {
                            far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                        }
                        keep(&ours, &up[..n]);
                        let _ = far.send_to(&up[..n], server).await;
                    }
                    Ok((n, _)) = far.recv_from(&mut down) => {
                        let Some(client) = client else { continue };
                        let _ = near.send_to(&down[..n], client).await;
                    }
                }
            }
        });
        (at, kept)
    }

    fn keep(kept: &Mutex<Vec<Vec<u8>>>, packet: &[u8]) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < 20 {
            kept.push(packet.to_vec());
        }
    }

    #[tokio::test]
    async fn a_client_that_moves_goes_on_and_a_recording_begins_nothing() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut listener = KcpListener::bind(any, settings(1)).unwrap();
        let server = listener.local_addr().unwrap();
        let (at, kept) = moving(server, 40).await;
        let mut client = KcpStream::connect(at, settings(1)).await.unwrap();
        let text: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
        let send = async {
            client.write_all(&text).await.unwrap();
            client.flush().await.unwrap();
            let mut back = [0; 4];
            client.read_exact(&mut back).await.unwrap();
            back
        };
        let serve = async {
            let (mut stream, born) = listener.accept().await.unwrap();
            let mut got = vec![0; text.len()];
            stream.read_exact(&mut got).await.unwrap();
            assert!(got == text);
            assert_ne!(stream.peer_addr(), born, "it has moved");
            stream.write_all(b"done").await.unwrap();
            stream.flush().await.unwrap();
            stream
        };
        let both = async { tokio::join!(serve, send) };
        let (stream, back) = timeout(Duration::from_secs(20), both).await.unwrap();
        assert_eq!(&back, b"done");
        // All of it again, from a third party, to a server that has the session and to one that
        // does not.
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let recorded = kept.lock().unwrap().clone();
        assert_eq!(recorded.len(), 20);
        let mut other = KcpListener::bind(any, settings(1)).unwrap();
        for packet in &recorded {
            for to in [server, other.local_addr().unwrap()] {
                stranger.send_to(packet, to).await.unwrap();
            }
        }
        let soon = Duration::from_millis(300);
        assert!(
            timeout(soon, listener.accept()).await.is_err(),
            "a second session"
        );
        assert!(
            timeout(soon, other.accept()).await.is_err(),
            "a session of a recording"
        );
        let moved = stream.peer_addr() == stranger.local_addr().unwrap();
        assert!(!moved, "a recording must not move the session");
    }

    #[tokio::test]
    async fn another_key_is_understood_by_nobody() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut listener = KcpListener::bind(any, settings(1)).unwrap();
        let mut client = KcpStream::connect(listener.local_addr().unwrap(), settings(2))
            .await
            .unwrap();
        client.write_all(b"hello").await.unwrap();
        client.flush().await.unwrap();
        let none = timeout(Duration::from_millis(300), listener.accept()).await;
        assert!(none.is_err());
        assert_eq!(client.session_probe().peer_contact(), PeerContact::Silent);
    }
}
