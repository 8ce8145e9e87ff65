"""Workers of a local session by fork, of a process that has imported what they need while the query was put together.

Spark starts Python for a query twice. Before the first batch of each run it plans a stateful operator in a process of its own
beside the driver, which imports PySpark and pandas and ends. Before the first task it starts a daemon, whose workers import what
they need, each anew. That is seconds of processor time while the first batch waits, whatever the query computes.

In a local session, workers are therefore started by a small program. It becomes the Python that it was made for, but for these
two: it has the *template* fork, a process beside the driver with everything imported, hands over its arguments, environment,
folder and three streams, hands on that it is to end, and waits for the end of the fork.

The template ends with the driver. Where it cannot serve (it is gone, modules are found elsewhere or hashed otherwise by now),
workers start as they would without it. This file runs as a script of its own, too, so it imports nothing of windowpane.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

DRIVER_WORKER = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""Plans a stateful operator, as a module that runs."""
DAEMON = "pyspark.daemon"
"""Forks the workers of tasks, as a module that runs."""
OWN_DAEMON = "windowpane.spark.daemon"
"""Ours, which a template runs in its place where it has imported it."""

_FORKED = (DRIVER_WORKER, DAEMON)
_OF_IMPORTS = ("PYTHONPATH", "PYTHONHASHSEED")
"""Variables that a Python has read when it has started: a fork cannot have others."""
_STREAMS = 3
_LENGTH = 8

_ASK = """
import array, json, os, signal, socket, sys
address, python, *arguments = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
said = json.dumps([arguments[1:], dict(os.environ), os.getcwd()]).encode()
streams = array.array("i", [0, 1, 2]).tobytes()
try:
    server.connect(address)
    server.sendmsg([len(said).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    server.sendall(said)
    fork = int.from_bytes(server.recv(8), "big")
except OSError:
    fork = 0
if not fork:
    os.execvp(python, [python, *arguments])
def end(*_):
    try:
        os.kill(fork, signal.SIGTERM)
    except ProcessLookupError:  # it has ended by itself
        pass
signal.signal(signal.SIGTERM, end)
server.recv(1)
"""

_PROGRAM = """#!/bin/sh
case "$2" in
{forked}) exec {ask} "$@" ;;
esac
exec {python} "$@"
"""

_programs: dict[str, str] = {}
"""For each Python, the program that starts workers in its place; itself where that cannot be."""
_templates: list[subprocess.Popen[bytes]] = []
"""They end when their input does, which is that of this process."""


def is_forking(python: str) -> bool:
    """Whether ``python`` is what ``with_forks`` made of one, or what it could make nothing of."""
    return python in _programs.values()


def with_forks(python: str, modules: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a program that starts workers as ``python`` does, and forks those that can be; ``python`` where that cannot be.

    Args:
        python: the Python of workers.
        modules: what they need, by name, imported in the template as far as it is found.
        environment: that of workers, as far as it is known.
    """
    if python not in _programs:
        _programs[python] = (os.name == "posix" and _program(python, modules, environment)) or python
    return _programs[python]


def _program(python: str, modules: Sequence[str], environment: Mapping[str, str]) -> str | None:
    folder = Path(tempfile.mkdtemp(prefix="windowpane"))  # a short name: it is part of an address
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ask, program, address = folder / "ask.py", folder / "python", str(folder / "forks")
    ask.write_text(_ASK)
    asked = shlex.join([python, "-I", "-S", str(ask), address, python])
    program.write_text(_PROGRAM.format(forked="|".join(_FORKED), ask=asked, python=shlex.quote(python)))
    program.chmod(0o755)
    try:
        subprocess.run([str(program), "-I", "-S", "-c", "pass"], check=True, capture_output=True)
        _templates.append(_template(python, modules, environment, address))
    except (OSError, subprocess.SubprocessError):  # nothing in that folder may run, or its name is too long for an address
        return None
    return str(program)


def _template(python: str, modules: Sequence[str], environment: Mapping[str, str], address: str) -> subprocess.Popen[bytes]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)  # so who asks before the template has imported waits
        listening.listen()
        number, pipe, nothing = listening.fileno(), subprocess.PIPE, subprocess.DEVNULL
        command = [python, "-P", __file__, str(number), *modules]
        return subprocess.Popen(command, stdin=pipe, stdout=nothing, stderr=nothing, pass_fds=[number], env=environment)


def _serve(listening: socket.socket, modules: Sequence[str]) -> None:
    os.setsid()  # what the terminal sends to the driver is not for this process
    sys.path.insert(0, "")  # as ``python -m`` has it
    for module in (*modules, OWN_DAEMON, *_FORKED):
        with contextlib.suppress(ImportError):  # it may reach the workers later, with the files of a session
            importlib.import_module(module)
    daemon = OWN_DAEMON if OWN_DAEMON in sys.modules else DAEMON
    for module in (daemon, DRIVER_WORKER):
        sys.modules.pop(module, None)  # they run as __main__
    os.chdir("/")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        asking, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _work_for(asking, daemon)
        asking.close()


def _work_for(asking: socket.socket, daemon: str) -> NoReturn:
    """Be a worker with the arguments, environment and streams of the process that asks."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, ancillary, _, _ = asking.recvmsg(_LENGTH, socket.CMSG_SPACE(_STREAMS * array.array("i").itemsize))
    said = asking.makefile("rb").read(int.from_bytes(length, "big"))  # no JSON where the asker has ended: the fork does, too
    (module, *arguments), environment, folder = json.loads(said)
    if any(environment.get(name) != os.environ.get(name) for name in _OF_IMPORTS):
        os._exit(0)  # the process that asks becomes what it asked for
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # Spark's Pythons run unbuffered
    os.register_at_fork(after_in_child=asking.close)  # what a daemon forks is not waited for
    asking.sendall(os.getpid().to_bytes(_LENGTH, "big"))
    status = 0
    try:
        sys.argv = [module, *arguments]
        runpy.run_module(daemon if module == DAEMON else module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
