//! Access lists in their text form (SDDL): which accounts other than the owner, the system and the administrators have
//! rights.

/// The rights that an entry of an access list has, as bits.
const READ_DATA: u32 = 0x1;
const WRITE_DATA: u32 = 0x2;
const APPEND_DATA: u32 = 0x4;
const WRITE_EA: u32 = 0x10;
const WRITE_ATTRIBUTES: u32 = 0x100;
const DELETE: u32 = 0x1_0000;
const WRITE_DAC: u32 = 0x4_0000;
const WRITE_OWNER: u32 = 0x8_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// The rights to change a file, or who may.
pub(super) const CHANGE: u32 = WRITE_DATA
    | APPEND_DATA
    | WRITE_EA
    | WRITE_ATTRIBUTES
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_ALL
    | GENERIC_WRITE;
/// The rights to read a file or to change it.
pub(super) const READ_OR_CHANGE: u32 = CHANGE | READ_DATA | GENERIC_READ;

/// Accounts that can reach every file anyway: the system, the administrators, and the one that installs Windows.
const PRIVILEGED: [&str; 5] = [
    "SY",
    "BA",
    "S-1-5-18",
    "S-1-5-32-544",
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
];
/// The owner, without a name: `OWNER RIGHTS` and, in inherited entries, `CREATOR OWNER`.
const OWNER_ALIASES: [&str; 4] = ["OW", "CO", "S-1-3-4", "S-1-3-0"];

/// The owner and the access list of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AccessList<'a> {
    owner: &'a str,
    /// The entries that allow; `None` if there is no list, which allows everything to everyone.
    entries: Option<Vec<(u32, &'a str)>>,
}

impl<'a> AccessList<'a> {
    /// Parses `O:OWNER…D:FLAGS(ENTRY)…`; returns `None` if the text is not of this form, or if it has an entry with a
    /// condition.
    pub(super) fn parse(sddl: &'a str) -> Option<Self> {
        let rest = sddl.strip_prefix("O:")?;
        let (owner, dacl) = rest.split_once("D:")?;
        // The group, if it is present.
        let owner = owner.split_once("G:").map_or(owner, |(owner, _)| owner);
        let (flags, mut list) = dacl.split_at(dacl.find('(').unwrap_or(dacl.len()));
        if flags.contains("NO_ACCESS_CONTROL") {
            return Some(Self {
                owner,
                entries: None,
            });
        }
        let mut entries = Vec::new();
        while !list.is_empty() {
            let (entry, rest) = list.strip_prefix('(')?.split_once(')')?;
            list = rest;
            let fields: Vec<&str> = entry.split(';').collect();
            let [kind, flags, rights, _, _, account, ..] = *fields else {
                return None;
            };
            // An entry with this flag applies to the files of a folder alone.
            let only_inherited = flags
                .as_bytes()
                .chunks(2)
                .any(|flag| flag.eq_ignore_ascii_case(b"IO"));
            // Entries that deny take nothing away from the safety of the file.
            let allows = matches!(kind, "A" | "OA");
            if allows && !only_inherited {
                entries.push((parse_rights(rights)?, account));
            }
        }
        Some(Self {
            owner,
            entries: Some(entries),
        })
    }

    /// Returns the owner's SID or its abbreviation.
    pub(super) const fn owner(&self) -> &'a str {
        self.owner
    }

    /// Returns true if the file belongs to `user` or to an account that can reach every file.
    pub(super) fn is_owned_by(&self, user: &str) -> bool {
        self.owner == user || PRIVILEGED.contains(&self.owner)
    }

    /// Returns an account that has some of these rights and is neither `user`, nor the owner, nor one that can reach every
    /// file.
    pub(super) fn other_with(&self, rights: u32, user: &str) -> Option<&'a str> {
        let Some(entries) = &self.entries else {
            return Some("WD");
        };
        let own = |account: &str| {
            account == user
                || account == self.owner
                || PRIVILEGED.contains(&account)
                || OWNER_ALIASES.contains(&account)
        };
        entries
            .iter()
            .find(|(allowed, account)| allowed & rights != 0 && !own(account))
            .map(|(_, account)| *account)
    }
}

