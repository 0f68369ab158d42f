//! The part of GDB's remote protocol that changes what a program learns about its processor.
//!
//! A program that qemu starts with `-g SOCKET` waits before its first instruction. Its stack then has
//! the number of arguments, the arguments, the environment, and pairs of words from the kernel (the
//! auxiliary vector), one of which lists the instructions of the processor.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Time in which the emulator must create its socket.
const START: Duration = Duration::from_secs(60);
/// The number of the word that lists instructions (`AT_HWCAP`).
const INSTRUCTIONS: u64 = 16;
/// Its bits for floating point and vectors, which every 64-bit ARM has.
const BASE_INSTRUCTIONS: u64 = 0b11;
/// The position of the stack pointer among the registers, in bytes: after x0 to x30.
const STACK_POINTER: usize = 31 * 8;
/// Maximum number of words between the stack pointer and the word.
const MOST_WORDS: u64 = 100_000;

/// Connects to the emulator behind `socket`, and starts its program as on a processor with the base
/// instructions alone.
pub(super) fn hide_cryptographic_instructions(socket: &Path) -> Result<()> {
    let start = Instant::now();
    let stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(why) if start.elapsed() > START => return Err(why).context("no debugger"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut stub = GdbStub::new(stream)?;
    let registers = decode_hex(&stub.request("g")?)?;
    let stack = registers
        .get(STACK_POINTER..)
        .and_then(|rest| rest.first_chunk())
        .context("no stack pointer among the registers")?;
    let place = stub.place_of_instructions(u64::from_le_bytes(*stack))?;
    stub.write_word(place, BASE_INSTRUCTIONS)?;
    ensure!(
        stub.read_word(place)? == BASE_INSTRUCTIONS,
        "the word was not changed"
    );
    stub.request("D")?;
    Ok(())
}

struct GdbStub {
    input: BufReader<UnixStream>,
    output: UnixStream,
}

impl GdbStub {
    fn new(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(START))?;
        let input = BufReader::new(stream.try_clone()?);
        let output = stream;
        Ok(Self { input, output })
    }

    /// Returns the address of the word that lists instructions.
    fn place_of_instructions(&mut self, stack: u64) -> Result<u64> {
        let mut at = stack;
        let end = stack + MOST_WORDS * 8;
        // The arguments and the environment are lists of addresses that end with zero.
        at += 8;
        for _ in 0..2 {
            while self.read_word(at)? != 0 {
                at += 8;
                ensure!(at < end, "a list on the stack has no end");
            }
            at += 8;
        }
        loop {
            match self.read_word(at)? {
                INSTRUCTIONS => return Ok(at + 8),
                0 => bail!("the kernel's words do not list the instructions"),
                _ => at += 16,
            }
        }
    }

    fn read_word(&mut self, at: u64) -> Result<u64> {
        let bytes = decode_hex(&self.request(&format!("m{at:x},8"))?)?;
        let word = bytes.first_chunk().context("a short answer")?;
        Ok(u64::from_le_bytes(*word))
    }

    fn write_word(&mut self, at: u64, word: u64) -> Result<()> {
        let bytes = crate::dist::hex(&word.to_le_bytes());
        let answer = self.request(&format!("M{at:x},8:{bytes}"))?;
        ensure!(answer == "OK", "writing memory was answered `{answer}`");
        Ok(())
    }

    /// Sends a packet and returns the text of the answer.
    fn request(&mut self, text: &str) -> Result<String> {
        self.output.write_all(packet(text).as_bytes())?;
        // The acknowledgement comes first, then `$TEXT#SUM`.
        while self.read_byte()? != b'$' {}
        let mut answer = Vec::new();
        loop {
            match self.read_byte()? {
                b'#' => break,
                byte => answer.push(byte),
            }
        }
        self.read_byte()?;
        self.read_byte()?;
        // After the last answer the emulator may have closed the connection.
        let _ = self.output.write_all(b"+");
        Ok(String::from_utf8(answer)?)
    }

    fn read_byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

/// Returns a packet with its checksum.
fn packet(text: &str) -> String {
    let sum = text.bytes().fold(0, u8::wrapping_add);
    format!("${text}#{sum:02x}")
}

fn decode_hex(text: &str) -> Result<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.with_context(|| format!("not hexadecimal: {text}"))?;
    let (pairs, rest) = digits.as_chunks::<2>();
    ensure!(rest.is_empty(), "half a byte: {text}");
    Ok(pairs
        .iter()
        .map(|[high, low]| ((high << 4) | low) as u8)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_the_sum_of_their_bytes() {
        assert_eq!(packet("g"), "$g#67");
        assert_eq!(packet("mff,8"), "$mff,8#9d");
        assert_eq!(decode_hex("00fF10").unwrap(), [0, 255, 16]);
        assert!(decode_hex("0").is_err() && decode_hex("zz").is_err());
    }

    /// Answers like an emulator whose memory is `words`, from address 0x1000.
    fn serve(mut stream: UnixStream, mut words: Vec<u64>) -> Vec<u64> {
        let mut reader = GdbStub::new(stream.try_clone().unwrap()).unwrap();
        loop {
            while reader.read_byte().unwrap() != b'$' {}
            let mut text = String::new();
            loop {
                match reader.read_byte().unwrap() {
                    b'#' => break,
                    byte => text.push(char::from(byte)),
                }
            }
            let place = |text: &str| {
                let at = text[1..].split(',').next().unwrap();
                usize::try_from(u64::from_str_radix(at, 16).unwrap() - 0x1000).unwrap() / 8
            };
            let answer = match text.as_bytes()[0] {
                b'g' => crate::dist::hex(
                    &[[0; STACK_POINTER].as_slice(), &0x1000_u64.to_le_bytes()].concat(),
                ),
                b'm' => crate::dist::hex(&words[place(&text)].to_le_bytes()),
                b'M' => {
                    let bytes = decode_hex(text.split(':').nth(1).unwrap()).unwrap();
                    words[place(&text)] = u64::from_le_bytes(bytes.try_into().unwrap());
                    "OK".to_owned()
                }
                _ => {
                    stream
                        .write_all(format!("+{}", packet("OK")).as_bytes())
                        .unwrap();
                    return words;
                }
            };
            stream
                .write_all(format!("+{}", packet(&answer)).as_bytes())
                .unwrap();
        }
    }

    #[test]
    fn only_the_word_of_the_instructions_changes() {
        let path = std::env::temp_dir().join(format!("adit-gdb-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // One argument, two variables, then pairs.
        let words = vec![
            1,
            70,
            0,
            71,
            72,
            0,
            3,
            4,
            INSTRUCTIONS,
            0xFFFF,
            17,
            100,
            0,
            0,
        ];
        let before = words.clone();
        let served = thread::spawn(move || serve(listener.accept().unwrap().0, words));
        hide_cryptographic_instructions(&path).unwrap();
        let mut after = served.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(std::mem::replace(&mut after[9], 0xFFFF), BASE_INSTRUCTIONS);
        assert_eq!(after, before);
    }
}
