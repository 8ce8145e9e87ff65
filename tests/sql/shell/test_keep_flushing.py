"""Flushing goes on until a signal arrives, at whatever moment that is."""

from __future__ import annotations

import random
import subprocess
import sys

SCRIPT = """
import os, random, signal, sys, threading
from windowpane.sql.shell.commands import keep_flushing

class Session:
    timer = None

    def run(self, statement):
        if self.timer is None:  # the handlers are there
            self.timer = threading.Timer(random.random() / 1000, os.kill, (os.getpid(), signal.SIGTERM))
            self.timer.start()

random.seed(int(sys.argv[1]))
for _ in range(300):
    session = Session()
    keep_flushing(session, 1e-5, print)
    session.timer.join()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


def test_a_signal_ends_it_whenever_it_arrives() -> None:
    seed = random.randrange(1000)
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(seed)], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "True"), (seed, ended.stderr)
