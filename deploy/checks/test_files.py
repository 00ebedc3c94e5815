"""What a schema cannot say about the files in deploy/: that they agree with the program and with each other, and that
the pods have no rights that they do not need. Run by .ci/deploy, which says in MANIFESTS what kustomize built.
"""

import ast
import copy
import fnmatch
import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def text(path):
    return (ROOT / path).read_text()


def found(pattern, text):
    """The groups of the one place where a pattern is."""
    [groups] = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    return groups


MANIFESTS = list(yaml.safe_load_all(Path(os.environ["MANIFESTS"]).read_text()))


def jobs(manifests):
    return {one["metadata"]["name"]: one["spec"] for one in manifests if one["kind"] == "CronJob"}


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


# Exit codes: the README's table is the contract.


def documented():
    rows = re.findall(r"^\| ([\d, ]+) \| (.+) \|$", text("README.md"), re.MULTILINE)
    return {int(code) for codes, _ in rows for code in codes.split(",")}


def permanent():
    """The codes for which the DAG does not try again; the others must have the same."""
    tree = ast.parse(text("deploy/airflow/dedup_job_dag.py"))
    [value] = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "PERMANENT"]
    return set(ast.literal_eval(value))


def test_the_program_says_the_codes_of_the_readme():
    sentence = found(r"Exit codes: (.*?)\. On any", text("jobs/dedup-job/src/args.rs"))
    assert {int(code) for code in re.findall(r"\b\d+\b", sentence)} == documented()


def test_what_is_not_tried_again_is_a_failure_of_the_readme():
    assert permanent() < documented() - {0}


def test_systemd_does_not_try_these_again():
    unit = text("deploy/dedup-job.service")
    assert {int(code) for code in found(r"^RestartPreventExitStatus=(.*?)$", unit).split()} == permanent()


def wrong_policy(job):
    """What is wrong in a job's podFailurePolicy."""
    rules = job["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"] for rule in rules if "onExitCodes" in rule}
    conditions = {rule["action"]: rule["onPodConditions"] for rule in rules if "onPodConditions" in rule}
    names = {container["name"] for container in containers(job["template"]["spec"])}
    again = documented() - permanent() - {0}
    if set(codes["FailJob"]["values"]) != permanent():
        yield "other codes fail the job than those for which no other program tries again"
    if not set(codes["Count"]["values"]) <= again:
        yield "counts codes that are not to be tried again, or are not in the README"
    if [condition["type"] for condition in conditions.get("Ignore", [])] != ["DisruptionTarget"]:
        yield "a disruption counts"
    if any(rule["values"] != sorted(set(rule["values"])) for rule in codes.values()):
        yield "the API wants codes in order"
    if any(
        rule["operator"] != "In" or rule.get("containerName", next(iter(names))) not in names for rule in codes.values()
    ):
        yield "a rule names no container of the pod"
    if job["template"]["spec"]["restartPolicy"] != "Never" or job["backoffLimit"] < 1:
        yield "the API wants restartPolicy Never, and retries need a limit above 0"


# Rights: Kubernetes' standard for restricted pods, and more.


def too_much(pod):
    """Which rights a pod has that it should not have."""
    whole = pod.get("securityContext", {})
    if not whole.get("runAsNonRoot") or whole.get("runAsUser") != 65532 or whole.get("runAsGroup") != 65532:
        yield "the pod does not run as 65532"
    if whole.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "the pod has no seccomp profile"
    if pod.get("hostNetwork") or pod.get("hostPID") or pod.get("hostIPC"):
        yield "the pod is in a namespace of the host"
    if pod.get("automountServiceAccountToken") is not False:
        yield "the pod is given a token of the cluster"
    for volume in pod["volumes"]:
        if volume.keys() - {"name"} - {"configMap", "emptyDir", "ephemeral"}:
            yield f"volume {volume['name']} is of a kind that is not needed"
        if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
            yield f"volume {volume['name']} has no limit"
    for container in containers(pod):
        name, own = container["name"], container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            yield f"{name} can gain privileges"
        if own.get("capabilities") != {"drop": ["ALL"]}:
            yield f"{name} has capabilities"
        if own.get("readOnlyRootFilesystem") is not True:
            yield f"{name} can write to its image"
        if own.keys() - {"allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem"}:
            yield f"{name} overrides what holds for the pod"
        resources = container.get("resources", {})
        if resources.get("requests", {}).keys() < {"cpu", "memory"} or resources["requests"] != resources.get("limits"):
            yield f"{name} has other limits than requests, or none"
        if {"mountPath": "/scratch", "name": "scratch"} not in container.get("volumeMounts", []):
            yield f"{name} has no scratch directory"


