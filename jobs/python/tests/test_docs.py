"""The code blocks of docs/python.md run, and mypy accepts them and the package."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import dedup_job
from conftest import ROOT, TESTDATA, import_or_skip

PAGE = ROOT / "docs" / "python.md"


def code_blocks():
    text = PAGE.read_text()
    for match in re.finditer(r"^```py\n(.*?)^```$", text, re.M | re.S):
        line = text[: match.start()].count("\n") + 2
        yield line, match[1]


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Where the page's code runs: beside the test data."""
    shutil.copytree(TESTDATA, tmp_path / "testdata")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_code_runs(directory):
    """All blocks, one after the other in one process, as in a notebook."""
    for package in ["pandas", "polars", "duckdb", "datasets", "datatrove"]:
        import_or_skip(package)
    blocks = [f"# line {line}\n{code}" for line, code in code_blocks()]
    assert len(blocks) > 5
    script = directory / "page.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_types(directory):
    import_or_skip("mypy")
    script = directory / "page.py"
    script.write_text("\n".join(code for _, code in code_blocks()))
    package = pathlib.Path(dedup_job.__file__).parent
    configuration = ROOT / "jobs" / "python" / "pyproject.toml"
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(configuration), "--cache-dir", str(directory / "cache")]
    done = subprocess.run([*mypy, "--package", "dedup_job"], capture_output=True, text=True, cwd=directory)
    assert done.returncode == 0, done.stdout
    # Examples are checked as a user's code is, against the installed package.
    done = subprocess.run([*mypy, "--allow-subclassing-any", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_stubs_name_what_there_is():
    """The stubs of the extension module have its functions and methods, and no others."""
    stubs = (pathlib.Path(dedup_job.__file__).parent / "_native.pyi").read_text()
    native = dedup_job._native
    functions = {*re.findall(r"^def (\w+)", stubs, re.M)}
    classes = {*re.findall(r"^class (\w+)", stubs, re.M)}
    constants = {*re.findall(r"^([A-Z]\w+): ", stubs, re.M)}
    public = {name for name in dir(native) if not name.startswith("_")}
    assert functions | classes | constants == public
    for name in classes:
        body = re.search(rf"^class {name}:\n(.*?)(?=^\S|\Z)", stubs, re.M | re.S)[1]
        for method in re.findall(r"def (\w+)", body):
            assert hasattr(getattr(native, name), method), (name, method)
