//! What `help` prints.

pub(super) const TEXT: &str = "\
Files there (patterns: * ? [a-z]; \"…\", '…' and \\ quote):
  ls [-1ahlnrSt] [PATH…]            list
  cd [PATH], pwd                    the folder that paths begin in
  get [-apr] PATH [HERE]            fetch; -r folders, -p times and permissions, -a go on
  mget [-apr] PATH…                 fetch many
  reget PATH [HERE]                 fetch, going on where a copy was cut
  mkdir [-p] PATH…, rmdir PATH…     folders
  rm PATH…                          remove files
  rename FROM TO                    what is called TO is replaced
  ln [-s] FROM TO, symlink FROM TO  a second name, or a symbolic link
  chmod MODE PATH…                  permissions, in octal
  chown [-h] UID PATH…, chgrp …     owner and group, as numbers
  stat PATH…, df [-hi] [PATH]       a file, its file system
Files here:
  lls [PATH], lcd [PATH], lpwd, lmkdir PATH
  put [-apr] HERE [PATH]            send; mput and reput as above
  !COMMAND                          run it here
Other:
  progress, version, help, bye
";
