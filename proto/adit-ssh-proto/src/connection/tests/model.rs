//! Two ends that perform arbitrary actions in any order: data read from a channel is the data
//! written to it, and nothing is left in the end.

mod end;

use proptest::prelude::*;

use self::end::End;
use super::*;

/// Next action of an end's application.
#[derive(Debug, Clone)]
enum Act {
    Open,
    Answer {
        channel: usize,
        yes: bool,
    },
    Write {
        channel: usize,
        stderr: bool,
        len: usize,
    },
    Read {
        channel: usize,
        len: usize,
    },
    Eof(usize),
    Close(usize),
    Ask {
        channel: usize,
        want: bool,
    },
    Reply {
        first: bool,
        ok: bool,
    },
    AskGlobal,
    Turn,
    Carry(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let channel = || 0usize..6;
    prop_oneof![
        2 => Just(Act::Open),
        3 => (channel(), prop::bool::weighted(0.8))
            .prop_map(|(channel, yes)| Act::Answer { channel, yes }),
        8 => (channel(), any::<bool>(), 1usize..300)
            .prop_map(|(channel, stderr, len)| Act::Write { channel, stderr, len }),
        8 => (channel(), 1usize..300).prop_map(|(channel, len)| Act::Read { channel, len }),
        1 => channel().prop_map(Act::Eof),
        1 => channel().prop_map(Act::Close),
        2 => (channel(), any::<bool>()).prop_map(|(channel, want)| Act::Ask { channel, want }),
        2 => any::<(bool, bool)>().prop_map(|(first, ok)| Act::Reply { first, ok }),
        1 => Just(Act::AskGlobal),
        2 => Just(Act::Turn),
        12 => (1usize..20).prop_map(Act::Carry),
    ]
}

/// Both ends finish everything: answers, reads, closes.
fn finish(ends: &mut [End; 2]) {
    for round in 0..50 {
        for n in 0..2 {
            let [a, b] = &mut *ends;
            let (end, peer) = if n == 0 { (a, b) } else { (b, a) };
            end.flush(&mut peer.wire);
            while end.take_one(Time(round)) {}
            for duty in core::mem::take(&mut end.duties) {
                end.machine.answer_request(duty, true);
            }
            for id in core::mem::take(&mut end.wanted) {
                end.machine.confirm_open(id).unwrap();
                end.lines.get_mut(&id).unwrap().open = true;
            }
            let ids: Vec<ChannelId> = end.lines.keys().copied().collect();
            for id in ids {
                end.read(id, usize::MAX, Time(round));
                if round > 5 && end.lines.contains_key(&id) {
                    end.close(id);
                }
            }
        }
    }
    for end in ends {
        assert!(end.lines.is_empty() && end.expected.is_empty() && end.wire.is_empty());
        assert_eq!(
            (end.machine.channel_count(), end.machine.budget.given()),
            (0, 0)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn two_ends_agree(
        windows in [1u32..400, 1u32..400],
        acts in proptest::collection::vec((any::<bool>(), act()), 1..400),
    ) {
        let [client, server] = windows;
        let mut ends = [End::new(true, client), End::new(false, server)];
        for (n, (client, act)) in (0u64..).zip(&acts) {
            let [a, b] = &mut ends;
            let (end, peer) = if *client { (a, b) } else { (b, a) };
            end.act(act, Time(n * 10), &mut peer.wire);
        }
        finish(&mut ends);
    }
}
