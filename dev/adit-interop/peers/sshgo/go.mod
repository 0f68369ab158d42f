module adit/sshgo

go 1.25.0

require golang.org/x/crypto v0.54.0

require golang.org/x/sys v0.47.0 // indirect
