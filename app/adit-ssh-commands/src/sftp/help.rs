//! Help text of the commands.

/// Output of `help`.
pub(super) const HELP_TEXT: &str = "\
Remote files (patterns: * ? [a-z]; \"…\", '…' and \\ quote):
  ls [-1ahlnrSt] [PATH…]            list files
  cd [PATH], pwd                    the folder that relative paths start in
  get [-apr] PATH [LOCAL]           fetch; -r folders, -p keep times and permissions, -a resume
  mget [-apr] PATH…                 fetch several files
  reget PATH [LOCAL]                resume fetching
  mkdir [-p] PATH…, rmdir PATH…     create and remove folders
  rm PATH…                          remove files
  rename FROM TO                    rename; an existing TO is replaced
  ln [-s] FROM TO, symlink FROM TO  create a hard or symbolic link
  chmod MODE PATH…                  change permissions, in octal
  chown [-h] UID PATH…, chgrp …     change owner and group, as numbers
  stat PATH…, df [-hi] [PATH]       show a file or its file system
Local files:
  lls [PATH], lcd [PATH], lpwd, lmkdir PATH
  put [-apr] LOCAL [PATH]           send; mput and reput as above
  !COMMAND                          run a local command
Other:
  progress, version, help, bye
";
