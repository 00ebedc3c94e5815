"""The program, called as the manifests and the units call it, on local files. Run by .ci/deploy, which says in
DEDUP_JOB_TEST_PROGRAM which program, and in MANIFESTS, LOOKUP_MANIFESTS, PARTS_MANIFESTS and ALL_MANIFESTS
what kustomize built.
"""

import contextlib
import datetime
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROGRAM = os.environ["DEDUP_JOB_TEST_PROGRAM"]
# How long a process may take to be ready, or to end.
PATIENCE = 60


def furnish(place):
    """Makes an archive, and the pages of the day that `yesterday` is: also of the day that it is after midnight."""
    shutil.copytree(ROOT / "testdata" / "archive", place / "archive")
    (place / "scratch").mkdir()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    for day in (today - datetime.timedelta(days=1), today):
        for pages in (f"pages/day={day}", f"days/{day}"):
            (place / pages).mkdir(parents=True)
            shutil.copy(ROOT / "testdata" / "day.parquet", place / pages)
    (place / "hits").mkdir()
    return place


@pytest.fixture
def place(tmp_path):
    return furnish(tmp_path)


def call(arguments, code=0):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stderr}"
    return done


def summary(done):
    [line] = done.stdout.splitlines()
    return json.loads(line)


def check_night(place, run):
    """A night, and the same night again. Gives the summary of the first, and its pairs."""
    first = summary(run())
    assert (first["new"]["documents"], first["hits"]) == (400, 113)
    [hits] = (place / "hits").iterdir()
    assert hits.name == f"{first['day']}.parquet"
    before = hits.read_bytes()
    again = summary(run())
    assert again["day"] != first["day"] or (again["commit"] == "already_there" and hits.read_bytes() == before)
    assert list((place / "scratch").iterdir()) == []
    return first, before


class Kubernetes:
    """The manifests, with the places of object storage and of the pod moved to a local directory."""

    def __init__(self, place, manifests="MANIFESTS"):
        self.manifests = list(yaml.safe_load_all(Path(os.environ[manifests]).read_text()))
        self.moved = {
            "s3://crawl": str(place),
            "/scratch": str(place / "scratch"),
            "/etc/dedup-job-serve-tls": str(place / "tls"),
            "/etc/dedup-job-serve-token": str(place / "tls"),
            "/etc/dedup-job": str(place),
        }
        maps = {one["metadata"]["name"]: one["data"] for one in self.manifests if one["kind"] == "ConfigMap"}
        self.environment = {}
        for data in maps.values():
            if "job.toml" in data:
                (place / "job.toml").write_text(self.move(data["job.toml"]))
            else:
                self.environment |= data

    def move(self, text):
        # Where such a path begins, and not in the middle of another.
        old = "|".join(re.escape(old) for old in sorted(self.moved, key=len, reverse=True))
        return re.sub(rf"(?<![\w/.])({old})", lambda found: self.moved[found[1]], text)

    def containers(self, name):
        [pod] = [
            one["spec"].get("jobTemplate", one)["spec"]["template"]["spec"]
            for one in self.manifests
            if one["kind"] in ("CronJob", "Deployment") and one["metadata"]["name"] == name
        ]
        return pod.get("initContainers", []) + pod["containers"]

    def arguments(self, container):
        """The command line."""
        arguments = [
            re.sub(r"\$\((\w+)\)", lambda variable: self.environment[variable[1]], argument)
            for argument in container["args"]
        ]
        return [self.move(argument) for argument in arguments]

    def run(self, container, code=0):
        return call(self.arguments(container), code)


def test_the_night_in_kubernetes(place):
    kubernetes = Kubernetes(place)
    [container] = kubernetes.containers("dedup-job")
    check_night(place, lambda: kubernetes.run(container))


def test_upkeep_in_kubernetes(place):
    kubernetes = Kubernetes(place)
    [night] = kubernetes.containers("dedup-job")
    kubernetes.run(night)
    steps = kubernetes.containers("dedup-job-upkeep")
    assert [step["args"][1] for step in steps] == ["compact", "vacuum"]
    for step in steps:
        summary(kubernetes.run(step))
    assert summary(kubernetes.run(night))["commit"] == "already_there"


