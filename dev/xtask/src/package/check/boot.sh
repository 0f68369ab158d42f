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
	for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
		if [ -e "$hierarchy/cgroup.procs" ]; then
			mkdir -p "$hierarchy/$name"
			echo $$ >"$hierarchy/$name/cgroup.procs"
		fi
	done
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
