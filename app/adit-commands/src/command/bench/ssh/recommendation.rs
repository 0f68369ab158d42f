//! The recommended cipher and MAC, and warnings about the server.

use adit_ssh_proto::algorithm::{Cipher, Mac};

use super::cost::CipherCost;
use super::offer::ServerOffer;

/// Minimum length of a tag without a warning, in bits.
const LONG_TAG: usize = 128;

/// A recommendation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CipherRecommendation {
    /// The cheapest pair that is not weak.
    pub(super) take: Option<CipherCost>,
    pub(super) warnings: Vec<String>,
}

impl CipherRecommendation {
    /// Chooses from the costs. A shorter tag is only recommended if there is no other, even if it is
    /// cheaper. A MAC over the plaintext (without `-etm`) is never recommended: the processing before
    /// its check has been used to attack SSH.
    pub(super) fn from_offer_and_costs(offer: &ServerOffer, costs: &[CipherCost]) -> Self {
        let cheapest = |fits: &dyn Fn(&CipherCost) -> bool| {
            let fine = |cost: &&CipherCost| {
                let exposed = cost.cipher == Cipher::ChaCha20Poly1305 && !offer.strict;
                let weak = |mac: Mac| mac.is_legacy() || !mac.is_etm();
                !exposed && !cost.mac.is_some_and(weak) && fits(cost)
            };
            let found = costs.iter().filter(fine);
            found
                .min_by(|one, other| one.sum().total_cmp(&other.sum()))
                .copied()
        };
        let long = cheapest(&|cost| cost.tag_bits() >= LONG_TAG);
        let take = long.or_else(|| cheapest(&|_| true));
        let mut warnings = Vec::new();
        if !offer.strict {
            warnings.push(
                                "no strict key exchange: with chacha20-poly1305 and the CBC ciphers, an attacker on \
                                 the path can remove the first messages unnoticed (CVE-2023-48795)"
                    .to_owned(),
            );
        }
        let old = outdated_algorithms(offer);
        if !old.is_empty() {
            warnings.push(format!(
                "the server offers old algorithms: {}",
                old.join(", ")
            ));
        }
        if let Some(cost) = take.filter(|cost| cost.tag_bits() < LONG_TAG) {
            warnings.push(format!(
                "the tags of {} have {} bits, and the server offers nothing with longer tags: one \
                 forged packet in 2^{} is accepted",
                cost.mac.map_or("it", Mac::name),
                cost.tag_bits(),
                cost.tag_bits(),
            ));
        }
        if take.is_none() {
            warnings.push(
                                "nothing that the server offers is supported by adit and not weak: a cipher with its own \
                                 tag, or a MAC with -etm"
                    .to_owned(),
            );
        }
        Self { take, warnings }
    }
}

/// Returns the algorithms that a current server should not offer.
fn outdated_algorithms(offer: &ServerOffer) -> Vec<&str> {
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
    use super::super::offer::DirectionalNames;
    use super::*;

    pub(in super::super) fn offer(strict: bool, macs: &[&str]) -> ServerOffer {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let both = |list: &[&str]| DirectionalNames {
            to_server: names(list),
            to_client: names(list),
        };
        ServerOffer {
            version: "SSH-2.0-x".to_owned(),
            kex: names(&["curve25519-sha256", "diffie-hellman-group1-sha1"]),
            host_keys: names(&["ssh-ed25519", "ssh-dss"]),
            ciphers: both(&["aes128-ctr", "chacha20-poly1305@openssh.com", "3des-cbc"]),
            macs: both(macs),
            compression: both(&["none"]),
            strict,
        }
    }

    const fn cost(cipher: Cipher, mac: Option<Mac>, send: f64) -> CipherCost {
        CipherCost {
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
        let strict = CipherRecommendation::from_offer_and_costs(
            &offer(true, &["hmac-sha1-etm@openssh.com"]),
            &costs,
        );
        assert_eq!(strict.take, Some(costs[1]));
        let [old] = &strict.warnings[..] else {
            panic!("{:?}", strict.warnings);
        };
        let names = "diffie-hellman-group1-sha1, 3des-cbc, hmac-sha1-etm@openssh.com, ssh-dss";
        assert!(old.ends_with(names), "{old}");

        let exposed = CipherRecommendation::from_offer_and_costs(&offer(false, &[]), &costs);
        assert_eq!(
            exposed.take,
            Some(costs[3]),
            "the longer tag, though it costs more"
        );
        let told = exposed.warnings.join("\n");
        assert!(
            told.contains("CVE-2023-48795") && !told.contains("64 bits"),
            "{told}"
        );

        let none = CipherRecommendation::from_offer_and_costs(&offer(false, &[]), &costs[..2]);
        assert_eq!(none.take, None);
        assert!(none.warnings.iter().any(|line| line.contains("nothing")));
    }

    #[test]
    fn a_mac_without_etm_is_not_advised_and_a_short_tag_only_without_another() {
        let costs = [
            cost(Cipher::Aes128Ctr, Some(Mac::Umac128), 0.1),
            cost(Cipher::Aes128Ctr, Some(Mac::HmacSha256), 0.1),
            cost(Cipher::Aes128Ctr, Some(Mac::Umac64Etm), 0.3),
            cost(Cipher::Aes128Ctr, Some(Mac::HmacSha256Etm), 9.0),
        ];
        let take = |costs: &[CipherCost]| {
            CipherRecommendation::from_offer_and_costs(&offer(true, &[]), costs)
        };
        assert_eq!(take(&costs).take, Some(costs[3]));
        let short = take(&costs[..3]);
        assert_eq!(short.take, Some(costs[2]));
        assert!(short.warnings.join("\n").contains("64 bits"));
        assert_eq!(take(&costs[..2]).take, None);
    }
}
