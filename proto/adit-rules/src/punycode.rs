//! Labels of internationalized names in ASCII (RFC 3492).

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;

/// Maximum characters of a label that is converted: none that is longer fits into 63 bytes.
const MAX_CHARS: usize = 63;

/// Returns the label in lower case as `xn--…`, or `None` if it is too long or has a character that no name
/// can have.
pub(crate) fn encode_label(label: &str) -> Option<Vec<u8>> {
    let lower: Vec<char> = label
        .chars()
        .flat_map(char::to_lowercase)
        .take(MAX_CHARS + 1)
        .collect();
    let wrong = |c: &char| {
        c.is_control()
            || c.is_whitespace()
            || (c.is_ascii() && !matches!(c, 'a'..='z' | '0'..='9' | '-' | '_'))
    };
    if lower.len() > MAX_CHARS || lower.iter().any(wrong) {
        return None;
    }
    let mut out = b"xn--".to_vec();
    let basic = lower.iter().filter(|c| c.is_ascii());
    out.extend(basic.filter_map(|c| u8::try_from(*c).ok()));
    let basic = u32::try_from(out.len() - 4).ok()?;
    if basic > 0 {
        out.push(b'-');
    }
    let total = u32::try_from(lower.len()).ok()?;
    let (mut n, mut delta, mut bias, mut handled) = (INITIAL_N, 0_u32, INITIAL_BIAS, basic);
    while handled < total {
        let next = lower
            .iter()
            .map(|c| u32::from(*c))
            .filter(|c| *c >= n)
            .min()?;
        delta = delta.checked_add((next - n).checked_mul(handled + 1)?)?;
        n = next;
        for c in lower.iter().map(|c| u32::from(*c)) {
            if c < n {
                delta = delta.checked_add(1)?;
            }
            if c == n {
                push_number(delta, bias, &mut out);
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(out)
}

/// Appends a number in digits of variable length.
fn push_number(number: u32, bias: u32, out: &mut Vec<u8>) {
    let mut rest = number;
    for k in (BASE..).step_by(BASE as usize) {
        let t = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if rest < t {
            break;
        }
        out.push(digit(t + (rest - t) % (BASE - t)));
        rest = (rest - t) / (BASE - t);
    }
    out.push(digit(rest));
}

fn digit(value: u32) -> u8 {
    let value = adit_wire::narrow_int::<u8>(value);
    if value < 26 {
        b'a' + value
    } else {
        b'0' + value.saturating_sub(26)
    }
}

fn adapt(delta: u32, points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > (BASE - T_MIN) * T_MAX / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_ascii() {
        // The last three are of RFC 3492, section 7.1.
        for (label, expected) in [
            ("bücher", "xn--bcher-kva"),
            ("BÜCHER", "xn--bcher-kva"),
            ("例え", "xn--r8jz45g"),
            ("пример", "xn--e1afmkfd"),
            ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
            ("3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"),
            ("ひとつ屋根の下2", "xn--2-u9tlzr9756bt3uc0v"),
        ] {
            let found = encode_label(label).unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), expected);
        }
        assert_eq!(encode_label("ü b"), None);
        assert_eq!(encode_label(&"ü".repeat(64)), None);
    }
}
