"""A client and a server on paramiko; follows `sshjobs.py`."""

import logging
import os
import socket
import subprocess
import threading
import time

import paramiko
from paramiko import Transport

# Channels and global requests of types of the tests' own: an end that is asked to "call" begins
# itself what the other has done before, and tells when it is done. paramiko has no requests of own
# names in a channel, and its client takes nothing.
ROOM, OTHER = "echo@example.com", "other@example.com"
UPPER, CALL, DONE = "upper@example.com", "call@example.com", "done@example.com"

# Without these the server has no exchange in a group of its choice.
MODULI = "/etc/ssh/moduli"


class CountKeys(logging.Handler):
    """Says that there are new keys, as the library's log does."""

    def emit(self, record):
        if "Switch to new keys" in record.getMessage():
            say("keys")


class Door(paramiko.ServerInterface):
    """One connection of a client."""

    def __init__(self, allowed, transport):
        self.allowed, self.given, self.term, self.sockets = allowed, {}, (None, 0, 0), {}
        self.transport, self.rooms = transport, set()

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        known = key.get_base64() == self.allowed
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        if kind == "session":
            return paramiko.OPEN_SUCCEEDED
        if kind == ROOM:
            self.rooms.add(chanid)
            return paramiko.OPEN_SUCCEEDED
        return paramiko.OPEN_FAILED_UNKNOWN_CHANNEL_TYPE

    def check_global_request(self, kind, message):
        if kind == UPPER:
            return (message.get_text().upper(),)
        if kind == CALL:
            threading.Thread(target=begin, args=(self.transport,), daemon=True).start()
        return kind == CALL

    def check_channel_env_request(self, channel, name, value):
        self.given[name.decode()] = value.decode()
        return True

    def check_channel_pty_request(self, channel, term, width, height, *_):
        self.term = (term.decode(), width, height)
        return True

    def check_channel_exec_request(self, channel, command):
        environment = shown_environment(os.environ | self.given, *self.term)
        threading.Thread(target=run, args=(channel, command, environment), daemon=True).start()
        return True

    def check_channel_direct_tcpip_request(self, chanid, origin, destination):
        try:
            self.sockets[chanid] = socket.create_connection(destination)
        except OSError:
            return paramiko.OPEN_FAILED_CONNECT_FAILED
        return paramiko.OPEN_SUCCEEDED


def move(read, write, end):
    """Moves bytes to their end."""
    while some := read(1 << 16):
        write(some)
    end()


def start(*args):
    thread = threading.Thread(target=move, args=args, daemon=True)
    thread.start()
    return thread


def run(channel, command, environment):
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        command, shell=True, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, bufsize=0
    )
    start(channel.recv, lambda some: write_all(child.stdin, some), child.stdin.close)
    errors = start(child.stderr.read, channel.sendall_stderr, lambda: None)
    move(child.stdout.read, channel.sendall, errors.join)
    channel.send_exit_status(child.wait())
    channel.shutdown_write()
    channel.close()


def write_all(file, some):
    while some:
        some = some[file.write(some) :]


def attend(connection, host_key, allowed, rekey):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = Transport(connection)
    if rekey:
        transport.packetizer.REKEY_BYTES = rekey
    transport.add_server_key(host_key)
    door = Door(allowed, transport)
    transport.start_server(event=threading.Event(), server=door)
    while transport.is_active():
        channel = transport.accept(1)
        if channel and channel.get_id() in door.rooms:
            start(channel.recv, channel.sendall, channel.shutdown_write)
        far = channel and door.sockets.pop(channel.get_id(), None)
        if far:
            start(far.recv, channel.sendall, channel.shutdown_write)
            start(channel.recv, far.sendall, lambda far=far: far.shutdown(socket.SHUT_WR))


def serve(words):
    logger = logging.getLogger("paramiko.transport")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(CountKeys())
    if not Transport.load_server_moduli(MODULI):
        sys.exit(f"no {MODULI}")
    host_key = paramiko.Ed25519Key.from_private_key_file(words["host-key"])
    with open(words["authorized-keys"]) as lines:
        allowed = lines.read().split()[1]
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        say("ready", f"127.0.0.1:{listener.getsockname()[1]}")
        while True:
            given = (listener.accept()[0], host_key, allowed, words.rekey())
            threading.Thread(target=attend, args=given, daemon=True).start()


