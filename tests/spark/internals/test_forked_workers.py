"""Workers by fork: a template has imported what they need, and ends with its driver; what cannot be forked starts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from windowpane.spark.internals import forked_workers
from windowpane.spark.internals.forked_workers import DAEMON, DRIVER_WORKER, OWN_DAEMON, is_forking, with_forks

_STANDS_IN = """
import os, sys, time
if __name__ == "__main__":
    if sys.argv[1:] == ["waits"]:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        print("waits", flush=True)
        time.sleep(40)
    if sys.argv[1:] == ["fails"]:
        raise ValueError("fails")
    print(os.getpid(), os.getppid(), os.getcwd(), os.environ["ASKED"], "imported_ahead" in sys.modules, *sys.argv[1:])
"""
_DRIVER = """
import os, runpy, sys
print(runpy.run_path({forks!r})["with_forks"](sys.executable, ["imported_ahead", "absent_module"], os.environ), flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[DRIVER_WORKER, DAEMON])
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that stands in for one of PySpark's: it says what it sees."""
    (tmp_path / "stands_in_for_a_worker.py").write_text(_STANDS_IN)
    (tmp_path / "imported_ahead.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    forks = Path(forked_workers.__file__).read_text()
    for name in (OWN_DAEMON, request.param):
        forks = forks.replace(f'"{name}"', '"stands_in_for_a_worker"')
    (tmp_path / "forks.py").write_text(forks)
    return "stands_in_for_a_worker"


@pytest.fixture
def program(module: str, tmp_path: Path) -> Iterator[str]:
    """What a driver starts workers with; the driver is another process, which ends with its input."""
    code = _DRIVER.format(forks=str(tmp_path / "forks.py"))
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        yield driver.stdout.readline().strip()


def ask(program: str, module: str, folder: Path, *arguments: str, **environment: str) -> list[str]:
    command = [program, "-m", module, *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def template_of(folder: Path) -> psutil.Process:
    """The template of the driver whose program lies beside these tests' modules."""
    script = str(folder / "forks.py")
    (found,) = [each for each in psutil.process_iter(["cmdline"]) if script in (each.info["cmdline"] or [])]
    return found


def test_workers_are_forks_of_the_template_with_what_it_has_imported(program: str, module: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    template = str(template_of(tmp_path).pid)

    first = ask(program, module, tmp_path, ASKED="first")
    second = ask(program, module, other, "one", "two", ASKED="second")

    assert first[1:] == [template, str(tmp_path), "first", "True"]
    assert second[1:] == [template, str(other), "second", "True", "one", "two"]
    assert first[0] != second[0]


@pytest.mark.parametrize("variable", ["PYTHONPATH", "PYTHONHASHSEED"])
def test_what_a_python_reads_when_it_starts_is_never_another_one_s(
    program: str, module: str, tmp_path: Path, variable: str
) -> None:
    other = {"PYTHONPATH": f"{tmp_path}:{tmp_path / 'other'}", "PYTHONHASHSEED": "1"}[variable]

    found = ask(program, module, tmp_path, "one", ASKED="started", **{variable: other})

    assert found[1:] == [str(os.getpid()), str(tmp_path), "started", "False", "one"]


def test_what_a_worker_says_of_its_failure_reaches_who_started_it(program: str, module: str, tmp_path: Path) -> None:
    done = subprocess.run([program, "-m", module, "fails"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "ValueError: fails" in done.stderr


def test_a_worker_that_is_told_to_end_does(program: str, module: str, tmp_path: Path) -> None:
    template = template_of(tmp_path)
    with subprocess.Popen([program, "-m", module, "waits"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == "waits\n"
        (fork,) = template.children()
        (forked,) = fork.children()

        asking.terminate()

        gone, _ = psutil.wait_procs([fork], timeout=30)
        assert gone == [fork]
        assert asking.wait(10) == 0
        assert forked.is_running()
        forked.kill()


@pytest.mark.parametrize("said", [b"", (100).to_bytes(8, "big") + b'["'])
def test_a_fork_whose_asker_ended_in_the_middle_ends(program: str, module: str, tmp_path: Path, said: bytes) -> None:
    template = template_of(tmp_path)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(Path(program).with_name("forks")))
        asking.sendall(said)

    found = ask(program, module, tmp_path, ASKED="later")

    assert found[1] == str(template.pid)
    psutil.wait_procs(template.children(), timeout=30)
    assert template.children() == []


def test_who_asked_says_nothing_when_it_is_told_to_end_and_the_fork_has_ended() -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/forks")
        listening.listen()
        command = [sys.executable, "-c", forked_workers._ASK, f"{folder}/forks", sys.executable, "-m", DAEMON]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as asking, listening.accept()[0] as template:
            with template.makefile("rb") as said:
                said.read(int.from_bytes(said.read(8), "big"))
            ended = subprocess.Popen([sys.executable, "-c", ""])
            ended.wait()
            template.sendall(ended.pid.to_bytes(8, "big"))
            while not _catches(asking.pid, signal.SIGTERM):
                time.sleep(0.01)

            asking.terminate()
            time.sleep(0.1)
            template.close()

            assert (asking.communicate(timeout=30)[1], asking.returncode) == ("", 0)


def _catches(process: int, number: int) -> bool:
    said = Path(f"/proc/{process}/status").read_text()
    (caught,) = [line.split()[1] for line in said.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_a_template_ends_with_its_driver(program: str, module: str, tmp_path: Path) -> None:
    template = template_of(tmp_path)
    (driver,) = [each for each in psutil.Process().children() if each.pid == template.ppid()]

    driver.kill()
    driver.wait()

    gone, _ = psutil.wait_procs([template], timeout=30)
    assert gone == [template]


def test_workers_of_a_template_that_was_killed_start_without_it(program: str, module: str, tmp_path: Path) -> None:
    template = template_of(tmp_path)
    template.kill()
    while template.status() != psutil.STATUS_ZOMBIE:  # its driver does not wait for it
        time.sleep(0.01)

    found = ask(program, module, tmp_path, "one", ASKED="started")

    assert found[1:] == [str(os.getpid()), str(tmp_path), "started", "False", "one"]


def test_other_workers_are_what_they_are_without_it() -> None:
    program = with_forks(sys.executable, (), os.environ)

    assert is_forking(program)
    assert with_forks(sys.executable, (), os.environ) == program != sys.executable
    asked = [program, "-c", "import sys; print(sys.executable, sys.argv)", "a b", "-m"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout == f"{sys.executable} ['-c', 'a b', '-m']\n"


def test_a_python_that_does_not_run_is_left_as_it_is(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")

    assert with_forks(absent, (), {}) == absent
    assert is_forking(absent)


def test_a_folder_whose_name_is_too_long_for_an_address_leaves_a_python_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("long" * 40)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    other = tmp_path / "python"
    other.symlink_to(sys.executable)

    assert with_forks(str(other), (), os.environ) == str(other)