# What kubectl does for the controller, without Kubernetes: the pods of a Job are processes, one after the other. PODS
# has the arguments of a part, and JOB_STATES a directory with what became of each Job.
KUBECTL = """\
#!/usr/bin/env python3
import json, os, pathlib, re, subprocess, sys
states = pathlib.Path(os.environ["JOB_STATES"])
verb, *arguments = sys.argv[1:]
if verb == "get":
    state = states / arguments[1]
    if not state.exists():
        sys.exit(f"there is no job {arguments[1]}")
    condition, message = state.read_text().split(" ", 1)
    if arguments[2:]:
        print(condition if "status==" in arguments[3] else message)
elif verb == "delete":
    (states / arguments[1]).unlink()
elif verb == "create" and arguments[0] == "job":
    assert arguments[2] == "--from=cronjob/dedup-job-part", arguments
    print(json.dumps({"name": arguments[1]}))
elif verb == "patch":
    made = json.load(sys.stdin)
    paths = {one["path"]: one["value"] for one in json.loads(arguments[arguments.index("--patch") + 1])}
    env = "/spec/template/spec/containers/0/env"
    values = {name: paths[f"{env}/{at}/value"] for at, name in enumerate(["JOB", "ROUND"])}
    print(json.dumps(made | {"completions": paths["/spec/completions"], "env": values}))
else:
    made = json.load(sys.stdin)
    result = "Complete "
    for index in range(made["completions"]):
        environment = made["env"] | {"JOB_COMPLETION_INDEX": str(index)}
        pod = json.loads(os.environ["PODS"])
        line = [re.sub(r"\\$\\((\\w+)\\)", lambda name: environment[name[1]], one) for one in pod]
        code = subprocess.call([os.environ["PROGRAM"], *line])
        if code:
            result = f"Failed Container dedup-job failed with exit code {code} matching FailJob rule at index 0"
    (states / made["name"]).write_text(result)
"""


def many_pods(place):
    """A function that runs the controller, and the place of the states of its Jobs."""
    kubernetes = Kubernetes(place, "PARTS_MANIFESTS")
    [controller], [part] = kubernetes.containers("dedup-job"), kubernetes.containers("dedup-job-part")
    programs, states, scratch = place / "bin", place / "states", place / "scratch"
    programs.mkdir()
    states.mkdir()
    (programs / "kubectl").write_text(KUBECTL)
    (programs / "kubectl").chmod(0o755)
    (programs / "dedup-job").symlink_to(PROGRAM)
    [script] = (one["data"]["controller.sh"] for one in kubernetes.manifests if "controller.sh" in one.get("data", {}))
    (place / "controller.sh").write_text(kubernetes.move(script))
    pods = [kubernetes.move(argument) for argument in part["args"]]
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "JOBS": kubernetes.move(kubernetes.environment["JOBS"]),
        "SCRATCH": str(scratch),
        "LOOK": "0.1",
        "JOB_STATES": str(states),
        "PODS": json.dumps(pods),
        "PROGRAM": PROGRAM,
    }

    def run():
        command = ["bash", str(place / "controller.sh"), *kubernetes.arguments(controller)]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)

    return run, states


def test_the_night_by_many_pods(place):
    run, states = many_pods(place)
    done = run()
    assert done.returncode == 0, done.stderr
    found = summary(done)
    assert (found["new"]["documents"], found["hits"]) == (400, 113)
    assert len(list(states.iterdir())) >= 2
    [hits] = (place / "hits").iterdir()
    before = hits.read_bytes()
    again = run()
    assert again.returncode == 0 and hits.read_bytes() == before, again.stderr
    assert list((place / "scratch").iterdir()) == []


def test_a_controller_takes_up_the_round_of_another(place):
    run, states = many_pods(place)
    program = place / "bin" / "dedup-job"
    program.unlink()
    # The first `split` ends well; then the pod is gone.
    program.write_text(f'#!/bin/sh\n"{PROGRAM}" "$@" && rm "$0" && exit 137\n')
    program.chmod(0o755)
    assert run().returncode == 137 and list(states.iterdir()) == []
    program.symlink_to(PROGRAM)
    done = run()
    assert done.returncode == 0, done.stderr
    assert summary(done)["hits"] == 113


def test_a_round_that_fails_ends_the_night_with_its_code(place):
    run, states = many_pods(place)
    program = place / "bin" / "dedup-job"
    program.unlink()
    # Between `split` and the first part, the batch changes.
    change = f"for day in {place}/pages/*; do cp {ROOT}/testdata/expected.parquet $day/day.parquet; done"
    program.write_text(f'#!/bin/sh\n"{PROGRAM}" "$@" && {change}\n')
    program.chmod(0o755)
    done = run()
    assert done.returncode in (65, 78), done.stderr
    assert "failed with exit code" in done.stderr and list(states.iterdir()) == []


def test_what_is_wrong_in_the_settings_is_78(place):
    kubernetes = Kubernetes(place)
    with open(place / "job.toml", "a") as settings:
        settings.write("maximum-distance = 3\n")
    [container] = kubernetes.containers("dedup-job")
    kubernetes.run(container, code=78)


def certify(directory):
    """The keys that the Secret would have, for this machine instead of the services."""
    directory.mkdir()
    (directory / "names").write_text("subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for line in (
        f"req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.crt",
        f"req {key} -subj /CN=dedup-job -keyout tls.key -out tls.csr",
        "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out tls.crt",
    ):
        subprocess.run(["openssl", *line.split()], cwd=directory, check=True, capture_output=True)


# A document of testdata/archive.
DOCUMENT = {"id": "archive/0000002166", "fp": "e12c66a0091d6a79", "day": "2026-01-28"}