def echo(transport, job):
    sent = pattern(job.number("bytes"))
    channel = transport.open_session()
    channel.exec_command(job.get("program"))

    feeding = threading.Thread(target=channel.sendall, args=(sent,))
    feeding.start()
    got = bytearray()
    while len(got) < len(sent) and (some := channel.recv(1 << 16)):
        got += some
    feeding.join()
    # The end is said last: a channel that is closed while paramiko waits for new keys blocks it,
    # since the thread that would read them wants to answer first.
    channel.shutdown_write()
    move(channel.recv, got.extend, lambda: None)
    same(job, bytes(got), sent)
    same(job, str(channel.recv_exit_status()), "0")


def terminal(transport, job):
    channel = transport.open_session()
    channel.get_pty(TERM, COLUMNS, ROWS)
    channel.set_environment_variable(VARIABLE, VALUE)
    channel.exec_command("terminal 7")
    got, errors = bytearray(), bytearray()
    move(channel.recv, got.extend, lambda: None)
    move(channel.recv_stderr, errors.extend, lambda: None)
    same(job, bytes(got), TOLD)
    same(job, bytes(errors), b"err\n")
    same(job, str(channel.recv_exit_status()), "7")


def forwarded(transport, job):
    # New keys on a quiet session: paramiko answers what comes in the middle of that, and must not
    # be asked anything there.
    time.sleep(0.5)
    transport.renegotiate_keys()
    to = ("127.0.0.1", job.number("port"))
    channel = transport.open_channel("direct-tcpip", to, ("127.0.0.1", 1))
    channel.sendall(b"ping")
    channel.shutdown_write()
    got = bytearray()
    move(channel.recv, got.extend, channel.close)
    same(job, bytes(got), b"pong")


def begin(transport):
    said = transport.global_request(UPPER, ("go",))
    assert said.get_text() == "GO"
    assert transport.global_request(OTHER) is None
    try:
        transport.open_channel(OTHER)
        sys.exit(f"{OTHER} was opened")
    except paramiko.ChannelException as refused:
        assert refused.code == paramiko.OPEN_FAILED_UNKNOWN_CHANNEL_TYPE, refused
    channel = transport.open_channel(ROOM)
    channel.sendall(b"ping")
    channel.shutdown_write()
    got = bytearray()
    move(channel.recv, got.extend, channel.close)
    assert got == b"ping", got
    transport.global_request(DONE, wait=False)


def files(transport, job):
    folder, content = job.get("folder"), pattern(job.number("bytes"))
    with paramiko.SFTPClient.from_transport(transport) as sftp:
        sftp.mkdir(f"{folder}/new")
        with sftp.open(f"{folder}/new/file", "wb") as file:
            file.set_pipelined(True)
            file.write(content)
        with sftp.open(f"{folder}/new/file", "rb") as file:
            file.prefetch()
            same(job, file.read(), content)
        sftp.rename(f"{folder}/new/file", f"{folder}/new/moved")
        same(job, " ".join(sftp.listdir(f"{folder}/new")), "moved")
        same(job, str(sftp.stat(f"{folder}/new/moved").st_size), str(len(content)))


def work(words):
    kinds = {"echo": echo, "terminal": terminal, "connection": forwarded, "files": files}
    kinds["own"] = lambda transport, job: begin(transport)
    key = paramiko.Ed25519Key.from_private_key_file(words["key"])
    for job in words.jobs:
        connection = socket.create_connection(("127.0.0.1", int(words["port"])))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = Transport(connection)
        offered = transport.get_security_options()
        offered.ciphers = job.only("cipher") or offered.ciphers
        offered.digests = job.only("mac") or offered.digests
        offered.kex = job.only("kex") or offered.kex
        if job.get("rekey"):
            transport.packetizer.REKEY_BYTES = job.number("rekey")
        transport.start_client(timeout=20)
        transport.auth_publickey(words["user"], key)
        kinds[job.kind](transport, job)
        transport.close()
        say("done", job.text)


words = Words(sys.argv[1:])
if words.role == "algorithms":
    have = Transport._preferred_ciphers, Transport._preferred_macs, Transport._preferred_kex
    say_algorithms(cipher=have[0], mac=have[1], kex=have[2])
elif words.role == "server":
    serve(words)
else:
    work(words)
