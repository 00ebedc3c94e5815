"""What a schema cannot say about the files in deploy/: that they agree with the program and with each other, and that
the pods have no rights that they do not need. Run by .ci/deploy, which says in MANIFESTS, LOOKUP_MANIFESTS,
PARTS_MANIFESTS and ALL_MANIFESTS what kustomize built: of the base, with lookups, with many pods, and with lookups,
TLS, a token and many pods.
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


MANIFESTS, LOOKUP, PARTS, ALL = (
    list(yaml.safe_load_all(Path(os.environ[name]).read_text()))
    for name in ("MANIFESTS", "LOOKUP_MANIFESTS", "PARTS_MANIFESTS", "ALL_MANIFESTS")
)
NIGHT, INDEX, SERVE, PART = "dedup-job", "dedup-job-index", "dedup-job-serve", "dedup-job-part"
# The secrets that a volume may have.
KEYS = {"dedup-job-serve-tls", "dedup-job-serve-token"}


def named(manifests, kind):
    return {one["metadata"]["name"]: one for one in manifests if one["kind"] == kind}


def jobs(manifests):
    return {name: one["spec"] for name, one in named(manifests, "CronJob").items()}


def templates(manifests):
    """The templates of all pods, by the names of what makes them."""
    made = {name: job["jobTemplate"]["spec"]["template"] for name, job in jobs(manifests).items()}
    made |= {name: one["spec"]["template"] for name, one in named(manifests, "Deployment").items()}
    return made


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def labels(manifests, name):
    return templates(manifests)[name]["metadata"]["labels"]


# Exit codes: the table of docs/errors-and-exit-codes.md is the contract.


def documented():
    rows = re.findall(r"^\| ([\d, ]+) \| (.+) \|$", text("docs/errors-and-exit-codes.md"), re.MULTILINE)
    return {int(code) for codes, _ in rows for code in codes.split(",")}


def permanent():
    """The codes for which the DAGs do not try again; the others must have the same."""
    tree = ast.parse(text("deploy/airflow/dedup_job_operator.py"))
    [value] = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "PERMANENT"]
    return set(ast.literal_eval(value))


def test_the_program_says_the_codes_of_the_documents():
    sentence = found(r"Exit codes: (.*?)\. On any", text("jobs/commands/src/args/mod.rs"))
    assert {int(code) for code in re.findall(r"\b\d+\b", sentence)} == documented()


def test_what_is_not_tried_again_is_a_documented_failure():
    assert permanent() < documented() - {0}


UNITS = sorted(path.name for path in DEPLOY.glob("*.service"))


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_does_not_try_these_again(unit):
    codes = found(r"^RestartPreventExitStatus=(.*?)$", text(f"deploy/{unit}"))
    assert {int(code) for code in codes.split()} == permanent()


def retries(job):
    """How often a pod of a job is started again; of an Indexed Job, each of them."""
    return job["backoffLimitPerIndex"] if job.get("completionMode") == "Indexed" else job["backoffLimit"]


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
        yield "counts codes that are not to be tried again, or are not documented"
    if [condition["type"] for condition in conditions.get("Ignore", [])] != ["DisruptionTarget"]:
        yield "a disruption counts"
    if any(rule["values"] != sorted(set(rule["values"])) for rule in codes.values()):
        yield "the API wants codes in order"
    if any(
        rule["operator"] != "In" or rule.get("containerName", next(iter(names))) not in names for rule in codes.values()
    ):
        yield "a rule names no container of the pod"
    if job["template"]["spec"]["restartPolicy"] != "Never" or retries(job) < 1:
        yield "the API wants restartPolicy Never, and retries need a limit above 0"


# Rights: Kubernetes' standard for restricted pods, and more.


def too_much(pod, controls=False):
    """Which rights a pod has that it should not have; one that controls others has a token."""
    whole = pod.get("securityContext", {})
    if not whole.get("runAsNonRoot") or whole.get("runAsUser") != 65532 or whole.get("runAsGroup") != 65532:
        yield "the pod does not run as 65532"
    if whole.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "the pod has no seccomp profile"
    if pod.get("hostNetwork") or pod.get("hostPID") or pod.get("hostIPC"):
        yield "the pod is in a namespace of the host"
    if pod.get("automountServiceAccountToken") is not controls:
        yield "the pod is given a token of the cluster"
    for volume in pod["volumes"]:
        is_key = volume.get("secret", {}).get("secretName") in KEYS
        if volume.keys() - {"name"} - {"configMap", "emptyDir", "ephemeral"} and not is_key:
            yield f"volume {volume['name']} is of a kind that is not needed"
        # Bits of the group, which is the pod's own, and none of others.
        if is_key and volume["secret"].get("defaultMode") != 0o440:
            yield f"volume {volume['name']} can be read by others, or not by the program"
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
    if named(manifests, "Secret"):
        yield "a Secret is in the tree"
    maps_there = named(manifests, "ConfigMap")
    for name, template in templates(manifests).items():
        pod = template["spec"]
        account = pod.get("serviceAccountName")
        if account is not None and account not in named(manifests, "ServiceAccount"):
            yield f"{name}: there is no service account {account}"
        maps = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in containers(pod):
            variables = {one["name"] for one in container.get("env", [])}
            for source in container.get("envFrom", []):
                if "configMapRef" in source:
                    maps.append(source["configMapRef"]["name"])
                    variables |= maps_there.get(maps[-1], {"data": {}})["data"].keys()
            for variable in re.findall(r"\$\((\w+)\)", " ".join(container["args"])):
                if variable not in variables:
                    yield f"{name}: {variable} is not set"
            for mount in container["volumeMounts"]:
                if mount["name"] not in volumes:
                    yield f"{name}: there is no volume {mount['name']}"
        for missing in set(maps) - maps_there.keys():
            yield f"{name}: there is no configuration {missing}"
        if "yesterday" in str(pod) and late(jobs(manifests)[name]):
            yield f"{name}: `yesterday` may be another day for the last try"
    for name, job in jobs(manifests).items():
        if job["concurrencyPolicy"] != "Forbid":
            yield f"{name}: may run twice at once"


# Who can call whom, as network policies have it. They are added up: what one of them allows is allowed, and a pod that
# none is for is open.

STRANGER = None


def is_selected(selector, labels):
    assert selector.keys() <= {"matchLabels"}
    return selector.get("matchLabels", {}).items() <= labels.items()


def is_peer(peer, other):
    """Whether a policy's peer is a pod with these labels; a stranger is all that is no pod of ours."""
    if other is STRANGER:
        return bool(peer.keys() & {"ipBlock", "namespaceSelector"})
    return peer.keys() == {"podSelector"} and is_selected(peer["podSelector"], other)