@contextlib.contextmanager
def serving(arguments, log):
    """A server until SIGTERM, which has to end it well. Gives the address that it says."""
    with open(log, "w") as errors:
        process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=errors)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (said := re.search(r"listening on (https?://[\d.]+:\d+)", log.read_text())):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield said[1]
        process.terminate()
        assert process.wait(PATIENCE) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(url, body=None, token=None, keys=None):
    """Sends a request, with the keys of a directory; gives its status and its body."""
    headers = {"content-type": "application/json"} if body else {}
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)
    context = None
    if keys:
        context = ssl.create_default_context(cafile=keys / "ca.crt")
        if (keys / "tls.crt").exists():
            context.load_cert_chain(keys / "tls.crt", keys / "tls.key")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def check_lookups(address, **how):
    """The server is ready, and finds a document of the archive."""
    for path in ("/readyz", "/healthz"):
        assert ask(address + path, keys=how.get("keys"))[0] == 200
    status, answer = ask(f"{address}/v1/lookup", {"fp": DOCUMENT["fp"]}, **how)
    assert status == 200 and DOCUMENT | {"distance": 0} in json.loads(answer)["hits"], answer


@pytest.mark.parametrize("manifests", ["LOOKUP_MANIFESTS", "ALL_MANIFESTS"])
def test_lookups_in_kubernetes(place, manifests):
    kubernetes = Kubernetes(place, manifests)
    [index], [serve] = kubernetes.containers("dedup-job-index"), kubernetes.containers("dedup-job-serve")
    # Without an index.
    kubernetes.moved["0.0.0.0:8080"] = f"127.0.0.1:{free_port()}"
    certify(place / "tls")
    (place / "tls" / "token").write_text("a-token\n")
    kubernetes.run(serve, code=64)
    first = summary(kubernetes.run(index))
    assert (first["rows"], first["added_rows"]) == (2970, 2970)
    again = summary(kubernetes.run(index))
    assert (again["rows"], again["added_rows"], again["version"]) == (2970, 0, first["version"])
    with serving(kubernetes.arguments(serve), place / "serve.log") as address:
        if manifests == "LOOKUP_MANIFESTS":
            check_lookups(address)
            return
        address = address.replace("127.0.0.1", "localhost")
        assert address.startswith("https:")
        check_lookups(address, token="a-token", keys=place / "tls")
        assert ask(f"{address}/v1/info", keys=place / "tls")[0] == 401
        # Without a certificate nobody is let in.
        (place / "stranger").mkdir()
        shutil.copy(place / "tls" / "ca.crt", place / "stranger")
        with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
            ask(f"{address}/v1/info", token="a-token", keys=place / "stranger")


def test_a_server_does_not_answer_others_without_keys(place):
    kubernetes = Kubernetes(place, "LOOKUP_MANIFESTS")
    kubernetes.run(*kubernetes.containers("dedup-job-index"))
    arguments = kubernetes.arguments(*kubernetes.containers("dedup-job-serve"))
    arguments.remove("--insecure")
    said = call(arguments, 64).stderr
    assert "0.0.0.0:8080" in said and "--tls-cert" in said


def commands(path):
    """The command lines of a unit or a drop-in."""
    text = (ROOT / path).read_text().replace("\\\n", "")
    return [command.split() for command in re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)]


def test_lookups_of_the_units(place):
    settings = (ROOT / "deploy/dedup-job.toml").read_text()
    (place / "dedup-job.toml").write_text(settings.replace("/var/lib/dedup-job", str(place)))
    certify(place / "tls")
    moved = {
        "/etc/dedup-job.toml": str(place / "dedup-job.toml"),
        "/var/lib/dedup-job-index": str(place / "index"),
        "/var/lib/dedup-job": str(place),
        "127.0.0.1:8080": f"127.0.0.1:{free_port()}",
        "0.0.0.0:8443": f"127.0.0.1:{free_port()}",
        "%d/ca.pem": str(place / "tls" / "ca.crt"),
        "%d/cert.pem": str(place / "tls" / "tls.crt"),
        "%d/key.pem": str(place / "tls" / "tls.key"),
    }

    def command(path):
        [[program, *arguments]] = commands(path)
        assert program == "/usr/local/bin/dedup-job"
        for old, new in moved.items():
            arguments = [re.sub(rf"(?<![\w/.]){re.escape(old)}(?![\w-])", new, argument) for argument in arguments]
        return arguments

    assert summary(call(command("deploy/dedup-job-index.service")))["rows"] == 2970
    with serving(command("deploy/dedup-job-serve.service"), place / "serve.log") as address:
        check_lookups(address)
    other = command("deploy/dedup-job-serve.service.d/other-machines.conf")
    with serving(other, place / "other.log") as address:
        address = address.replace("127.0.0.1", "localhost")
        check_lookups(address, keys=place / "tls")


def test_the_night_of_the_unit(place):
    unit = (ROOT / "deploy/dedup-job.service").read_text()
    [command] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    settings = (ROOT / "deploy/dedup-job.toml").read_text()
    (place / "dedup-job.toml").write_text(settings.replace("/var/lib/dedup-job", str(place)))
    program, *arguments = command.replace("/etc/dedup-job.toml", str(place / "dedup-job.toml")).split()
    assert program == "/usr/local/bin/dedup-job"
    check_night(place, lambda: call(arguments))
