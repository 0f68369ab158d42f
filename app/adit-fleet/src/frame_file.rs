//! Files of checked frames that are extended, and replaced as a whole when they have become long. A file that was cut
//! anywhere has the frames before the cut.
//!
//! ```text
//! magic (8) || { length (4) || CRC-32C of length and content (4) || content }*
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_net::persistent_file::write_atomically;
use adit_wire::{Reader, u64_from};

/// Length of the magic bytes.
const MAGIC: usize = 8;
/// Maximum length of a frame's content, in bytes.
pub(crate) const MAX_FRAME: usize = 256 << 20;
/// Maximum length of a file, in bytes.
const MAX_FILE: u64 = 1 << 30;
/// Interval between attempts to lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Returns the frames of a file's content, and the length of what they take.
///
/// `None` if the content begins with other magic bytes: it is another file.
pub(crate) fn read_frames<'a>(
    magic: &[u8; MAGIC],
    content: &'a [u8],
) -> Option<(Vec<&'a [u8]>, usize)> {
    let mut reader = Reader::new(content);
    match reader.array::<MAGIC>() {
        Ok(found) if found == *magic => {}
        Ok(_) => return None,
        Err(_) if magic.starts_with(content) => return Some((Vec::new(), 0)),
        Err(_) => return None,
    }
    let (frames, len) = read_more_frames(content.get(MAGIC..).unwrap_or_default());
    Some((frames, MAGIC + len))
}

/// Returns the frames at the start of `content`, and their length.
fn read_more_frames(content: &[u8]) -> (Vec<&[u8]>, usize) {
    let mut reader = Reader::new(content);
    let (mut frames, mut len) = (Vec::new(), 0);
    while let Some(frame) = read_frame(&mut reader) {
        frames.push(frame);
        len = reader.consumed();
    }
    (frames, len)
}

fn read_frame<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let len = reader.array::<4>().ok()?;
    let check = u32::from_be_bytes(reader.array().ok()?);
    let size = usize::try_from(u32::from_be_bytes(len)).ok()?;
    let frame = reader.take(size).ok()?;
    (check_of(len, frame) == check).then_some(frame)
}

fn check_of(len: [u8; 4], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&len), content)
}

/// Returns a frame with this content.
fn to_frame(content: &[u8]) -> io::Result<Vec<u8>> {
    let len = u32::try_from(content.len())
        .ok()
        .filter(|_| content.len() <= MAX_FRAME);
    let len = len.ok_or(io::ErrorKind::FileTooLarge)?.to_be_bytes();
    Ok([&len, &check_of(len, content).to_be_bytes(), content].concat())
}

/// An open file of frames.
#[derive(Debug)]
pub(crate) struct FrameFile {
    path: PathBuf,
    magic: [u8; MAGIC],
    file: File,
    /// The end of the last frame that was read or written.
    end: u64,
    /// The length after the file was last replaced or opened.
    base: u64,
}

/// An opened file, and its frames.
#[derive(Debug)]
pub(crate) struct OpenedFrames {
    pub(crate) file: FrameFile,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl FrameFile {
    /// Opens and locks a file, or creates one for its user alone. What follows the last good frame is removed.
    pub(crate) fn open(
        path: &Path,
        magic: [u8; MAGIC],
        wait: Duration,
    ) -> io::Result<OpenedFrames> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder)?;
        }
        let since = Instant::now();
        let file = loop {
            let file = open_private(path)?;
            lock(&file, wait.saturating_sub(since.elapsed()))?;
            if is_at(&file, path)? {
                break file;
            }
        };
        let mut opened = Self {
            path: path.to_owned(),
            magic,
            file,
            end: 0,
            base: 0,
        };
        let content = opened.read_from(0)?;
        let Some((frames, len)) = read_frames(&magic, &content) else {
            let why = "this is a file of something else";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        };
        let frames = frames.into_iter().map(<[u8]>::to_vec).collect();
        opened.end = u64_from(len);
        if len == 0 {
            opened.write_at_end(&magic)?;
        }
        opened.file.set_len(opened.end)?;
        opened.base = opened.end;
        Ok(OpenedFrames {
            file: opened,
            frames,
        })
    }

    /// Appends a frame. It is there as a whole, or not at all.
    pub(crate) fn append(&mut self, content: &[u8]) -> io::Result<()> {
        self.write_at_end(&to_frame(content)?)
    }

    fn write_at_end(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(why) = self.file.write_all(bytes) {
            // The next frame would follow half of this one; if this fails, too, it is cut off when the file is read.
            let _ = self.file.set_len(self.end);
            return Err(why);
        }
        self.end = self.end.saturating_add(u64_from(bytes.len()));
        Ok(())
    }

    /// Replaces the file by one with this frame alone. The lock is kept.
    pub(crate) fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        let whole = [self.magic.as_slice(), &to_frame(content)?].concat();
        write_atomically(&self.path, &whole)?;
        let file = open_private(&self.path)?;
        lock(&file, Duration::from_secs(1))?;
        self.file = file;
        self.end = u64_from(whole.len());
        self.base = self.end;
        Ok(())
    }

    /// Returns true if the file has become several times as long as it was.
    pub(crate) const fn is_long(&self) -> bool {
        self.end > self.base.saturating_mul(3).saturating_add(1 << 20)
    }

    /// Removes the lock, until [`Self::lock_again`].
    pub(crate) fn unlock(&self) {
        // The system removes it with the file.
        let _ = self.file.unlock();
    }

    /// Locks the file again, and returns the frames that other processes have appended; `None` if they have replaced
    /// it.
    pub(crate) fn lock_again(&mut self, wait: Duration) -> io::Result<Option<Vec<Vec<u8>>>> {
        lock(&self.file, wait)?;
        if !is_at(&self.file, &self.path)? {
            return Ok(None);
        }
        let len = self.file.metadata()?.len();
        if len < self.end {
            return Ok(None);
        }
        if len == self.end {
            return Ok(Some(Vec::new()));
        }
        let content = self.read_from(self.end)?;
        let (frames, read) = read_more_frames(&content);
        let frames = frames.into_iter().map(<[u8]>::to_vec).collect();
        self.end = self.end.saturating_add(u64_from(read));
        // A process that ended during a write.
        self.file.set_len(self.end)?;
        Ok(Some(frames))
    }

    /// Returns true if another process has changed the file since it was last read here. It need not be locked.
    pub(crate) fn has_changed(&self) -> bool {
        let len = self.file.metadata().map(|about| about.len());
        len.ok() != Some(self.end) || !is_at(&self.file, &self.path).unwrap_or(false)
    }

    fn read_from(&mut self, start: u64) -> io::Result<Vec<u8>> {
        let len = self.file.metadata()?.len().saturating_sub(start);
        if len > MAX_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.file.seek(SeekFrom::Start(start))?;
        let mut content = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        (&self.file).take(len).read_to_end(&mut content)?;
        Ok(content)
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns true if `path` still leads to `file`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (own, found) = (file.metadata()?, std::fs::metadata(path));
        match found {
            Ok(found) => Ok((own.dev(), own.ino()) == (found.dev(), found.ino())),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(why),
        }
    }
    // An open file cannot be replaced there.
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        Ok(true)
    }
}