def allows(manifests, direction, labels, other, port):
    policies = [
        policy["spec"]
        for policy in named(manifests, "NetworkPolicy").values()
        if direction in policy["spec"]["policyTypes"] and is_selected(policy["spec"]["podSelector"], labels)
    ]
    peers = {"Ingress": "from", "Egress": "to"}[direction]
    rules = [rule for policy in policies for rule in policy.get(direction.lower(), [])]
    return not policies or any(
        (peers not in rule or any(is_peer(peer, other) for peer in rule[peers]))
        and ("ports" not in rule or port in [one["port"] for one in rule["ports"]])
        for rule in rules
    )


def connections(manifests):
    """(from, to, port) of all that can be opened; None is a stranger."""
    pods = {name: labels(manifests, name) for name in templates(manifests)}
    policies = [policy["spec"] for policy in named(manifests, "NetworkPolicy").values()]
    rules = [rule for policy in policies for way in ("ingress", "egress") for rule in policy.get(way, [])]
    # All ports that are named, and one that is not.
    ports = {port["port"] for rule in rules for port in rule.get("ports", [])} | {1}
    for port in ports:
        for one in pods:
            if allows(manifests, "Egress", pods[one], STRANGER, port):
                yield (one, STRANGER, port)
            if allows(manifests, "Ingress", pods[one], STRANGER, port):
                yield (STRANGER, one, port)
            for other in pods:
                leaves = allows(manifests, "Egress", pods[one], pods[other], port)
                if leaves and allows(manifests, "Ingress", pods[other], pods[one], port):
                    yield (one, other, port)


