//! Sessions with keys of their own: found by name, wherever their packets come from.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_crypto::packet::session::{Role, SessionId};
use adit_wire::{Broken, Time};

use super::route::Route;
use super::session::Session;
use super::table::{Table, Tally};
use crate::newcomers::{Met, Newcomer};

impl Table {
    /// Takes in a packet that is sealed with the keys of a session.
    pub(super) fn sealed(
        &mut self,
        packet: &mut [u8],
        from: SocketAddr,
        now: Time,
        tally: &mut Tally,
    ) {
        let role = match self.newcomers {
            Some(_) => Role::Client,
            None => Role::Server,
        };
        let key = self.socket.settings.session.as_ref();
        let Some(head) = key.and_then(|key| key.head(role, packet)) else {
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
            return match session.open(head, packet, from) {
                Ok(range) => self.opened(&session, packet.get(range), now, tally),
                // A network may double.
                Err(Broken::Replayed) => {}
                Err(_) => {
                    tally.refused += 1;
                    if session.peer() == from {
                        self.socket.refuse();
                    }
                }
            };
        }
        let Some(newcomers) = &mut self.newcomers else {
            return;
        };
        match newcomers.meet(head, packet, now) {
            Met::Foreign => tally.refused += 1,
            Met::Answer(answer) => {
                // Lost like any other: the client asks again.
                let _ = self.socket.udp.try_send(&answer[..], from);
            }
            Met::Fresh(one, range) => {
                let packet = packet.get(range).unwrap_or_default();
                self.born(id, one, packet, from, now, tally);
            }
        }
    }

    /// Hands a packet that has been opened to its session.
    fn opened(
        &mut self,
        session: &Arc<Session>,
        packet: Option<&[u8]>,
        now: Time,
        tally: &mut Tally,
    ) {
        let packet = packet.unwrap_or_default();
        match Route::of(packet) {
            _ if packet.is_empty() => {}
            Route::Oob => tally.oob += 1,
            Route::Unknown => tally.malformed += 1,
            route => {
                if session.input(route, packet, now) {
                    self.touched.push(session.slot);
                }
            }
        }
    }

    /// A client that is no recording begins a session, with what it has said until now.
    fn born(
        &mut self,
        id: SessionId,
        mut one: Newcomer,
        packet: &[u8],
        from: SocketAddr,
        now: Time,
        tally: &mut Tally,
    ) {
        one.early.push(packet.to_vec());
        let conv = one.early.iter().find_map(|packet| match Route::of(packet) {
            Route::Bare(_, opening) | Route::Data(_, Some(opening)) => Some(opening.conv),
            _ => None,
        });
        let Some(conv) = conv else {
            // What names the conversation was lost, and comes again.
            one.early.pop();
            if let Some(newcomers) = &mut self.newcomers {
                newcomers.restore(id, one);
            }
            return;
        };
        let sessions = self.slots.len() - self.free.len();
        let accept = self
            .accept
            .clone()
            .filter(|_| sessions < self.socket.settings.sessions);
        let Some(permit) = accept.and_then(|accept| accept.try_reserve_owned().ok()) else {
            return;
        };
        let Newcomer { session, early, .. } = one;
        let stream = self.insert(from, conv, true, Some(session));
        let session = stream.raw().session();
        permit.send(stream);
        self.ids.insert(id, session.slot);
        for packet in &early {
            self.opened(&session, Some(packet), now, tally);
        }
    }
}