/// Parses the rights of an entry: a number, or abbreviations of two letters.
fn parse_rights(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return text.parse().ok();
    }
    let mut rights = 0;
    for word in text.as_bytes().chunks(2) {
        rights |= match word {
            b"GA" => GENERIC_ALL,
            b"GW" => GENERIC_WRITE,
            b"GR" => GENERIC_READ,
            b"GX" => 0x2000_0000,
            b"FA" => 0x1f_01ff,
            b"FR" => 0x12_0089,
            b"FW" => 0x12_0116,
            b"FX" => 0x12_00a0,
            b"RC" => 0x2_0000,
            b"SD" => DELETE,
            b"WD" => WRITE_DAC,
            b"WO" => WRITE_OWNER,
            // The rights of directory services are the lowest bits, which mean others for files.
            b"CC" => 0x1,
            b"DC" => 0x2,
            b"LC" => 0x4,
            b"SW" => 0x8,
            b"RP" => 0x10,
            b"WP" => 0x20,
            b"DT" => 0x40,
            b"LO" => 0x80,
            b"CR" => 0x100,
            _ => return None,
        };
    }
    Some(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: &str = "S-1-5-21-1-2-3-1001";

    fn other(dacl: &str, rights: u32) -> Option<String> {
        let sddl = format!("O:{ME}{dacl}");
        let list = AccessList::parse(&sddl).unwrap();
        list.other_with(rights, ME).map(str::to_owned)
    }

    #[test]
    fn a_private_file_has_no_other_account() {
        for dacl in [
            format!("D:P(A;;FA;;;{ME})(A;;FA;;;SY)(A;;FA;;;BA)"),
            format!("D:AI(A;ID;FA;;;SY)(A;ID;FA;;;S-1-5-32-544)(A;ID;FA;;;{ME})"),
            "D:(A;;FA;;;OW)(D;;FA;;;WD)(A;OICIIO;GA;;;WD)".to_owned(),
            format!("G:BUD:P(A;;FA;;;{ME})"),
            "D:P".to_owned(),
        ] {
            assert_eq!(other(&dacl, READ_OR_CHANGE), None, "{dacl}");
        }
    }

    #[test]
    fn others_are_found_by_what_they_may_do() {
        for (entry, reads, writes) in [
            ("(A;;FR;;;WD)", true, false),
            ("(A;;FA;;;BU)", true, true),
            ("(A;;0x1200a9;;;BU)", true, false),
            ("(A;ID;0x1301bf;;;AU)", true, true),
            ("(A;;GA;;;WD)", true, true),
            ("(A;;GR;;;WD)", true, false),
            ("(A;;GW;;;WD)", true, true),
            ("(A;;WD;;;WD)", true, true),
            ("(A;;SD;;;S-1-5-21-1-2-3-1002)", true, true),
            ("(A;;FX;;;WD)", false, false),
            ("(A;;CCSWRPLO;;;BU)", true, true),
        ] {
            let dacl = format!("D:P(A;;FA;;;{ME}){entry}");
            assert_eq!(other(&dacl, READ_OR_CHANGE).is_some(), reads, "{entry}");
            assert_eq!(other(&dacl, CHANGE).is_some(), writes, "{entry}");
        }
        assert_eq!(other("D:NO_ACCESS_CONTROL", CHANGE).unwrap(), "WD");
    }

    #[test]
    fn owners_and_texts_of_another_form() {
        for (owner, mine) in [(ME, true), ("BA", true), ("SY", true), ("BU", false)] {
            let sddl = format!("O:{owner}D:P");
            let list = AccessList::parse(&sddl).unwrap();
            assert_eq!((list.owner(), list.is_owned_by(ME)), (owner, mine));
        }
        for odd in [
            "",
            "O:",
            "D:P",
            "O:BAD:P(A;;FA)",
            "O:BAD:P(A;;QQ;;;WD)",
            "O:BAD:P(A;;FA;;;WD",
            "O:BAD:P(XA;;FR;;;BU;(x == 1))",
        ] {
            assert_eq!(AccessList::parse(odd), None, "{odd}");
        }
    }
}
