#!/bin/sh
# Installs adit @VERSION@ from @URL@.
#
#   sh install.sh [DIR]      # default: /usr/local for root, ~/.local for other users
#
# The archive is installed only if its sum is in SHA256SUMS, and SHA256SUMS is signed with the key below.
# Signatures are those of OpenSSH (ssh-keygen -Y), which nearly every machine has.
set -eu

VERSION='@VERSION@'
DOWNLOADS='@DOWNLOADS@'
RELEASE_KEY='@RELEASE_KEY@'
SIGNER='@SIGNER@'
NAMESPACE='@NAMESPACE@'

fail() {
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

need() {
	command -v "$1" >/dev/null 2>&1 || fail "needs \`$1\`, which is not installed${2:+: $2}"
}

# The name of the archive's target.
target() {
	system=$(uname -s)
	machine=$(uname -m)
	case "$system/$machine" in
	Linux/x86_64 | Linux/amd64) echo x86_64-unknown-linux-musl ;;
	Linux/aarch64 | Linux/arm64) echo aarch64-unknown-linux-musl ;;
	Darwin/arm64) echo aarch64-apple-darwin ;;
	Darwin/x86_64) echo x86_64-apple-darwin ;;
	*) fail "there is no archive for $system on $machine; build it from source: $DOWNLOADS" ;;
	esac
}

download() {
	if command -v curl >/dev/null 2>&1; then
		curl --fail --silent --show-error --location --output "$2" "$1" || fail "cannot download $1"
	else
		need wget "or curl"
		wget -q -O "$2" "$1" || fail "cannot download $1"
	fi
}

sum_of() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 "$1"
	else
		need sha256 "or sha256sum, or shasum"
		sha256 -r "$1"
	fi | cut -d ' ' -f 1
}

# All work is in functions, and the last line calls this one: a script that was cut off does nothing.
main() {
	need ssh-keygen "install OpenSSH 8.1 or newer, which verifies the signature"
	need tar

	if [ $# -gt 0 ]; then
		prefix=$1
	elif [ "$(id -u)" -eq 0 ]; then
		prefix=/usr/local
	else
		prefix=$HOME/.local
	fi
	target=$(target)
	folder=adit-$VERSION-$target
	archive=$folder.tar.gz

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM

	download "$DOWNLOADS/SHA256SUMS" "$work/SHA256SUMS"
	download "$DOWNLOADS/SHA256SUMS.sig" "$work/SHA256SUMS.sig"
	printf '%s namespaces="%s" %s\n' "$SIGNER" "$NAMESPACE" "$RELEASE_KEY" >"$work/signers"
	ssh-keygen -Y verify -f "$work/signers" -I "$SIGNER" -n "$NAMESPACE" \
		-s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >/dev/null 2>"$work/reason" ||
		fail "the signature of SHA256SUMS is not that of the release key; nothing was installed ($(tail -n 1 "$work/reason"))"

	expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$work/SHA256SUMS")
	[ -n "$expected" ] || fail "the release has no $archive; build it from source"
	download "$DOWNLOADS/$archive" "$work/$archive"
	[ "$(sum_of "$work/$archive")" = "$expected" ] ||
		fail "$archive is not the file that was signed (its sum differs); nothing was installed"

	tar -xzf "$work/$archive" -C "$work"
	"$work/$folder/adit" --version >/dev/null || fail "the program of $archive does not run on this machine"
	install_files "$work/$folder" "$prefix"
	printf 'installed %s in %s\n' "$("$prefix/bin/adit" --version)" "$prefix"
	case ":$PATH:" in
	*":$prefix/bin:"*) ;;
	*) printf 'add %s to your PATH\n' "$prefix/bin" ;;
	esac
}

# Copies the files of an unpacked archive below a prefix.
install_files() {
	mkdir -p "$2/bin" "$2/share/bash-completion/completions" "$2/share/zsh/site-functions" \
		"$2/share/fish/vendor_completions.d"
	for page in "$1"/man/*; do
		mkdir -p "$2/share/man/man${page##*.}"
		cp "$page" "$2/share/man/man${page##*.}/"
	done
	cp "$1/completions/adit.bash" "$2/share/bash-completion/completions/adit"
	cp "$1/completions/_adit" "$2/share/zsh/site-functions/_adit"
	cp "$1/completions/adit.fish" "$2/share/fish/vendor_completions.d/adit.fish"
	# The program last, and by a rename: a running one keeps its file.
	cp "$1/adit" "$2/bin/.adit.new"
	chmod 755 "$2/bin/.adit.new"
	mv -f "$2/bin/.adit.new" "$2/bin/adit"
}

main "$@"
