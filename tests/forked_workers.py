"""A quick start for the process that Spark starts beside the driver for every stateful query.

Before the first batch of each run, Spark plans the stateful operator in a Python process of its own, which imports PySpark,
pandas and windowpane, and ends: a second of processor time, whatever the query computes. In the session that tests share, this
process is forked from one that has imported them. A program takes the place of the workers' Python: it has the process forked,
hands over its environment and its three streams, and waits for its end; every other worker it becomes itself.

Queries of programs that tests start on their own (restarts, kills, Spark Connect) have the process that users have.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"
_STREAMS = 3
_LENGTH = 8

_CLIENT = """
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
said = json.dumps([dict(os.environ), os.getcwd()]).encode()
streams = array.array("i", [0, 1, 2]).tobytes()
server.sendmsg([len(said).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(said)
server.recv(1)
"""


@contextlib.contextmanager
def forked_driver_workers() -> Iterator[str]:
    """Run the process that driver workers are forked from; what is given is the program to start workers with."""
    with tempfile.TemporaryDirectory(prefix="windowpane") as folder:  # one with a short name: it is part of an address
        yield from _forked_in(Path(folder))


def _forked_in(folder: Path) -> Iterator[str]:
    address = str(folder / "forks")
    client, program = folder / "client.py", folder / "python"
    client.write_text(_CLIENT)
    python, ask = shlex.quote(sys.executable), shlex.join([sys.executable, "-I", "-S", str(client), address])
    program.write_text(f'#!/bin/sh\n[ "$2" = {MODULE} ] && exec {ask}\nexec {python} "$@"\n')
    program.chmod(0o755)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    command = [sys.executable, "-m", "tests.forked_workers", str(listening.fileno())]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listening.fileno()], cwd=Path(__file__).parents[1])
    listening.close()
    try:
        yield str(program)
    finally:
        server.communicate()  # it ends with its input


def serve(listening: socket.socket) -> None:
    """Fork a process for each that asks, until the standard input ends."""
    from windowpane.spark.internals.worker import import_needed

    __import__(MODULE)
    sys.modules.pop(MODULE)  # which runs as __main__ of each fork
    import_needed()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    threading.Thread(target=_end_with_input, daemon=True).start()
    while True:
        asking, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _work(asking)
        asking.close()


def _end_with_input() -> NoReturn:
    while os.read(0, 1):
        pass
    os._exit(0)


def _work(asking: socket.socket) -> NoReturn:
    """Be a driver worker with the environment and the streams of the process that asks, and end with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, ancillary, _, _ = asking.recvmsg(_LENGTH, socket.CMSG_SPACE(_STREAMS * array.array("i").itemsize))
    environment, folder = json.loads(_received(asking, int.from_bytes(length, "big")))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()
    threading.Thread(target=_end_with, args=[asking], daemon=True).start()
    status = 0
    try:
        sys.argv = [MODULE]
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


def _received(asking: socket.socket, length: int) -> bytes:
    said = b""
    while len(said) < length:
        said += asking.recv(length - len(said))
    return said


def _end_with(asking: socket.socket) -> NoReturn:
    asking.recv(1)
    os._exit(1)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
