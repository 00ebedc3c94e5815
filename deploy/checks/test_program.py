"""The program, called as the manifests and the unit call it, on local files. Run by .ci/deploy, which says in
DEDUP_JOB_TEST_PROGRAM which program and in MANIFESTS what kustomize built.
"""

import datetime
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROGRAM = os.environ["DEDUP_JOB_TEST_PROGRAM"]


@pytest.fixture
def place(tmp_path):
    """An archive, and the pages of the day that `yesterday` is: also of the day that it is after midnight."""
    shutil.copytree(ROOT / "testdata" / "archive", tmp_path / "archive")
    (tmp_path / "scratch").mkdir()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    for day in (today - datetime.timedelta(days=1), today):
        for pages in (f"pages/day={day}", f"days/{day}"):
            (tmp_path / pages).mkdir(parents=True)
            shutil.copy(ROOT / "testdata" / "day.parquet", tmp_path / pages)
    (tmp_path / "hits").mkdir()
    return tmp_path


def call(arguments, code=0):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stderr}"
    return done


def summary(done):
    [line] = done.stdout.splitlines()
    return json.loads(line)


def check_night(place, run):
    """A night, and the same night again."""
    first = summary(run())
    assert (first["new"]["documents"], first["hits"]) == (400, 115)
    [hits] = (place / "hits").iterdir()
    assert hits.name == f"{first['day']}.parquet"
    before = hits.read_bytes()
    again = summary(run())
    assert again["day"] != first["day"] or (again["commit"] == "already_there" and hits.read_bytes() == before)
    assert list((place / "scratch").iterdir()) == []


class Cluster:
    """The manifests, with the places of object storage and of the pod moved to a local directory."""

    def __init__(self, place):
        self.manifests = list(yaml.safe_load_all(Path(os.environ["MANIFESTS"]).read_text()))
        self.moved = {"s3://crawl": str(place), "/scratch": str(place / "scratch"), "/etc/dedup-job": str(place)}
        maps = {one["metadata"]["name"]: one["data"] for one in self.manifests if one["kind"] == "ConfigMap"}
        self.environment = {}
        for data in maps.values():
            if "job.toml" in data:
                (place / "job.toml").write_text(self.move(data["job.toml"]))
            else:
                self.environment |= data

    def move(self, text):
        for old, new in self.moved.items():
            text = text.replace(old, new)
        return text

    def containers(self, name):
        [pod] = [
            one["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            for one in self.manifests
            if one["kind"] == "CronJob" and one["metadata"]["name"] == name
        ]
        return pod.get("initContainers", []) + pod["containers"]

    def run(self, container, code=0):
        arguments = [
            re.sub(r"\$\((\w+)\)", lambda variable: self.environment[variable[1]], argument)
            for argument in container["args"]
        ]
        return call([self.move(argument) for argument in arguments], code)


def test_the_night_in_the_cluster(place):
    cluster = Cluster(place)
    [container] = cluster.containers("dedup-job")
    check_night(place, lambda: cluster.run(container))


def test_upkeep_in_the_cluster(place):
    cluster = Cluster(place)
    [night] = cluster.containers("dedup-job")
    cluster.run(night)
    steps = cluster.containers("dedup-job-upkeep")
    assert [step["args"][1] for step in steps] == ["compact", "vacuum"]
    for step in steps:
        summary(cluster.run(step))
    assert summary(cluster.run(night))["commit"] == "already_there"


def test_what_is_wrong_in_the_settings_is_78(place):
    cluster = Cluster(place)
    with open(place / "job.toml", "a") as settings:
        settings.write("maximum-distance = 3\n")
    [container] = cluster.containers("dedup-job")
    cluster.run(container, code=78)


def test_the_night_of_the_unit(place):
    unit = (ROOT / "deploy/dedup-job.service").read_text()
    [command] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    settings = (ROOT / "deploy/dedup-job.toml").read_text()
    (place / "dedup-job.toml").write_text(settings.replace("/var/lib/dedup-job", str(place)))
    program, *arguments = command.replace("/etc/dedup-job.toml", str(place / "dedup-job.toml")).split()
    assert program == "/usr/local/bin/dedup-job"
    check_night(place, lambda: call(arguments))
