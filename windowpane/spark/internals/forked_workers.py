"""Driver workers by fork: from the second stateful query of a session on, the process that plans it costs no start of Python.

Before the first batch of each run, Spark plans a stateful operator in a Python process of its own beside the driver. It imports
PySpark and pandas and ends: most of a second of processor time, whatever the query computes. In a local session, workers are
therefore started by a small program. It becomes the Python that it was made for, but for driver workers: the first of these
leaves a *template* behind, a fork of itself with everything imported, and each later one has the template fork, hands over its
environment, folder and three streams, and waits for the end of the fork.

The template ends with the driver. Where it cannot serve (it is gone, or modules are found elsewhere by now), a driver worker
starts as it would without it. This file runs as a script of its own, too, so it imports nothing of windowpane.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import json
import os
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NoReturn

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""A driver worker, as a module that runs."""

_NEEDED = (MODULE, "pandas", "pyarrow")
_STREAMS = 3
_LENGTH = 8
_LOOKS_EVERY = 2.0
"""Seconds after which a template looks whether its driver is still there."""

_ASK = """
import array, json, os, socket, sys
address, python, template, driver = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
try:
    server.connect(address)
except OSError:
    os.execvp(python, [python, "-P", template, address, driver])
said = json.dumps([dict(os.environ), os.getcwd()]).encode()
streams = array.array("i", [0, 1, 2]).tobytes()
server.sendmsg([len(said).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(said)
server.recv(1)
"""


_programs: dict[str, str] = {}
"""For each Python, the program that starts workers in its place; itself where that cannot be."""


def is_forking(python: str) -> bool:
    """Whether ``python`` is what ``with_forks`` made of one, or what it could make nothing of."""
    return python in _programs.values()


def with_forks(python: str) -> str:
    """Return a program that starts workers as ``python`` does and forks driver workers; ``python`` where that cannot be."""
    if python not in _programs:
        _programs[python] = (os.name == "posix" and _program(python)) or python
    return _programs[python]


def _program(python: str) -> str | None:
    folder = Path(tempfile.mkdtemp(prefix="windowpane"))  # a short name: it is part of an address
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ask, program = folder / "ask.py", folder / "python"
    ask.write_text(_ASK)
    asked = [python, "-I", "-S", str(ask), str(folder / "forks"), python, __file__, str(os.getpid())]
    program.write_text(f'#!/bin/sh\n[ "$2" = {MODULE} ] && exec {shlex.join(asked)}\nexec {shlex.quote(python)} "$@"\n')
    program.chmod(0o755)
    try:
        subprocess.run([str(program), "-I", "-S", "-c", "pass"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError):  # nothing in that folder may run
        return None
    return str(program)


def _start(address: str, driver: int) -> NoReturn:
    """Be a driver worker that imports what the later ones need, too, and leave a template behind."""
    sys.path.insert(0, "")  # as ``python -m`` has it
    for module in _NEEDED:
        __import__(module)
    sys.modules.pop(MODULE)  # it runs as __main__
    _leave_template(address, driver)
    _work()


def _leave_template(address: str, driver: int) -> None:
    import fcntl

    folder = Path(address).parent
    with contextlib.suppress(OSError), (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers may start at the same time
        if _is_served(address):
            return
        Path(address).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen()
            if os.fork() == 0:
                try:
                    lock.close()
                    _serve(listening, driver, folder)
                finally:
                    os._exit(1)


def _is_served(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        return asking.connect_ex(address) == 0


def _serve(listening: socket.socket, driver: int, folder: Path) -> NoReturn:
    os.setsid()  # what the terminal sends to the driver is not for this process
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(_STREAMS):
        os.dup2(nothing, stream)
    os.chdir("/")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    listening.settimeout(_LOOKS_EVERY)
    while folder.exists() and _runs(driver):
        with contextlib.suppress(TimeoutError):
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _work_for(asking)
            asking.close()
    os._exit(0)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _work_for(asking: socket.socket) -> NoReturn:
    """Be a driver worker with the environment and the streams of the process that asks, and end with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, ancillary, _, _ = asking.recvmsg(_LENGTH, socket.CMSG_SPACE(_STREAMS * array.array("i").itemsize))
    if not ancillary:
        os._exit(0)  # only whether there is a template was asked
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    environment, folder = json.loads(_received(asking, int.from_bytes(length, "big")))
    found_elsewhere = environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH")
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if found_elsewhere:
        asking.set_inheritable(True)  # the process that asks waits until it is closed
        os.execv(sys.executable, [sys.executable, "-m", MODULE])
    time.tzset()
    threading.Thread(target=_end_with, args=[asking], daemon=True).start()
    _work()


def _work() -> NoReturn:
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
    _start(sys.argv[1], int(sys.argv[2]))