# How the objects hang together.


def late(job):
    """Whether a try may begin on another day than the schedule says."""
    minute, hour, *_ = job["schedule"].split()
    start = (int(hour) * 60 + int(minute)) * 60
    last = start + job["startingDeadlineSeconds"] + job["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    return job["timeZone"] != "Etc/UTC" or last >= 24 * 60 * 60


def loose_ends(manifests):
    """Names that are named and not there."""
    by_kind = {}
    for one in manifests:
        by_kind.setdefault(one["kind"], {})[one["metadata"]["name"]] = one
    if "Secret" in by_kind:
        yield "a Secret is in the tree"
    [policy] = by_kind["NetworkPolicy"].values()
    if set(policy["spec"]["policyTypes"]) != {"Ingress", "Egress"} or "ingress" in policy["spec"]:
        yield "the network policy lets something in"
    if {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} != {53, 443}:
        yield "the network policy lets more or less out than names and TLS"
    for name, job in jobs(manifests).items():
        template = job["jobTemplate"]["spec"]["template"]
        pod = template["spec"]
        wanted = policy["spec"]["podSelector"]["matchLabels"].items()
        if not wanted <= template["metadata"]["labels"].items():
            yield f"{name}: the network policy is not for its pods"
        if pod["serviceAccountName"] not in by_kind["ServiceAccount"]:
            yield f"{name}: there is no service account {pod['serviceAccountName']}"
        maps = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in containers(pod):
            variables = set()
            for source in container["envFrom"]:
                if "configMapRef" in source:
                    maps.append(source["configMapRef"]["name"])
                    variables |= by_kind["ConfigMap"].get(maps[-1], {"data": {}})["data"].keys()
            for variable in re.findall(r"\$\((\w+)\)", " ".join(container["args"])):
                if variable not in variables:
                    yield f"{name}: {variable} is not set"
            for mount in container["volumeMounts"]:
                if mount["name"] not in volumes:
                    yield f"{name}: there is no volume {mount['name']}"
        for missing in set(maps) - by_kind["ConfigMap"].keys():
            yield f"{name}: there is no configuration {missing}"
        if "yesterday" in str(pod) and late(job):
            yield f"{name}: `yesterday` may be another day for the last try"
        if job["concurrencyPolicy"] != "Forbid":
            yield f"{name}: may run twice at once"


def wrong(manifests):
    """Everything that is wrong."""
    assert len(jobs(manifests)) == 2
    yield from loose_ends(manifests)
    for name, job in jobs(manifests).items():
        job = job["jobTemplate"]["spec"]
        yield from (f"{name}: {what}" for what in wrong_policy(job))
        yield from (f"{name}: {what}" for what in too_much(job["template"]["spec"]))


def test_nothing_is_wrong_in_the_manifests():
    assert list(wrong(MANIFESTS)) == []


def night(manifests):
    return jobs(manifests)["dedup-job"]


def of_night(manifests):
    return night(manifests)["jobTemplate"]["spec"]


def pod(manifests):
    return of_night(manifests)["template"]["spec"]


def security(manifests):
    return pod(manifests)["containers"][0]["securityContext"]


def rule(manifests, at):
    return of_night(manifests)["podFailurePolicy"]["rules"][at]


FAULTS = {
    "other codes fail": lambda m: rule(m, 0)["onExitCodes"]["values"].append(79),
    "counts codes": lambda m: rule(m, 2)["onExitCodes"].update(values=[65]),
    "a disruption counts": lambda m: rule(m, 1).update(action="Count"),
    "codes in order": lambda m: rule(m, 0)["onExitCodes"]["values"].reverse(),
    "names no container": lambda m: rule(m, 0)["onExitCodes"].update(containerName="dedupjob"),
    "restartPolicy": lambda m: pod(m).update(restartPolicy="OnFailure"),
    "as 65532": lambda m: pod(m)["securityContext"].pop("runAsNonRoot"),
    "seccomp": lambda m: pod(m)["securityContext"].pop("seccompProfile"),
    "namespace of the host": lambda m: pod(m).update(hostNetwork=True),
    "token of the cluster": lambda m: pod(m).pop("automountServiceAccountToken"),
    "not needed": lambda m: pod(m)["volumes"].append({"name": "etc", "hostPath": {"path": "/etc"}}),
    "has no limit": lambda m: pod(m)["volumes"].append({"name": "tmp", "emptyDir": {}}),
    "gain privileges": lambda m: security(m).pop("allowPrivilegeEscalation"),
    "has capabilities": lambda m: security(m)["capabilities"].update(add=["SYS_ADMIN"]),
    "write to its image": lambda m: security(m).update(readOnlyRootFilesystem=False),
    "overrides": lambda m: security(m).update(runAsUser=0),
    "other limits than": lambda m: pod(m)["containers"][0]["resources"]["limits"].pop("memory"),
    "no scratch": lambda m: pod(m)["containers"][0]["volumeMounts"].pop(),
    "a Secret": lambda m: m.append({"kind": "Secret", "metadata": {"name": "keys"}}),
    "lets something in": lambda m: m[-1]["spec"].update(ingress=[{}]),
    "names and TLS": lambda m: m[-1]["spec"]["egress"][1]["ports"].append({"port": 80}),
    "not for its pods": lambda m: m[-1]["spec"]["podSelector"]["matchLabels"].update(app="dedup-job"),
    "no service account": lambda m: pod(m).update(serviceAccountName="nobody"),
    "is not set": lambda m: pod(m)["containers"][0]["args"].append("--base=$(BASE)"),
    "no volume": lambda m: pod(m)["volumes"].pop(),
    "no configuration": lambda m: pod(m)["volumes"][0]["configMap"].update(name="settings"),
    "another day": lambda m: night(m).update(startingDeadlineSeconds=36000),
    "twice at once": lambda m: night(m).update(concurrencyPolicy="Allow"),
}


@pytest.mark.parametrize("message", FAULTS)
def test_a_fault_in_the_manifests_is_found(message):
    manifests = copy.deepcopy(MANIFESTS)
    assert manifests[-1]["kind"] == "NetworkPolicy"
    FAULTS[message](manifests)
    assert [what for what in wrong(manifests) if message in what] != []


# Versions and sizes.


def test_versions_agree():
    package = tomllib.loads(text("Cargo.toml"))["workspace"]["package"]
    containerfile = text("deploy/Containerfile")
    build, debian = found(r"^ARG BUILD_IMAGE=rust:([\d.]+)-slim-(\w+)$", containerfile)
    assert build == package["rust-version"]
    if (pin := ROOT / "rust-toolchain.toml").exists():
        channel = tomllib.loads(pin.read_text())["toolchain"]["channel"]
        assert channel == build or channel.startswith(f"{build}.")
    assert found(r"^ARG RUNTIME_IMAGE=(\S+)$", containerfile) == f"debian:{debian}-slim"
    assert found(r"^ARG VERSION=(\S+)$", containerfile) == package["version"]
    images = {
        container["image"]
        for job in jobs(MANIFESTS).values()
        for container in containers(job["jobTemplate"]["spec"]["template"]["spec"])
    }
    assert images == {f"dedup-job:{package['version']}"}
    assert f"-t dedup-job:{package['version']} " in text("deploy/README.md")


def sent(path):
    """Whether the builder is sent a path, by the rules of the ignore file: the last that matches decides."""
    answer = True
    for line in text("deploy/Containerfile.dockerignore").splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!").removeprefix("**/")
            places = [path, *(str(parent) for parent in Path(path).parents)]
            if any(fnmatch.fnmatch(place, pattern) for place in places) or (
                "**/" in line and pattern in Path(path).parts
            ):
                answer = line.startswith("!")
    return answer


def test_the_builder_is_sent_what_it_copies_and_no_more():
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", text("deploy/Containerfile"), re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        assert sent(source), source
    assert sent("crates/hamming/src/lib.rs")
    for other in (
        ".git/HEAD",
        "target/release/dedup-job",
        "testdata/day.parquet",
        "deploy/README.md",
        "README.md",
        "crates/hamming/fuzz/Cargo.toml",
        "crates/engine/target/x",
    ):
        assert not sent(other), other


def test_members_of_the_workspace_are_all_sent():
    for member in tomllib.loads(text("Cargo.toml"))["workspace"]["members"]:
        for manifest in ROOT.glob(f"{member}/Cargo.toml"):
            assert sent(str(manifest.relative_to(ROOT)))


def size(written):
    number, unit = re.fullmatch(r"(\d+)([KMGT])(?:i?B)?", written).groups()
    return int(number) << {"K": 10, "M": 20, "G": 30, "T": 40}[unit]


def test_systemd_allows_the_memory_that_the_settings_ask_for():
    settings = tomllib.loads(text("deploy/dedup-job.toml"))
    limit = size(found(r"^MemoryMax=(\S+)$", text("deploy/dedup-job.service")))
    # The README says the program takes about its limit: a quarter more is safe.
    assert limit >= size(settings["memory-limit"]) * 5 / 4


def seconds(written):
    return sum(
        int(number) * {"h": 3600, "min": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)(\D+)", written)
    )


def test_systemd_starts_no_night_after_midnight():
    unit, timer = text("deploy/dedup-job.service"), text("deploy/dedup-job.timer")
    setting = {
        name: found(rf"^{name}=(\S+)$", unit)
        for name in ("StartLimitIntervalSec", "StartLimitBurst", "TimeoutStartSec", "RestartSec")
    }
    hour, minute = found(r"^OnCalendar=\*-\*-\* (\d+):(\d+):00 UTC$", timer)
    first = int(hour) * 3600 + int(minute) * 60 + seconds(found(r"^RandomizedDelaySec=(\S+)$", timer))
    restarts = int(setting["StartLimitBurst"]) - 1
    taken = restarts * (seconds(setting["TimeoutStartSec"]) + seconds(setting["RestartSec"]))
    assert first + taken < 24 * 3600
    # All of them are counted, and none of the night before is.
    assert taken < seconds(setting["StartLimitIntervalSec"]) <= 24 * 3600


@pytest.mark.parametrize("path", ["deploy/dedup-job.toml", "deploy/kubernetes/job.toml"])
def test_each_day_has_its_own_output(path):
    settings = tomllib.loads(text(path))
    assert "{day}" in settings["run"]["new"] and "{day}" in settings["run"]["output"]
    assert settings["run"]["append"] is True


def test_no_key_is_in_the_tree():
    keys = re.compile(
        r"AKIA[0-9A-Z]{16}|-----BEGIN|(?i:secret[_-]?(access[_-]?)?key|account[_-]?key|password)\s*[=:]\s*\S"
    )
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path != Path(__file__) and "__pycache__" not in path.parts:
            assert not keys.search(path.read_text()), path
