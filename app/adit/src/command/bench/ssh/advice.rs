//! Which cipher and MAC to take, and what a user should know about the server.

use adit_ssh::algorithm::{Cipher, Mac};

use super::cost::Cost;
use super::look::Offer;

/// The shortest tag that needs no word about it, in bits.
const LONG_TAG: usize = 128;

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Advice {
    /// The cheapest that is not weak.
    pub(super) take: Option<Cost>,
    /// The cheapest with tags of 128 bits and more, if that is another one.
    pub(super) long_tag: Option<Cost>,
    pub(super) warnings: Vec<String>,
}

impl Advice {
    pub(super) fn new(offer: &Offer, costs: &[Cost]) -> Self {
        let cheapest = |fits: &dyn Fn(&Cost) -> bool| {
            let fine = |cost: &&Cost| {
                let exposed = cost.cipher == Cipher::ChaCha20Poly1305 && !offer.strict;
                !exposed && !cost.mac.is_some_and(is_old) && fits(cost)
            };
            let found = costs.iter().filter(fine);
            found
                .min_by(|one, other| one.sum().total_cmp(&other.sum()))
                .copied()
        };
        let take = cheapest(&|_| true);
        let short = take.filter(|cost| cost.tag_bits() < LONG_TAG);
        let long_tag = short.and_then(|_| cheapest(&|cost| cost.tag_bits() >= LONG_TAG));
        let mut warnings = Vec::new();
        if !offer.strict {
            warnings.push(
                "no strict key exchange: with chacha20-poly1305 and the CBC ciphers somebody in \
                 between can cut off the first messages unseen (CVE-2023-48795)"
                    .to_owned(),
            );
        }
        let old = old_names(offer);
        if !old.is_empty() {
            warnings.push(format!("old algorithms are offered: {}", old.join(", ")));
        }
        if let Some(cost) = short {
            warnings.push(format!(
                "the tags of {} have {} bits: one forged packet in 2^{} gets through",
                cost.mac.map_or("it", Mac::name),
                cost.tag_bits(),
                cost.tag_bits(),
            ));
        }
        if take.is_none() {
            warnings.push("nothing that is offered is both known here and not weak".to_owned());
        }
        Self {
            take,
            long_tag,
            warnings,
        }
    }
}

/// SHA-1 is no way to begin anything new.
const fn is_old(mac: Mac) -> bool {
    matches!(mac, Mac::HmacSha1 | Mac::HmacSha1Etm)
}

/// Names that a server of today does not offer.
fn old_names(offer: &Offer) -> Vec<&str> {
    let old = |name: &&str| {
        let is = |word| name.contains(word);
        is("-sha1") || is("-md5") || is("-cbc") || is("-96") || is("arcfour") || is("ripemd")
    };
    let keys = offer.host_keys.iter().map(String::as_str);
    let keys = keys.filter(|name| matches!(*name, "ssh-rsa" | "ssh-dss"));
    let others = offer.kex.iter().map(String::as_str);
    let others = others.chain(offer.ciphers.common());
    let mut found: Vec<&str> = others.chain(offer.macs.common()).filter(old).collect();
    found.extend(keys);
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::look::Both;
    use super::*;

    pub(in super::super) fn offer(strict: bool, macs: &[&str]) -> Offer {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let both = |list: &[&str]| Both {
            to_server: names(list),
            to_client: names(list),
        };
        Offer {
            version: "SSH-2.0-x".to_owned(),
            kex: names(&["curve25519-sha256", "diffie-hellman-group1-sha1"]),
            host_keys: names(&["ssh-ed25519", "ssh-dss"]),
            ciphers: both(&["aes128-ctr", "chacha20-poly1305@openssh.com", "3des-cbc"]),
            macs: both(macs),
            compression: both(&["none"]),
            strict,
        }
    }

    const fn cost(cipher: Cipher, mac: Option<Mac>, send: f64) -> Cost {
        Cost {
            cipher,
            mac,
            send,
            receive: 1.0,
        }
    }

    #[test]
    fn the_cheapest_that_is_not_weak() {
        let costs = [
            cost(Cipher::Aes128Ctr, Some(Mac::HmacSha1Etm), 0.1),
            cost(Cipher::ChaCha20Poly1305, None, 0.2),
            cost(Cipher::Aes128Ctr, Some(Mac::Umac64Etm), 0.3),
            cost(Cipher::Aes128Ctr, Some(Mac::Umac128Etm), 0.4),
        ];
        let strict = Advice::new(&offer(true, &["hmac-sha1-etm@openssh.com"]), &costs);
        assert_eq!((strict.take, strict.long_tag), (Some(costs[1]), None));
        let [old] = &strict.warnings[..] else {
            panic!("{:?}", strict.warnings);
        };
        let names = "diffie-hellman-group1-sha1, 3des-cbc, hmac-sha1-etm@openssh.com, ssh-dss";
        assert!(old.ends_with(names), "{old}");

        let exposed = Advice::new(&offer(false, &[]), &costs);
        assert_eq!(exposed.take, Some(costs[2]));
        assert_eq!(exposed.long_tag, Some(costs[3]));
        let told = exposed.warnings.join("\n");
        assert!(
            told.contains("CVE-2023-48795") && told.contains("64 bits"),
            "{told}"
        );

        let none = Advice::new(&offer(false, &[]), &costs[..2]);
        assert_eq!((none.take, none.long_tag), (None, None));
        assert!(none.warnings.iter().any(|line| line.contains("nothing")));
    }
}
