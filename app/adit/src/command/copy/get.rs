//! One file from the other machine.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use adit_ssh::sftp::{Attrs, Download, OpenFlags, Piece};

use super::local::set;
use super::meter::Line;
use super::remote::Tag;
use super::{Fault, How, Remote, shown};

impl Remote {
    /// Copies a file of these attributes to `to`.
    pub(super) async fn get(
        &mut self,
        from: &[u8],
        attrs: &Attrs,
        to: &Path,
        how: &How,
    ) -> Result<(), Fault> {
        let file = open(to, attrs, how)?;
        let begin = match how.resume {
            true => file.metadata()?.len(),
            false => 0,
        };
        match attrs.size {
            Some(size) if begin > size => {
                return Err(Fault::unfit("the copy is longer than the file already"));
            }
            Some(size) if begin == size && begin > 0 => {
                return Ok(set(&file, attrs, how.preserve)?);
            }
            _ => {}
        }
        let handle = self
            .open_file(from, OpenFlags::READ, Attrs::default())
            .await?;
        let mut line = how.meter.begin(shown(from), attrs.size, begin);
        let size = attrs.size.filter(|size| *size > 0);
        let chunk = self.client.limits().read_chunk();
        let mut download = Download::new(&handle, begin, size, chunk);
        let outcome = self.receive(&mut download, &file, size, &mut line).await;
        if outcome.as_ref().is_err_and(Fault::is_end) {
            // What lies behind a gap would be taken for right by whoever goes on.
            file.set_len(download.received_to())?;
            return outcome;
        }
        self.drop_handle(&handle)?;
        match outcome {
            Ok(()) => {
                if let Some(end) = download.end() {
                    file.set_len(end)?;
                }
                set(&file, attrs, how.preserve)?;
                line.done();
                Ok(())
            }
            Err(fault) => {
                file.set_len(download.received_to())?;
                Err(fault)
            }
        }
    }

    /// Receives until the end; what was asked for is awaited even if something went wrong.
    async fn receive(
        &mut self,
        download: &mut Download,
        file: &File,
        size: Option<u64>,
        line: &mut Line<'_>,
    ) -> Result<(), Fault> {
        let mut outcome = Ok(());
        loop {
            let whole = size.is_some_and(|size| download.received_to() >= size);
            let over = whole || outcome.is_err() || download.is_done();
            if over && download.in_flight() == 0 {
                return outcome;
            }
            if !over {
                let now = self.now();
                download.request(now, &mut self.client, &Tag::Transfer, &mut self.out)?;
            }
            let now = self.now();
            let mut got = 0;
            self.turn(&mut |tag, id, reply| {
                if tag != Tag::Transfer {
                    return Ok(());
                }
                let written = match download.reply(now, id, reply) {
                    Ok(Piece::Data { offset, data }) if outcome.is_ok() => {
                        got += data.len();
                        file.write_all_at(data, offset).map_err(Fault::from)
                    }
                    Ok(_) => Ok(()),
                    Err(why) => Err(why.into()),
                };
                match written {
                    Err(fault) if fault.is_end() => return Err(fault),
                    Err(fault) if outcome.is_ok() => outcome = Err(fault),
                    _ => {}
                }
                Ok(())
            })
            .await?;
            line.add(got).await;
        }
    }
}

fn open(to: &Path, attrs: &Attrs, how: &How) -> io::Result<File> {
    let mode = attrs.permissions.map_or(0o666, |mode| mode & 0o777 | 0o200);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(!how.resume)
        .mode(mode)
        .open(to)
}