def wrong_connections(manifests):
    """What the policies let through beside names and TLS and what lookups need, and what they do not."""
    expected = {(name, STRANGER, port) for name in templates(manifests) for port in (53, 443)}
    if PART in templates(manifests):
        # Kubernetes itself.
        expected.add((NIGHT, STRANGER, 6443))
    if SERVE in templates(manifests):
        expected.add((STRANGER, SERVE, port_of(manifests, SERVE)))
    for one, other, port in set(connections(manifests)) ^ expected:
        what = "does not get" if (one, other, port) in expected else "gets"
        yield f"{one or 'a stranger'} {what} to {other or 'a stranger'} at {port}"


# Many pods: the controller and the pattern of the Jobs that it makes.


def wrong_parts(manifests):
    pattern, controller = jobs(manifests)[PART], container_of(manifests, NIGHT)
    if pattern.get("suspend") is not True:
        yield "the clock starts a Job without a round"
    if pattern["jobTemplate"]["spec"].get("completionMode") != "Indexed":
        yield "the pods of a round have no numbers"
    part = container_of(manifests, PART)
    if option(part, "part") != "$(JOB_COMPLETION_INDEX)" or option(part, "round") != "$(ROUND)":
        yield "a pod does another part than that of its number"
    maps = [one["data"] for one in named(manifests, "ConfigMap").values()]
    [script] = (data["controller.sh"] for data in maps if "controller.sh" in data)
    set_there = re.findall(r"containers/0/env/(\d)/value", script)
    if [part["env"][int(at)]["name"] for at in set_there] != ["JOB", "ROUND"]:
        yield "the controller sets other variables"
    for path in (controller["command"][1], *re.findall(r"=(/etc/\S+)", script)):
        mounts = [one["mountPath"] for one in controller["volumeMounts"]]
        if not any(path.startswith(f"{mount}/") for mount in mounts):
            yield f"the controller does not find {path}"
    if not any("JOBS" in data for data in maps):
        yield "there is no place for jobs"
    [role] = named(manifests, "Role").values()
    allowed = {resource: sorted(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    if allowed != {"cronjobs": ["get"], "jobs": ["create", "delete", "get", "list", "watch"]}:
        yield "the controller may do more than it does, or less"
    [binding] = named(manifests, "RoleBinding").values()
    [subject] = binding["subjects"]
    account = templates(manifests)[NIGHT]["spec"]["serviceAccountName"]
    if (subject["name"], binding["roleRef"]["name"]) != (account, role["metadata"]["name"]):
        yield "somebody else has the rights of the controller"
    called = set(re.findall(r"kubectl (\w+)", script))
    if called != {"create", "delete", "get", "patch"}:
        yield "the controller calls something else"


# Lookups: from the archive to the index, and from the index to who asks.


def container_of(manifests, name):
    [container] = containers(templates(manifests)[name]["spec"])
    return container


def option(container, name):
    """The value of an option, which is there once at most."""
    values = [value for value in container["args"] if value.startswith(f"--{name}=")]
    assert len(values) <= 1, values
    return values[0].partition("=")[2] if values else None


def port_of(manifests, name):
    return int(option(container_of(manifests, name), "listen").rpartition(":")[2])


def service_port(manifests, service, target):
    """The port by which a service leads to the pods of `target`, if it leads to them and to no others."""
    spec = service["spec"]
    assert spec["selector"]
    led_to = [name for name in templates(manifests) if spec["selector"].items() <= labels(manifests, name).items()]
    ports = {port["name"]: port["containerPort"] for port in container_of(manifests, target)["ports"]}
    [port] = spec["ports"]
    if led_to == [target] and ports == {port["targetPort"]: port_of(manifests, target)}:
        return port["port"]


def selected(manifests, selector):
    return [name for name in templates(manifests) if selector.items() <= labels(manifests, name).items()]


def wrong_lookups(manifests):
    index, serve = container_of(manifests, INDEX), container_of(manifests, SERVE)
    spec = named(manifests, "Deployment")[SERVE]["spec"]
    port = port_of(manifests, SERVE)
    if option(serve, "listen") != f"0.0.0.0:{port}":
        yield "the servers listen to themselves"
    if service_port(manifests, named(manifests, "Service")[SERVE], SERVE) != port:
        yield "the servers' service is not for their port"
    budget = named(manifests, "PodDisruptionBudget")[SERVE]["spec"]
    for selector in (spec["selector"], budget["selector"]):
        if selected(manifests, selector["matchLabels"]) != [SERVE]:
            yield "the servers are not selected alone"
    if not 1 <= budget["minAvailable"] < spec["replicas"]:
        yield "a node with a server cannot be drained, or all can at once"
    if spec["replicas"] > 1 and option(serve, "remember"):
        yield "one server does not know what another remembers"

    [environment] = (one["data"] for one in named(manifests, "ConfigMap").values() if "ARCHIVE" in one["data"])
    places = [option(index, "base"), option(index, "output"), option(serve, "index")]
    if places != ["$(ARCHIVE)", "$(INDEX)", "$(INDEX)"]:
        yield "the index is not of the archive, or the servers have another"
    archive, output = (environment.get(one, one).rstrip("/") + "/" for one in ("ARCHIVE", "INDEX"))
    if archive.startswith(output) or output.startswith(archive):
        yield "the index has no place of its own"
    if [option(container, "cache") for container in (index, serve)] != ["/scratch/index"] * 2:
        yield "there is no place for copies of the index"
    accounts = [templates(manifests)[name]["spec"]["serviceAccountName"] for name in (INDEX, SERVE)]
    secrets = [source["secretRef"]["name"] for source in serve["envFrom"] if "secretRef" in source]
    if accounts != [NIGHT, SERVE] or secrets != [f"{SERVE}-credentials"]:
        yield "the servers have the rights of the jobs"

    keys = [option(serve, key) for key in ("tls-ca", "tls-cert", "tls-key")]
    mounts = {mount["name"]: mount["mountPath"] for mount in serve["volumeMounts"]}
    at = mounts.get("tls")
    if any(keys) and keys != [f"{at}/ca.crt", f"{at}/tls.crt", f"{at}/tls.key"]:
        yield "the servers' keys are elsewhere"
    token = option(serve, "token-file")
    if token != (f"{mounts['token']}/token" if "token" in mounts else None):
        yield "the servers' token is elsewhere"
    if any(keys) == ("--insecure" in serve["args"]):
        yield "the servers have keys, and would do without" if any(keys) else "the servers would refuse to listen"
    [port_name] = [one["name"] for one in serve["ports"]]
    for probe, path in (("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
        asks = {kind: value for kind, value in serve.get(probe, {}).items() if isinstance(value, dict)}
        # Kubernetes has no certificate to show.
        right = {"tcpSocket": {"port": port_name}} if any(keys) else {"httpGet": {"path": path, "port": port_name}}
        if asks != right:
            yield f"the servers' {probe} asks for something else"
    unit = text("deploy/dedup-job-serve.service")
    answering = seconds(f"{found(r'^TimeoutStopSec=(.*?)$', unit)}s")
    pause = serve["lifecycle"]["preStop"]["sleep"]["seconds"]
    if templates(manifests)[SERVE]["spec"]["terminationGracePeriodSeconds"] < pause + answering:
        yield "the servers have no time to answer"


def test_the_certificate_of_the_servers_has_the_names_that_are_called():
    comment = found(r"^#   dnsNames:\n((?:#     - \S+\n)+)", text("deploy/kubernetes/lookup/tls/kustomization.yaml"))
    [service] = [one["metadata"] for one in LOOKUP if one["kind"] == "Service"]
    expected = [service["name"], f"{service['name']}.{service['namespace']}.svc"]
    assert yaml.safe_load(comment.replace("#", "")) == expected
    assert f"`{expected[1]}:{port_of(LOOKUP, SERVE)}`" in text("deploy/README.md")


def test_the_namespaces_that_may_ask_are_those_of_the_readme():
    [rule] = named(LOOKUP, "NetworkPolicy")[SERVE]["spec"]["ingress"]
    [(name, value)] = rule["from"][0]["namespaceSelector"]["matchLabels"].items()
    for path in ("deploy/README.md", "deploy/kubernetes/lookup/objects/networkpolicy.yaml"):
        assert f"kubectl label namespace crawl {name}={value}" in text(path)


def wrong(manifests):
    """Everything that is wrong."""
    assert len(jobs(manifests)) == 2 + (SERVE in templates(manifests)) + (PART in templates(manifests))
    yield from loose_ends(manifests)
    yield from wrong_connections(manifests)
    for name, job in jobs(manifests).items():
        yield from (f"{name}: {what}" for what in wrong_policy(job["jobTemplate"]["spec"]))
    for name, template in templates(manifests).items():
        controls = name == NIGHT and PART in templates(manifests)
        yield from (f"{name}: {what}" for what in too_much(template["spec"], controls))
    if PART in templates(manifests):
        yield from wrong_parts(manifests)
    if SERVE in templates(manifests):
        yield from wrong_lookups(manifests)


@pytest.mark.parametrize("manifests", [MANIFESTS, LOOKUP, PARTS, ALL], ids=["alone", "lookup", "parts", "all"])
def test_nothing_is_wrong_in_the_manifests(manifests):
    assert list(wrong(manifests)) == []


def test_there_are_lookups_where_they_should_be():
    assert [SERVE in templates(one) for one in (MANIFESTS, LOOKUP, ALL)] == [False, True, True]
    assert [option(container_of(one, SERVE), "tls-key") is not None for one in (LOOKUP, ALL)] == [False, True]


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
    "a stranger gets to dedup-job at 1": lambda m: m[-1]["spec"].update(ingress=[{}]),
    "dedup-job gets to dedup-job-upkeep at 443": lambda m: m[-1]["spec"].update(ingress=[{}]),
    "dedup-job gets to a stranger at 80": lambda m: m[-1]["spec"]["egress"][1]["ports"].append({"port": 80}),
    "dedup-job gets to a stranger at 1": lambda m: m[-1]["spec"]["podSelector"]["matchLabels"].update(app="dedup-job"),
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


def one_of(manifests, kind, name):
    return named(manifests, kind)[name]["spec"]


def policy(manifests, name):
    return one_of(manifests, "NetworkPolicy", name)


def given(manifests, name, option, value):
    """Gives an option of a container another value, or none."""
    arguments = container_of(manifests, name)["args"]
    [at] = [at for at, argument in enumerate(arguments) if argument.startswith(f"--{option}=")]
    arguments[at : at + 1] = [] if value is None else [f"--{option}={value}"]


def without(container, name):
    container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != name]


def server(manifests):
    return container_of(manifests, SERVE)


def environment(manifests):
    [found] = (one["data"] for one in named(manifests, "ConfigMap").values() if "ARCHIVE" in one["data"])
    return found


LOOKUP_FAULTS = {
    "a stranger gets to dedup-job-serve at 1": lambda m: policy(m, SERVE)["ingress"][0].pop("ports"),
    "a stranger does not get to dedup-job-serve": lambda m: policy(m, SERVE)["ingress"][0]["from"].pop(),
    "a stranger gets to dedup-job-index": lambda m: policy(m, SERVE)["podSelector"]["matchLabels"].pop(
        "app.kubernetes.io/component"
    ),
    "listen to themselves": lambda m: given(m, SERVE, "listen", "127.0.0.1:8080"),
    "service is not for their port": lambda m: given(m, SERVE, "listen", "0.0.0.0:8081"),
    "not selected alone": lambda m: one_of(m, "PodDisruptionBudget", SERVE)["selector"]["matchLabels"].pop(
        "app.kubernetes.io/component"
    ),
    "cannot be drained": lambda m: one_of(m, "Deployment", SERVE).update(replicas=1),
    "another remembers": lambda m: server(m)["args"].append("--remember=/scratch/seen"),
    "have another": lambda m: given(m, SERVE, "index", "$(ARCHIVE)"),
    "INDEX is not set": lambda m: environment(m).pop("INDEX"),
    "no place of its own": lambda m: environment(m).update(INDEX=environment(m)["ARCHIVE"] + "/index"),
    "no place for copies": lambda m: given(m, SERVE, "cache", None),
    "rights of the jobs": lambda m: templates(m)[SERVE]["spec"].update(serviceAccountName="dedup-job"),
    "servers' keys are elsewhere": lambda m: given(m, SERVE, "tls-key", "/etc/dedup-job-serve-tls/key.pem"),
    "servers' token is elsewhere": lambda m: given(m, SERVE, "token-file", None),
    "would do without": lambda m: server(m)["args"].append("--insecure"),
    "would refuse to listen": lambda m: [given(m, SERVE, key, None) for key in ("tls-ca", "tls-cert", "tls-key")],
    "startupProbe asks": lambda m: server(m).pop("startupProbe"),
    "livenessProbe asks": lambda m: server(m)["livenessProbe"]["tcpSocket"].update(port="other"),
    "readinessProbe asks": lambda m: server(m)["readinessProbe"].update(httpGet={"path": "/readyz", "port": "lookups"}),
    "no time to answer": lambda m: templates(m)[SERVE]["spec"].update(terminationGracePeriodSeconds=30),
    "volume token can be read by others": lambda m: templates(m)[SERVE]["spec"]["volumes"][-1]["secret"].pop(
        "defaultMode"
    ),
    "volume token is of a kind": lambda m: templates(m)[SERVE]["spec"]["volumes"][-1]["secret"].update(
        secretName="root"
    ),
    "no volume token": lambda m: templates(m)[SERVE]["spec"]["volumes"].pop(),
    "no scratch": lambda m: without(server(m), "scratch"),
    "write to its image": lambda m: server(m)["securityContext"].pop("readOnlyRootFilesystem"),
    "twice at once": lambda m: jobs(m)[INDEX].update(concurrencyPolicy="Allow"),
    "a disruption counts": lambda m: jobs(m)[INDEX]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"].pop(1),
}


@pytest.mark.parametrize("message", LOOKUP_FAULTS)
def test_a_fault_in_lookups_is_found(message):
    manifests = copy.deepcopy(ALL)
    LOOKUP_FAULTS[message](manifests)
    assert [what for what in wrong(manifests) if message in what] != []


def binding(manifests):
    return named(manifests, "RoleBinding")["dedup-job-controller"]


def role_rule(manifests, at):
    return named(manifests, "Role")["dedup-job-controller"]["rules"][at]


PARTS_FAULTS = {
    "the clock starts": lambda m: jobs(m)[PART].pop("suspend"),
    "have no numbers": lambda m: jobs(m)[PART]["jobTemplate"]["spec"].update(
        completionMode="NonIndexed", backoffLimit=6
    ),
    "another part than that": lambda m: given(m, PART, "part", "0"),
    "another part": lambda m: given(m, PART, "round", None),
    "sets other variables": lambda m: container_of(m, PART)["env"].reverse(),
    "does not find": lambda m: container_of(m, NIGHT)["volumeMounts"].pop(),
    "no place for jobs": lambda m: environment(m).pop("JOBS"),
    "may do more": lambda m: role_rule(m, 1)["verbs"].append("update"),
    "or less": lambda m: role_rule(m, 1)["verbs"].pop(),
    "somebody else": lambda m: binding(m)["subjects"][0].update(name="default"),
    "dedup-job-part: the pod is given a token": lambda m: templates(m)[PART]["spec"].pop(
        "automountServiceAccountToken"
    ),
    "dedup-job does not get to a stranger at 6443": lambda m: labels(m, NIGHT).pop("app.kubernetes.io/component"),
    "dedup-job-part gets to a stranger at 6443": lambda m: labels(m, PART).update(
        {"app.kubernetes.io/component": "controller"}
    ),
    "retries need a limit": lambda m: jobs(m)[PART]["jobTemplate"]["spec"].update(backoffLimitPerIndex=0),
}


@pytest.mark.parametrize("message", PARTS_FAULTS)
def test_a_fault_in_the_parts_is_found(message):
    manifests = copy.deepcopy(PARTS)
    PARTS_FAULTS[message](manifests)
    assert [what for what in wrong(manifests) if message in what] != []


# Units of lookups.


def setting(unit, name):
    """The values of a setting, a line that is continued as one."""
    return re.findall(rf"^{name}=(.*)$", unit.replace("\\\n", ""), re.MULTILINE)


def test_the_units_of_the_index_and_the_server_agree():
    index, serve = (text(f"deploy/{name}.service") for name in (INDEX, SERVE))
    night, after = text("deploy/dedup-job.service"), text("deploy/dedup-job.service.d/index.conf")
    assert setting(after, "OnSuccess") == [f"{INDEX}.service"]
    # All three are one user, who owns what each of them may write to.
    for unit in (night, index, serve):
        assert setting(unit, "User") == ["dedup-job"] and setting(unit, "DynamicUser") == ["yes"]
    [directories] = setting(index, "StateDirectory")
    [served] = setting(serve, "StateDirectory")
    assert served == "dedup-job-index" and served in directories.split()
    output = found(r"--output (\S+)", index)
    assert output.startswith(f"/var/lib/{served}/")
    for unit in (serve, text("deploy/dedup-job-serve.service.d/other-machines.conf")):
        assert found(r"--index (\S+)", unit) == output
        port = found(r"--listen \S+:(\d+)", unit)
        assert setting(unit, "SocketBindAllow")[-1] == f"ipv4:tcp:{port}"
    # The archive is that of the night.
    settings = tomllib.loads(text("deploy/dedup-job.toml"))
    assert found(r"--base (\S+)", index) == settings["run"]["base"]
    assert setting(index, "MemoryMax") == setting(night, "MemoryMax")


def test_the_server_answers_other_machines_with_keys_only():
    conf = text("deploy/dedup-job-serve.service.d/other-machines.conf")
    reset, command = setting(conf, "ExecStart")
    assert reset == "" and "--insecure" not in command
    passed = {one.partition(":")[0] for one in setting(conf, "LoadCredential")}
    assert passed == {"ca.pem", "cert.pem", "key.pem"} == set(re.findall(r"--tls-\S+ %d/(\S+)", command))
    for one in setting(conf, "LoadCredential"):
        assert f"# - {one.partition(':')[2]} " in conf


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
    images = {container["image"] for template in templates(ALL).values() for container in containers(template["spec"])}
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
        "docs/tutorial.md",
        "crates/testkit/fuzz/Cargo.toml",
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
    # docs/operations.md says that the program takes about its limit: a quarter more is safe.
    assert limit >= size(settings["memory-limit"]) * 5 / 4


def seconds(written):
    return sum(
        int(number) * {"h": 3600, "min": 60, "m": 60, "s": 1}[unit]
        for number, unit in re.findall(r"(\d+)(\D+)", written)
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
