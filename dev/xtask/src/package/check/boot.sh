#!/bin/sh
# Boots the systemd of a root folder in namespaces of its own: processes, mounts, network and control groups.
#
#   boot.sh ROOT NAME      NAME is that of its control group
#
# Ending this process ends all of them. The control groups remain for the caller to remove.
set -eu

root=$1
name=$2

if [ "${3:-}" != inside ]; then
	# In each hierarchy below the present group, so that systemd makes its groups there and nowhere else.
	while IFS=: read -r _ controllers group; do
		case $controllers in
		'') hierarchy=/sys/fs/cgroup/unified ;;
		*) hierarchy=/sys/fs/cgroup/${controllers#name=} ;;
		esac
		[ -d "$hierarchy" ] || hierarchy=/sys/fs/cgroup
		own=${hierarchy}${group%/}/$name
		mkdir "$own"
		# Not in a hierarchy that needs further settings (cpuset), which systemd does not use.
		echo $$ >"$own/cgroup.procs" || rmdir "$own"
	done </proc/self/cgroup
	exec unshare --mount --pid --ipc --uts --net --cgroup --fork --kill-child sh "$0" "$root" "$name" inside
fi

mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
# Nothing in here may change a setting of the kernel.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
# systemd copies it for services with devices of their own.
ln -s pts/ptmx "$root/dev/ptmx"
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
	mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
	mkdir "$root/sys/fs/cgroup/systemd" "$root/sys/fs/cgroup/unified"
	mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
fi
ip link set lo up
exec chroot "$root" env -i container=adit PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	/lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no
