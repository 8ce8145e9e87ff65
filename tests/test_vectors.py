"""numpy sorts with the vectors that are fast on this processor."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from windowpane import vectors

ZEN_4 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu avx2 avx512f avx512bw\n"
ZEN_3 = ZEN_4.replace(" avx512f avx512bw", "")
ZEN_5 = ZEN_4.replace("25", "26")
INTEL = ZEN_4.replace("AuthenticAMD", "GenuineIntel")


@pytest.fixture
def fresh(monkeypatch):
    """Numpy as if it were not imported yet."""
    monkeypatch.delitem(sys.modules, "numpy")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("cpu", "told"), [(ZEN_4, True), (ZEN_3, False), (ZEN_5, False), (INTEL, False), ("", False)])
def test_avx_512_is_left_out_on_zen_4_alone(cpu, told, tmp_path):
    environment: dict[str, str] = {}
    (tmp_path / "cpuinfo").write_text(cpu)
    vectors.choose_vectors(environment, tmp_path / "cpuinfo")
    assert (environment.get(vectors.VARIABLE) in ("X86_V4", "AVX512_SKX")) == told


@pytest.mark.usefixtures("fresh")
def test_nothing_is_changed_where_linux_says_nothing(tmp_path):
    environment: dict[str, str] = {}
    vectors.choose_vectors(environment, tmp_path / "absent")
    assert environment == {}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("numpy", "name"), [("2.3.5", "AVX512_SKX"), ("2.4.0", "X86_V4"), ("3.0.0rc1", "X86_V4")])
def test_the_name_is_the_one_numpy_knows(numpy, name, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "version", lambda package: numpy)
    environment: dict[str, str] = {}
    (tmp_path / "cpuinfo").write_text(ZEN_4)
    vectors.choose_vectors(environment, tmp_path / "cpuinfo")
    assert environment == {vectors.VARIABLE: name}


@pytest.mark.usefixtures("fresh")
def test_who_has_chosen_is_left_alone(tmp_path):
    environment = {vectors.VARIABLE: ""}
    (tmp_path / "cpuinfo").write_text(ZEN_4)
    vectors.choose_vectors(environment, tmp_path / "cpuinfo")
    assert environment == {vectors.VARIABLE: ""}


def test_a_numpy_that_is_there_already_is_not_told_in_vain(tmp_path):
    environment: dict[str, str] = {}
    (tmp_path / "cpuinfo").write_text(ZEN_4)
    assert "numpy" in sys.modules
    vectors.choose_vectors(environment, tmp_path / "cpuinfo")
    assert environment == {}


def test_numpy_takes_the_name_without_a_warning_and_keeps_avx2(tmp_path):
    (tmp_path / "cpuinfo").write_text(ZEN_4)
    script = (
        "import pathlib, sys, importlib.util as u\n"
        f"spec = u.spec_from_file_location('vectors', {vectors.__file__!r})\n"
        "vectors = u.module_from_spec(spec); spec.loader.exec_module(vectors)\n"
        f"vectors.choose_vectors(cpus=pathlib.Path({str(tmp_path / 'cpuinfo')!r}))\n"
        "import importlib, numpy\n"
        "core = 'numpy._core' if hasattr(numpy, '_core') else 'numpy.core'\n"
        "features = importlib.import_module(core + '._multiarray_umath').__cpu_features__\n"
        "print(features.get('X86_V4', False) or features.get('AVX512_SKX', False))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != vectors.VARIABLE}
    command = [sys.executable, "-W", "error", "-c", script]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "False\n"


def test_windowpane_chooses_before_it_imports_numpy():
    script = (
        "import sys, windowpane.vectors\n"
        "import numpy, os\n"
        "print(windowpane.vectors._is_zen_4(windowpane.vectors._CPUS) == (windowpane.vectors.VARIABLE in os.environ))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != vectors.VARIABLE}
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "True\n"
