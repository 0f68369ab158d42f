"""A client on the system's libssh2, through its C interface; follows `sshjobs.py`.

Debian 12 has version 1.10, from before strict key exchange.
"""

import ctypes
import select
import socket
from ctypes import byref, c_char_p, c_int, c_ssize_t, c_uint, c_void_p

library = ctypes.CDLL("libssh2.so.1")
AGAIN = -37
KEX, CIPHERS, MACS = 0, (2, 3), (4, 5)
WINDOW, PACKET = 2 << 20, 32 << 10
STANDARD_OUTPUT, STANDARD_ERROR = 0, 1


def declare(result, *names_and_arguments):
    name, *arguments = names_and_arguments
    function = getattr(library, f"libssh2_{name}")
    function.restype, function.argtypes = result, arguments
    return function


text = (c_char_p, c_uint)
init = declare(c_int, "init", c_int)
session_init = declare(c_void_p, "session_init_ex", *[c_void_p] * 4)
session_free = declare(c_int, "session_free", c_void_p)
disconnect = declare(c_int, "session_disconnect_ex", c_void_p, c_int, c_char_p, c_char_p)
set_blocking = declare(None, "session_set_blocking", c_void_p, c_int)
last_error = declare(
    c_int, "session_last_error", c_void_p, ctypes.POINTER(c_char_p), c_void_p, c_int
)
method_pref = declare(c_int, "session_method_pref", c_void_p, c_int, c_char_p)
supported = declare(c_int, "session_supported_algs", c_void_p, c_int, c_void_p)
handshake = declare(c_int, "session_handshake", c_void_p, c_int)
publickey = declare(
    c_int, "userauth_publickey_fromfile_ex", c_void_p, *text, c_char_p, c_char_p, c_char_p
)
open_channel = declare(c_void_p, "channel_open_ex", c_void_p, *text, c_uint, c_uint, *text)
direct_tcpip = declare(
    c_void_p, "channel_direct_tcpip_ex", c_void_p, c_char_p, c_int, c_char_p, c_int
)
setenv = declare(c_int, "channel_setenv_ex", c_void_p, *text, *text)
request_pty = declare(c_int, "channel_request_pty_ex", c_void_p, *text, *text, *[c_int] * 4)
startup = declare(c_int, "channel_process_startup", c_void_p, *text, *text)
read_some = declare(c_ssize_t, "channel_read_ex", c_void_p, c_int, c_void_p, ctypes.c_size_t)
write_some = declare(c_ssize_t, "channel_write_ex", c_void_p, c_int, c_char_p, ctypes.c_size_t)
at_end = declare(c_int, "channel_eof", c_void_p)
send_eof = declare(c_int, "channel_send_eof", c_void_p)
close = declare(c_int, "channel_close", c_void_p)
wait_closed = declare(c_int, "channel_wait_closed", c_void_p)
exit_status = declare(c_int, "channel_get_exit_status", c_void_p)
free = declare(c_int, "channel_free", c_void_p)


def counted(some):
    return some, len(some)


class Session:
    """A connection; calls wait for their end, but for `carry`."""

    def __init__(self, words, job):
        self.job, self.session = job, session_init(None, None, None, None)
        wishes = {(KEX,): job.get("kex"), CIPHERS: job.get("cipher"), MACS: job.get("mac")}
        for methods, wish in wishes.items():
            for method in methods:
                if wish:
                    self.check(method_pref(self.session, method, wish.encode()))
        self.socket = socket.create_connection(("127.0.0.1", int(words["port"])))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.check(handshake(self.session, self.socket.fileno()))
        user, key = words["user"].encode(), words["key"].encode()
        self.check(publickey(self.session, *counted(user), key + b".pub", key, None))

    def check(self, code):
        """For calls of which zero is the best answer, or a count."""
        if code is None or code < 0:
            message = c_char_p()
            last_error(self.session, byref(message), None, 0)
            sys.exit(f"{self.job.text}: {code}: {(message.value or b'').decode()}")
        return code

    def open(self):
        kind = counted(b"session")
        return self.check(open_channel(self.session, *kind, WINDOW, PACKET, None, 0))

    def start(self, channel, line):
        self.check(startup(channel, *counted(b"exec"), *counted(line.encode())))

    def read(self, channel, stream):
        """All that comes."""
        got, buffer = bytearray(), ctypes.create_string_buffer(1 << 16)
        while count := self.check(read_some(channel, stream, buffer, len(buffer))):
            got += buffer.raw[:count]
        return bytes(got)

    def carry(self, channel, sent):
        """Writes all of it and reads to the end, both at once."""
        set_blocking(self.session, 0)
        got, buffer = bytearray(), ctypes.create_string_buffer(1 << 16)
        at, ended = 0, False
        while not at_end(channel):
            idle = True
            if at < len(sent):
                # What could not be written whole is wanted again as it was.
                count = write_some(channel, STANDARD_OUTPUT, *counted(sent[at : at + 50_000]))
                if count not in (AGAIN, 0):
                    at, idle = at + self.check(count), False
            elif not ended:
                ended = send_eof(channel) != AGAIN
                idle = not ended
            count = read_some(channel, STANDARD_OUTPUT, buffer, len(buffer))
            if count not in (AGAIN, 0):
                got += buffer.raw[: self.check(count)]
                idle = False
            if idle:
                pending = [self.socket] if at < len(sent) or not ended else []
                select.select([self.socket], pending, [], 0.05)
        set_blocking(self.session, 1)
        return bytes(got)

    def end(self, channel):
        self.check(close(channel))
        self.check(wait_closed(channel))
        status = exit_status(channel)
        free(channel)
        return str(status)

    def close(self):
        disconnect(self.session, 11, b"done", b"")
        session_free(self.session)
        self.socket.close()


def echo(session, job):
    sent = pattern(job.number("bytes"))
    channel = session.open()
    session.start(channel, job.get("program"))
    same(job, session.carry(channel, sent), sent)
    same(job, session.end(channel), "0")


def terminal(session, job):
    channel = session.open()
    size = (COLUMNS, ROWS, 0, 0)
    session.check(request_pty(channel, *counted(TERM.encode()), b"", 0, *size))
    session.check(setenv(channel, *counted(VARIABLE.encode()), *counted(VALUE.encode())))
    session.start(channel, "terminal 7")
    same(job, session.read(channel, STANDARD_OUTPUT), TOLD)
    same(job, session.read(channel, STANDARD_ERROR), b"err\n")
    same(job, session.end(channel), "7")


def forwarded(session, job):
    port = job.number("port")
    channel = direct_tcpip(session.session, b"127.0.0.1", port, b"127.0.0.1", 1)
    session.check(channel)
    session.check(write_some(channel, STANDARD_OUTPUT, *counted(b"ping")))
    session.check(send_eof(channel))
    same(job, session.read(channel, STANDARD_OUTPUT), b"pong")
    session.end(channel)


def listed(method):
    session, names = session_init(None, None, None, None), ctypes.POINTER(c_char_p)()
    count = supported(session, method, byref(names))
    found = [names[at].decode() for at in range(count)]
    session_free(session)
    return found


def work(words):
    kinds = {"echo": echo, "terminal": terminal, "connection": forwarded}
    for job in words.jobs:
        session = Session(words, job)
        kinds[job.kind](session, job)
        session.close()
        say("done", job.text)


words = Words(sys.argv[1:])
init(0)
if words.role == "algorithms":
    say_algorithms(cipher=listed(CIPHERS[0]), mac=listed(MACS[0]), kex=listed(KEX))
else:
    work(words)
