"""A client and a server on asyncssh; follows `sshjobs.py`."""

import asyncio
import logging
import os
import subprocess

import asyncssh
from asyncssh.encryption import get_encryption_algs
from asyncssh.kex import get_kex_algs
from asyncssh.mac import get_mac_algs


class CountKeys(logging.Handler):
    """Says that there are new keys, as the library's log does."""

    def emit(self, record):
        if "Completed key exchange" in record.getMessage():
            say("keys")


class Door(asyncssh.SSHServer):
    def connection_requested(self, *_):
        return True


async def move(reader, writer):
    """Moves bytes to their end."""
    while some := await reader.read(1 << 16):
        writer.write(some)
        await writer.drain()


async def program(process):
    columns, rows, *_ = process.term_size
    environment = os.environ | process.env
    child = await asyncio.create_subprocess_shell(
        process.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shown_environment(environment, process.term_type, columns, rows),
    )

    async def feed():
        await move(process.stdin, child.stdin)
        child.stdin.close()

    feeding = asyncio.create_task(feed())
    await asyncio.gather(move(child.stdout, process.stdout), move(child.stderr, process.stderr))
    status = await child.wait()
    feeding.cancel()
    process.exit(status)


async def serve(words):
    asyncssh.set_debug_level(1)
    logger = logging.getLogger("asyncssh")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(CountKeys())
    names = lambda algorithms: [name.decode() for name in algorithms]
    limit = {"rekey_bytes": words.rekey()} if words.rekey() else {}
    server = await asyncssh.create_server(
        Door,
        "127.0.0.1",
        0,
        server_host_keys=[words["host-key"]],
        authorized_client_keys=words["authorized-keys"],
        process_factory=program,
        encoding=None,
        line_editor=False,
        encryption_algs=names(get_encryption_algs()),
        mac_algs=names(get_mac_algs()),
        kex_algs=[name for name in names(get_kex_algs()) if not name.startswith("gss-")],
        **limit,
    )
    say("ready", f"127.0.0.1:{server.get_port()}")
    await asyncio.Event().wait()


async def echo(connection, job):
    sent = pattern(job.number("bytes"))
    process = await connection.create_process(job.get("program"), encoding=None)

    async def feed():
        for at in range(0, len(sent), 100_000):
            process.stdin.write(sent[at : at + 100_000])
            await process.stdin.drain()
        process.stdin.write_eof()

    feeding = asyncio.create_task(feed())
    got = await process.stdout.read()
    await feeding
    ended = await process.wait()
    same(job, got, sent)
    same(job, str(ended.exit_status), "0")


async def terminal(connection, job):
    ended = await connection.run(
        "terminal 7",
        term_type=TERM,
        term_size=(COLUMNS, ROWS),
        env={VARIABLE: VALUE},
        encoding=None,
    )
    same(job, ended.stdout, TOLD)
    same(job, ended.stderr, b"err\n")
    same(job, str(ended.exit_status), "7")


async def forwarded(connection, job):
    reader, writer = await connection.open_connection("127.0.0.1", job.number("port"))
    writer.write(b"ping")
    writer.write_eof()
    same(job, await reader.read(), b"pong")
    writer.close()


async def files(connection, job):
    folder, content = job.get("folder"), pattern(job.number("bytes"))
    async with connection.start_sftp_client() as sftp:
        await sftp.mkdir(f"{folder}/new")
        async with sftp.open(f"{folder}/new/file", "wb") as file:
            await file.write(content)
        async with sftp.open(f"{folder}/new/file", "rb") as file:
            same(job, await file.read(), content)
        await sftp.rename(f"{folder}/new/file", f"{folder}/new/moved")
        names = sorted(await sftp.listdir(f"{folder}/new"))
        same(job, " ".join(names), ". .. moved")
        same(job, str((await sftp.stat(f"{folder}/new/moved")).size), str(len(content)))


async def work(words):
    kinds = {"echo": echo, "terminal": terminal, "connection": forwarded, "files": files}
    for job in words.jobs:
        wishes = {
            "encryption_algs": job.only("cipher"),
            "mac_algs": job.only("mac"),
            "kex_algs": job.only("kex"),
            "rekey_bytes": job.number("rekey"),
        }
        connecting = asyncssh.connect(
            "127.0.0.1",
            int(words["port"]),
            username=words["user"],
            client_keys=[words["key"]],
            known_hosts=None,
            config=None,
            agent_path=None,
            **{name: value for name, value in wishes.items() if value},
        )
        async with connecting as connection:
            await kinds[job.kind](connection, job)
        say("done", job.text)


words = Words(sys.argv[1:])
if words.role == "algorithms":
    lists = {"cipher": get_encryption_algs(), "mac": get_mac_algs(), "kex": get_kex_algs()}
    say_algorithms(**{kind: [name.decode() for name in names] for kind, names in lists.items()})
elif words.role == "server":
    asyncio.run(serve(words))
else:
    asyncio.run(work(words))
