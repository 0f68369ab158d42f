"""What the Python peers of SSH have in common: their words, what a client is to do, bytes to send.

Each is run as this file and its own, one behind the other:

    algorithms      says `cipher NAME`, `mac NAME`, `kex NAME`
    server          --host-key FILE --authorized-keys FILE [--rekey BYTES]: says `ready HOST:PORT`,
                    then `keys` for every key exchange; programs are run by a shell
    jobs            --port N --key FILE --user NAME JOB...: says `done JOB` for each

A job is a kind and options, `echo,bytes=100,cipher=aes128-ctr`; each has a connection of its own.
"""

import sys

# What a job says of a terminal and a variable, and what the server's program makes of it.
TERM, COLUMNS, ROWS = "xterm-peer", 97, 31
VARIABLE, VALUE = "LC_PEER", "one two"
TOLD = f"{TERM} {COLUMNS}x{ROWS} {VARIABLE}={VALUE}\n".encode()


class Job:
    """One connection and what happens on it."""

    def __init__(self, text):
        self.text = text
        self.kind, *options = text.split(",")
        self.options = dict(option.split("=", 1) for option in options)

    def get(self, name):
        return self.options.get(name)

    def number(self, name):
        return int(self.options.get(name, 0))

    def only(self, name):
        """What is to be offered, as a list; None without a wish."""
        value = self.get(name)
        return None if value is None else [value]


class Words:
    """What was typed."""

    def __init__(self, argv):
        self.role, self.options, self.jobs = argv[0], {}, []
        rest = iter(argv[1:])
        for word in rest:
            if word.startswith("--"):
                self.options[word[2:]] = next(rest)
            else:
                self.jobs.append(Job(word))

    def __getitem__(self, name):
        return self.options[name]

    def rekey(self):
        return int(self.options.get("rekey", 0))


def say(*words):
    print(*words, flush=True)


def say_algorithms(**lists):
    for kind, names in lists.items():
        for name in names:
            say(kind, name)


def pattern(count):
    """Bytes that look random, the same each time."""
    state, out = 7, bytearray()
    while len(out) < count:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        out += state.to_bytes(8, "little") * 5 + (state >> 17).to_bytes(8, "big")
    return bytes(out[:count])


def same(job, got, wanted):
    if got != wanted:
        shown = got if len(got) < 200 else f"{len(got)} bytes"
        sys.exit(f"{job.text}: got {shown}, not the {len(wanted)} wanted")


def shown_environment(environment, term, columns, rows):
    """What a program of a server finds of the variables and of the terminal, if there is one."""
    if term:
        environment = environment | {"TERM": term, "SIZE": f"{rows} {columns}"}
    return environment
