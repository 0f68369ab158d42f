#!/bin/sh
# Runs the init script of OpenWrt's package with functions in place of procd's, which print their arguments.
#
#   openwrt.sh SCRIPT PROGRAM CONFIG ACTION
set -eu

for name in procd_open_instance procd_set_param procd_close_instance procd_send_signal; do
	eval "$name() { printf '%s' $name; printf ' <%s>' \"\$@\"; echo; }"
done
sed -e "s#^PROGRAM=.*#PROGRAM=$2#" -e "s#^CONFIG=.*#CONFIG=$3#" "$1" >"$3.init"
. "$3.init"
"$4"
