"""What the tests share: the repository's test data, and archives made of it.

The tests need the package installed, and what requirements.txt here names. In CI, a package that is missing is a failure.
"""

import importlib
import os
import pathlib
import subprocess

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import dedup_job
from dedup_job._process import command

ROOT = pathlib.Path(__file__).resolve().parents[3]
TESTDATA = ROOT / "testdata"
DAY = TESTDATA / "day.parquet"


def import_or_skip(name):
    """A package that need not be installed, except in CI."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def run_command(*arguments, check=True):
    """Run the command as a user does; return its completed process."""
    arguments = [*command(), *map(str, arguments)]
    done = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.fixture(scope="session")
def documents():
    """400 documents: id and text."""
    return pyarrow.parquet.read_table(DAY, columns=["id", "text"])


@pytest.fixture(scope="session")
def texts(documents):
    """The texts of the documents."""
    return documents["text"].to_pylist()


@pytest.fixture(scope="session")
def archive(tmp_path_factory, documents):
    """An archive with sketches and two days; nobody changes it."""
    archive = dedup_job.Archive.create(tmp_path_factory.mktemp("archive") / "a", sketch=128)
    archive.append(documents.slice(0, 150), "2026-01-01")
    archive.append(documents.slice(150, 150), "2026-01-02")
    return archive


@pytest.fixture
def store(monkeypatch):
    """The environment by which a job reaches an object store on this machine."""
    for name, value in [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("NO_PROXY", "127.0.0.1")]:
        monkeypatch.setenv(name, value)


@pytest.fixture
def random():
    return numpy.random.default_rng(20261120)


def near_fingerprints(random, count, planted, most=10):
    """Random fingerprints, and `planted` more that differ from one of them in few bits."""
    values = random.integers(0, 2**64, count, dtype=numpy.uint64)
    near = random.choice(values, planted)
    for _ in range(most):
        flips = random.integers(0, 2, planted, dtype=numpy.uint64)
        near ^= flips << random.integers(0, 64, planted, dtype=numpy.uint64)
    return random.permutation(numpy.concatenate([values, near]))


def brute_force(a, b):
    """All distances of two arrays of fingerprints, as a matrix."""
    differing = a[:, None] ^ b[None, :]
    return numpy.array([[int(value).bit_count() for value in row] for row in differing])
