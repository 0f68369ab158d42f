//! Requests and their answers, for files of a temporary directory.

mod confinement;
mod files;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use adit_ssh_proto::sftp::{
    ExtendedRequest, Extension, FileAttrs, FileType, FrameReader, OpenFlags, OwnerIds, OwnerNames,
    SftpClient, SftpReply, SftpRequest, SftpStatus, StatVfs,
};

use super::drive::execute;
use super::session::Session;
use super::{FileTree, FileTreeOptions as Options, ServeError, serve_blocking};

/// A directory `root` with a file in it, and a secret beside it.
struct Place {
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-sftp-{}-{number}", std::process::id());
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir_all(path.join("root/sub")).unwrap();
        fs::write(path.join("secret"), "top secret").unwrap();
        fs::write(path.join("root/file"), "0123456789").unwrap();
        Self { path }
    }

    fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    fn confined(&self) -> Talk {
        Talk::new(&Options {
            root: Some(self.root()),
            ..Options::default()
        })
    }

    fn open(&self) -> Talk {
        Talk::new(&Options {
            start: Some(self.root()),
            ..Options::default()
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A session that answers one request at a time.
struct Talk {
    session: Session<FileTree>,
    out: Vec<u8>,
}

impl Talk {
    fn new(options: &Options) -> Self {
        let mut talk = Self {
            session: Session::new(FileTree::new(options).unwrap()),
            out: Vec::new(),
        };
        execute(&mut talk.session, &[1, 0, 0, 0, 3], &mut talk.out);
        talk
    }

    /// The answer is in `out` until the next request.
    fn ask(&mut self, request: &SftpRequest<'_>) -> SftpReply<'_> {
        let mut frame = Vec::new();
        request.encode(7, &mut frame);
        self.out.clear();
        execute(&mut self.session, &frame[4..], &mut self.out);
        let (id, reply) = SftpReply::parse(&self.out[4..]).unwrap();
        assert_eq!(id, 7);
        reply
    }

    fn status(&mut self, request: &SftpRequest<'_>) -> SftpStatus {
        match self.ask(request) {
            SftpReply::Status(reply) => reply.status,
            other => panic!("{other:?} to {request:?}"),
        }
    }

    fn done(&mut self, request: &SftpRequest<'_>) {
        assert_eq!(
            self.status(request),
            SftpStatus::Ok,
            "{request:?}: {:?}",
            String::from_utf8_lossy(&self.out)
        );
    }

    fn handle(&mut self, path: &str, flags: OpenFlags) -> Option<Vec<u8>> {
        let request = SftpRequest::Open {
            path: path.as_bytes(),
            flags,
            attrs: FileAttrs::default(),
        };
        match self.ask(&request) {
            SftpReply::Handle(handle) => Some(handle.to_vec()),
            _ => None,
        }
    }

    fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        let handle = self.handle(path, OpenFlags::READ)?;
        let request = SftpRequest::Read {
            handle: &handle[..],
            offset: 0,
            len: u32::MAX,
        };
        let SftpReply::Data(data) = self.ask(&request) else {
            panic!("{:?}", self.out);
        };
        let data = data.to_vec();
        self.done(&SftpRequest::Close {
            handle: &handle[..],
        });
        Some(data)
    }

    fn path(&mut self, request: &SftpRequest<'_>) -> Option<String> {
        match self.ask(request) {
            SftpReply::Names(names) => {
                let name = names.iter().next().unwrap();
                Some(String::from_utf8(name.name.to_vec()).unwrap())
            }
            _ => None,
        }
    }

    fn real(&mut self, path: &str) -> Option<String> {
        let path = path.as_bytes();
        self.path(&SftpRequest::Realpath { path })
    }

    fn kind(&mut self, request: &SftpRequest<'_>) -> Option<FileType> {
        match self.ask(request) {
            SftpReply::Attrs(attrs) => attrs.file_kind(),
            _ => None,
        }
    }
}

const NEW: OpenFlags = OpenFlags::WRITE.union(OpenFlags::CREATE);
