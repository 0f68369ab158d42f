"""KCP's own core, in C, by the package `kcp`: bare segments of messages over UDP, for the tests.

argv is `echo`, which sends back what comes and says `ready ADDRESS`, or `send ADDRESS BYTES`, which
sends so many bytes and says `same` if they come back. Either ends after a minute.
"""

import select
import socket
import sys
import time

from kcp import KCP

PIECE = 16 * 1024
END = time.monotonic() + 60


def session(conv, out):
    """A hasty session; what it sends goes to `out`."""
    kcp = KCP(conv, no_delay=True, update_interval=10, resend_count=2,
              no_congestion_control=True, send_window_size=256, receive_window_size=256)
    kcp.include_outbound_handler(lambda _, data: out(data))
    kcp.update()
    return kcp


def wait(sock):
    """The next datagram within ten milliseconds."""
    if select.select([sock], [], [], 0.01)[0]:
        try:
            return sock.recvfrom(2048)
        except ConnectionRefusedError:
            pass
    return None


def echo():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    print("ready %s:%d" % sock.getsockname(), flush=True)
    sessions = {}
    while time.monotonic() < END:
        if got := wait(sock):
            data, peer = got
            conv = int.from_bytes(data[:4], "little", signed=True)
            if (peer, conv) not in sessions:
                sessions[peer, conv] = session(conv, lambda d, to=peer: sock.sendto(d, to))
            kcp = sessions[peer, conv]
            kcp.receive(data)
            for message in kcp.get_all_received():
                kcp.enqueue(bytes(message))
        for kcp in sessions.values():
            kcp.update()


def send(server, count):
    host, port = server.rsplit(":", 1)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((host, int(port)))
    # Ends of sessions that nobody listens to are no news here.
    kcp = session(0x1234567, lambda data: sock.send(data))
    data = bytes((n * n + n // 7) % 256 for n in range(count))
    left, back = data, bytearray()
    while len(back) < count and time.monotonic() < END:
        while left and kcp.get_outbound_packets() < 200:
            kcp.enqueue(left[:PIECE])
            left = left[PIECE:]
        if got := wait(sock):
            kcp.receive(got[0])
        for message in kcp.get_all_received():
            back += message
        kcp.update()
    print("same" if back == data else "other bytes: %d of %d" % (len(back), count))


if sys.argv[1] == "echo":
    echo()
else:
    send(sys.argv[2], int(sys.argv[3]))
