"""Driver workers by fork: the first one leaves a template behind, which ends with its driver; what cannot be forked starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from windowpane.spark.internals import forked_workers
from windowpane.spark.internals.forked_workers import MODULE, is_forking, with_forks

_STANDS_IN = """
import os
if __name__ == "__main__":
    print(os.getpid(), os.getppid(), os.getcwd(), os.environ["ASKED"])
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that stands in for PySpark's driver worker: it says what it sees."""
    (tmp_path / "stands_in_for_driver_worker.py").write_text(_STANDS_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "stands_in_for_driver_worker"


@pytest.fixture
def program(module: str, tmp_path: Path) -> Iterator[str]:
    """What a driver starts workers with; the driver is another process, which ends with its input."""
    forks = tmp_path / "forks.py"
    forks.write_text(Path(forked_workers.__file__).read_text().replace(MODULE, module))
    code = f"import runpy, sys; print(runpy.run_path({str(forks)!r})['with_forks'](sys.executable), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        yield driver.stdout.readline().strip()


def ask(program: str, module: str, folder: Path, **environment: str) -> list[str]:
    environment = {**os.environ, **environment}
    done = subprocess.run([program, "-m", module], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def template_of(program: str) -> list[psutil.Process]:
    address = str(Path(program).with_name("forks"))
    return [each for each in psutil.process_iter(["cmdline"]) if address in (each.info["cmdline"] or [])]


def test_the_first_worker_leaves_a_template_that_the_others_are_forked_from(program: str, module: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    first = ask(program, module, tmp_path, ASKED="first")
    (template,) = template_of(program)
    second = ask(program, module, other, ASKED="second")
    found_elsewhere = ask(program, module, tmp_path, ASKED="third", PYTHONPATH=f"{tmp_path}:{other}")

    assert first[2:] == [str(tmp_path), "first"]
    assert second[1:] == [str(template.pid), str(other), "second"]
    assert found_elsewhere[1:] == [str(template.pid), str(tmp_path), "third"]


def test_a_template_ends_with_its_driver(program: str, module: str, tmp_path: Path) -> None:
    ask(program, module, tmp_path, ASKED="first")
    (template,) = template_of(program)
    (driver,) = [each for each in psutil.Process().children() if str(tmp_path / "forks.py") in " ".join(each.cmdline())]

    driver.kill()
    driver.wait()

    gone, _ = psutil.wait_procs([template], timeout=30)
    assert gone == [template]


def test_a_template_that_was_killed_is_made_again(program: str, module: str, tmp_path: Path) -> None:
    ask(program, module, tmp_path, ASKED="first")
    (template,) = template_of(program)
    template.kill()
    psutil.wait_procs([template], timeout=30)

    second = ask(program, module, tmp_path, ASKED="second")
    third = ask(program, module, tmp_path, ASKED="third")

    (again,) = template_of(program)
    assert second[2:] == [str(tmp_path), "second"]
    assert third[1:] == [str(again.pid), str(tmp_path), "third"]


def test_other_workers_are_what_they_are_without_it() -> None:
    program = with_forks(sys.executable)

    assert is_forking(program)
    assert with_forks(sys.executable) == program != sys.executable
    asked = [program, "-c", "import sys; print(sys.executable, sys.argv)", "a b", "-m"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout == f"{sys.executable} ['-c', 'a b', '-m']\n"


def test_a_python_that_does_not_run_is_left_as_it_is(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")

    assert with_forks(absent) == absent
    assert is_forking(absent)
