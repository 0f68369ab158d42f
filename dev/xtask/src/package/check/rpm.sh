#!/bin/bash
# Installs and erases the package of RPM in the root of the Debian test, whose programs its scripts use.
#
#   rpm.sh ROOT PACKAGE
set -eu

root=$1
package=$2
rpm=(rpm --root "$root" --dbpath /var/lib/rpm-check)

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

"${rpm[@]}" --install --nodeps "$package"
chroot "$root" adit --version
[ "$(chroot "$root" stat -c %U:%G:%a /etc/adit)" = root:adit:750 ] || fail "owner or mode of /etc/adit"
# All but owner, group and mode, which the script has changed.
"${rpm[@]}" --verify --nodeps --nouser --nogroup --nomode adit || fail "files differ from the package"
echo '# changed' >>"$root/etc/adit/adit.toml"
"${rpm[@]}" --erase adit
[ ! -e "$root/usr/bin/adit" ] || fail "the program remains"
[ -e "$root/etc/adit/adit.toml.rpmsave" ] || fail "the changed configuration was not saved"
rm -r "$root/etc/adit" "$root/var/lib/rpm-check"
left=$(find "$root/usr" "$root/etc" -name '*adit*')
[ -z "$left" ] || fail "the package left $left"
chroot "$root" userdel adit
echo "installed, verified and erased"
