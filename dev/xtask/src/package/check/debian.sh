#!/bin/bash
# Installs, upgrades, removes and purges the package, as dpkg's user does. Runs in the booted root of
# `boot.sh`; /packages has adit-1.deb, and adit-2.deb of a higher version.
set -eu

fail() {
	echo "FAIL: $*" >&2
	systemctl status --no-pager --lines=0 adit.service >&2 || true
	journalctl --no-pager --lines=30 --unit=adit.service >&2 || true
	exit 1
}

# Waits until a command succeeds.
wait_until() {
	for _ in $(seq 300); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.1
	done
	fail "not in 30 seconds: $*"
}

main_pid() { systemctl show --property=MainPID --value adit.service; }
has_other_pid() { [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ]; }

# All files but those that other programs write all the time.
list_files() {
	find / -xdev \( -path /packages -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
		-o -path /var/log -o -path /var/cache -o -path /var/tmp -o -path /var/lib/dpkg \
		-o -path /var/lib/systemd -o -path '/etc/*-' -o -path /etc/.pwd.lock \
		-o -path /etc/systemd/system.control \) -prune -o -print | LC_ALL=C sort
}

configure() {
	cat >/etc/adit/adit.toml <<-TOML
		[route.main]
		listen = "mixed://127.0.0.1:1080"
	TOML
}

wait_until systemctl is-active basic.target
list_files >/packages/before

# A new installation does not run anything, and cannot before it is configured.
dpkg -i /packages/adit-1.deb
[ "$(stat -c %U:%G:%a /etc/adit)" = root:adit:750 ] || fail "owner or mode of /etc/adit"
[ "$(systemctl is-enabled adit.service)" = disabled ] || fail "the service is enabled"
[ "$(adit --version)" != "" ]
if systemctl start adit.service 2>/dev/null; then fail "the service starts without a route"; fi
systemctl stop adit.service
systemctl reset-failed adit.service 2>/dev/null || true

configure
systemctl enable --now adit.service || fail "the service does not start"
[ "$(ps -o user= -p "$(main_pid)")" = adit ] || fail "the service does not run as its user"

# An upgrade replaces the process. A connection that is open outlives it: half of a SOCKS5 greeting before, half
# of it after.
old=$(main_pid)
exec 3<>/dev/tcp/127.0.0.1/1080
printf '\x05\x01' >&3
sleep 0.3
dpkg -i --force-confold /packages/adit-2.deb
wait_until has_other_pid "$old"
systemctl is-active adit.service || fail "the service does not run after an upgrade"
printf '\x00' >&3
answer=$(timeout 20 head -c 2 <&3 | od -An -tx1 | tr -d ' ')
[ "$answer" = 0500 ] || fail "the open connection answered \`$answer\`"
exec 3>&-
grep -q mixed /etc/adit/adit.toml || fail "the upgrade replaced the configuration"

# Removal ends the service and keeps the configuration.
dpkg -r adit
if systemctl is-active adit.service; then fail "the service outlives its package"; fi
grep -q mixed /etc/adit/adit.toml || fail "the removal deleted the configuration"

# A purge of a running service leaves nothing.
dpkg -i /packages/adit-2.deb
systemctl enable --now adit.service || fail "the service does not start again"
touch /var/lib/adit/state
dpkg -P adit
if getent passwd adit || getent group adit; then fail "the user or the group remains"; fi
list_files >/packages/after
if ! diff /packages/before /packages/after; then fail "the purge left these files"; fi
echo "installed, upgraded, removed and purged"