/// Waits for the lock of a file.
fn lock(file: &File, wait: Duration) -> io::Result<()> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < wait => sleep(LOCK_RETRY_INTERVAL),
            Err(TryLockError::WouldBlock) => {
                let why = "another process uses this file";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            Err(TryLockError::Error(why)) => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: [u8; 8] = *b"adit-tst";

    fn path(test: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("adit-frames-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder.join("deep").join("file")
    }

    fn open(path: &Path) -> OpenedFrames {
        FrameFile::open(path, TEST, Duration::ZERO).unwrap()
    }

    #[test]
    fn a_file_that_was_cut_anywhere_has_the_frames_before() {
        let path = path("cut");
        let mut opened = open(&path);
        let contents: [&[u8]; 4] = [b"one", b"", b"three", &[0; 100]];
        let mut ends = vec![opened.file.end];
        for content in contents {
            opened.file.append(content).unwrap();
            ends.push(opened.file.end);
        }
        drop(opened);
        let whole = std::fs::read(&path).unwrap();
        for len in 0..=whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let mut opened = open(&path);
            let expected = ends
                .iter()
                .skip(1)
                .filter(|end| **end <= len as u64)
                .count();
            assert_eq!(opened.frames, contents[..expected], "cut at {len}");
            opened.file.append(b"after").unwrap();
            drop(opened);
            assert_eq!(open(&path).frames.last().unwrap(), b"after", "cut at {len}");
        }
        std::fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_changed_bit_ends_the_file() {
        let path = path("bits");
        let mut opened = open(&path);
        opened.file.append(b"first").unwrap();
        opened.file.append(b"second").unwrap();
        drop(opened);
        let whole = std::fs::read(&path).unwrap();
        for index in MAGIC..whole.len() {
            let mut changed = whole.clone();
            changed[index] ^= 0x10;
            let (frames, _) = read_frames(&TEST, &changed).unwrap();
            let good: [&[u8]; 2] = [b"first", b"second"];
            assert!(
                frames.len() < 2 && frames == good[..frames.len()],
                "{index}"
            );
        }
        std::fs::write(&path, b"something else").unwrap();
        FrameFile::open(&path, TEST, Duration::ZERO).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"something else");
        std::fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn processes_see_each_others_frames() {
        let path = path("two");
        let mut one = open(&path).file;
        let busy = FrameFile::open(&path, TEST, Duration::from_millis(20)).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        one.append(b"1").unwrap();
        one.unlock();
        let mut two = open(&path);
        assert_eq!(two.frames, [b"1"]);
        two.file.append(b"2").unwrap();
        two.file.unlock();
        assert!(one.has_changed());
        assert_eq!(
            one.lock_again(Duration::ZERO).unwrap(),
            Some(vec![b"2".to_vec()])
        );
        assert!(!one.has_changed());
        one.replace(b"all").unwrap();
        one.unlock();
        assert!(two.file.has_changed());
        assert_eq!(two.file.lock_again(Duration::ZERO).unwrap(), None);
        drop(two);
        assert_eq!(open(&path).frames, [b"all"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
    }
}
