"""Progress of calls that run in this process."""

import signal
import subprocess
import sys
import types

import numpy
import pytest

import dedup_job
from conftest import near_fingerprints


def reports(call):
    """The reports of a call."""
    seen = []
    call(seen.append)
    assert all(isinstance(progress, dedup_job.Progress) for progress in seen)
    assert all(progress.total is None or progress.done <= progress.total for progress in seen)
    return seen


STAGES = [("fingerprint", "fingerprinting"), ("fingerprint_arrow", "fingerprinting"), ("sketch", "sketching")]


@pytest.mark.parametrize("name, stage", STAGES)
@pytest.mark.parametrize("threads", [None, 1])
def test_the_last_report_says_that_all_is_done(texts, name, stage, threads):
    make = getattr(dedup_job, name)
    seen = reports(lambda progress: make(texts, threads=threads, progress=progress))
    assert seen[-1] == (stage, 400, 400, 0)
    assert reports(lambda progress: make([], progress=progress))[-1] == (stage, 0, 0, 0)


def test_pairs_report_each_stage(random, texts):
    values = near_fingerprints(random, 300, 200)
    for arguments, total in [((values,), len({*values.tolist()})), ((values[:100], values[100:]), 400)]:
        table = dedup_job.pairs(*arguments, k=6)
        seen = reports(lambda progress: dedup_job.pairs(*arguments, k=6, progress=progress))
        probed = [progress for progress in seen if progress.stage == "probing"][-1]
        assert probed.done == probed.total
        # If memory is short, all are compared with each part of the tables.
        assert probed.total % total == 0 and probed.pairs == len(table) > 0
    stages = [progress.stage for progress in reports(lambda progress: dedup_job.pairs(texts, progress=progress))]
    assert stages[0] == "fingerprinting" and "probing" in stages


def test_a_long_call_reports_now_and_then(texts):
    for count in (50, 200, 800):
        seen = reports(lambda progress: dedup_job.fingerprint(texts * count, threads=1, progress=progress))
        # A fast machine needs more texts.
        if len(seen) >= 3:
            break
    done = [progress.done for progress in seen]
    assert done == sorted(done) and done[0] < done[-1] == seen[-1].total


def many_fingerprints():
    return numpy.random.default_rng(1).integers(0, 2**64, 400_000, dtype=numpy.uint64)


@pytest.mark.parametrize("call", [
    lambda texts, progress: dedup_job.fingerprint(texts, progress=progress),
    lambda texts, progress: dedup_job.sketch(texts, bits=64, progress=progress),
    lambda texts, progress: dedup_job.pairs(texts, progress=progress),
    # Alone, it takes long.
    lambda texts, progress: dedup_job.pairs(many_fingerprints(), k=16, progress=progress),
])
def test_an_exception_of_the_function_ends_the_call(texts, call):
    def fail(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        call(texts, fail)


def test_lines_are_for_calls_that_take_a_while(texts, capsys, monkeypatch):
    monkeypatch.setattr(dedup_job._progress, "_LINE_AFTER", 3600)
    dedup_job.fingerprint(texts, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(dedup_job._progress, "_LINE_AFTER", 0)
    dedup_job.fingerprint(texts, progress=True)
    assert "dedup-job: fingerprinting: 400 of 400 (100 %)" in capsys.readouterr().err
    dedup_job.fingerprint(texts)
    dedup_job.fingerprint(texts, progress=False)
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_a_line(texts, monkeypatch):
    """Without being asked, as for jobs, in a cell's output that the line leaves empty."""
    shown = []

    def display(content, raw, display_id):
        shown.append(content)
        return types.SimpleNamespace(update=lambda content, raw: shown.append(content))

    kernel = type("ZMQInteractiveShell", (), {})()
    notebook = types.SimpleNamespace(get_ipython=lambda: kernel, display=types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(dedup_job._progress, "_LINE_AFTER", 0)
    dedup_job.fingerprint(texts)
    lines = [content["text/plain"] for content in shown]
    assert "fingerprinting: 400 of 400" in lines[-2] and lines[-1] == ""
    shown.clear()
    dedup_job.fingerprint(texts, progress=False)
    assert shown == []


SHOWN = """
import numpy, dedup_job
values = numpy.random.default_rng(1).integers(0, 2**64, 400_000, dtype=numpy.uint64)
dedup_job.pairs(values, k=16, progress=True)
"""


def test_a_line_appears_while_the_call_runs():
    process = subprocess.Popen([sys.executable, "-c", SHOWN], stderr=subprocess.PIPE)
    shown = b""
    while b"dedup-job: " not in shown:
        piece = process.stderr.read1(1 << 16)
        assert piece, shown
        shown += piece
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
