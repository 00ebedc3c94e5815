"""`dedup-job lookup`, the API of `serve` and `Index.lookup` get the same random arguments.

All three answer alike, or all three refuse and name the argument that is wrong. What an interface cannot express is skipped, and
counted. DEDUP_JOB_TEST_SEED=N takes other arguments.
"""

import collections
import concurrent.futures
import http.client
import json
import math
import os
import random
import re
import subprocess

import pytest

import dedup_job
from conftest import run_command
from dedup_job._process import command

SEED = int(os.environ.get("DEDUP_JOB_TEST_SEED", "20261130"))
#: Calls of each index with arguments that are all right.
CALLS = 30
#: Wrong values; each is given to one of the indexes.
WRONG = {
    "k": [9, 10, -1, -(2**31), 2**32, 2**32 + 3, 2**64, 3.0, 2.5, math.nan, "3", "x", "", True],
    "limit": [0, -1, 2**64, 1.0, 1.5, math.inf, "2", "x", True],
    "min_similarity": [-0.1, -1, 1.0000001, 2, 10**400, math.inf, -math.inf, math.nan, "0.5", "x", True],
    "source": [5, 1.5, True, ["a"]],
    "text": [5, 1.5, True, ["a"], {"a": "b"}],
    "fp": [2**64, -(2**63) - 1, 1.5, 3.0, 1e30, True, "", "ff", "0x" + "f" * 14, "0" * 17, " " * 16, "g" * 16, ["a"]],
}
#: How a refusal names an argument.
NAMES = {"k": r"\bk\b|max.distance", "limit": "limit", "min_similarity": "min.similarity", "source": "source"}
NAMES |= {"text": r"\btexts?\b", "fp": r"\bfp\b|\bfingerprints?\b"}
#: A wrong argument that is refused without its name: JSON cannot carry 10**400, wherever it stands.
UNNAMED = {("http", "min_similarity")}
SOURCES = ["https://www.shop1.example/a?b", "shop1.example", "www.shop1.example", "http://a.example", "Läden", "", "mailto:a"]
TEXTS = [
    *("", " ", "404", "a b", "one two three four five six", "a\0b c\0d e f", "one \udcff two \ud800 three four five"),
    *("\ufeffa b c d e", "<p>one two three</p>", '{"fp": 1} two three four', "e12c66a0091d6a79", "12345678901234567890"),
    *("- -k 3 --json x y", "a\r\nb\nc d e f\n", "long text " * 9000, "敏捷的棕色狐狸跳过了河岸附近的懒狗", "สุนัขจิ้งจอกสีน้ำตาลกระโดด"),
    *("الثعلب البني السريع يقفز فوق الكلب", "🦊 🐕 🦊 🐕 🏞"),
]

Refused = collections.namedtuple("Refused", "message")
Skipped = collections.namedtuple("Skipped", "why")


class Lookups:
    """An index, and the three interfaces to it. Each returns what was refused or skipped, or a list with the rows of each query."""

    def __init__(self, directory, documents, id_type, profile):
        archive, self.path, self.documents = f"{directory}/archive", f"{directory}/index", documents
        run_command("archive", "create", archive, "--profile", profile, "--id-type", id_type)
        for number, day in enumerate(("2026-01-01", "2026-01-02")):
            batch = directory / f"{number}.jsonl"
            batch.write_text("".join(json.dumps(document) + "\n" for document in documents[number::2]))
            run_command("archive", "append", archive, "--input", batch, "--day", day)
        run_command("index", "build", "--base", archive, "--output", self.path)
        self.index, self.sketches = dedup_job.Index(self.path), profile == "sharp"
        self.lookup = [*command(), "lookup", "--index", self.path, "--json"]
        serve = [*command(), "serve", "--index", self.path, "--listen=127.0.0.1:0"]
        self.server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
        url = next(line for line in self.server.stderr if line.startswith("listening on "))
        self.connection = http.client.HTTPConnection(url.strip().rpartition("/")[2], timeout=30)

    def by_command(self, call):
        options = {"--max-distance": call["k"], "--limit": call["limit"], "--min-similarity": call["min_similarity"]}
        if any(isinstance(value, str) for value in options.values()):
            return Skipped("on the command line, numbers are texts")
        options = [f"{option}={value}" for option, value in options.items() if value is not None]
        queries, source, lines = call["queries"], call["source"], ""
        if queries and call["as arguments"] and all(is_argument(*query) for query in queries) and isinstance(source, (str, type(None))):
            options += [] if source is None else [f"--source={source}"]
            options += ["--", *(value if kind == "text" else f"{value % 2**64:016x}" for kind, value in queries)]
        else:
            options.append("-")
            lines = "".join(json.dumps(as_json(*query, call)) + "\n" for query in queries)
        ran = subprocess.run([*self.lookup, *options], input=lines, capture_output=True, text=True)
        if ran.returncode:
            assert ran.returncode in (64, 65), (call, ran)
            return Refused(ran.stderr)
        return [rows(json.loads(line)) for line in ran.stdout.splitlines()]

    def by_http(self, call):
        options = {name: call[name] for name in ("k", "limit", "min_similarity") if call[name] is not None}
        if any(isinstance(value, float) and not math.isfinite(value) for value in options.values()):
            return Skipped("JSON has finite numbers only")
        if isinstance(call["limit"], int) and 10_000 < call["limit"] < 2**32:
            return Skipped("the API has a largest limit")
        queries = [as_json(*query, call) for query in call["queries"]]
        is_one = len(queries) == 1 and call["as one"]
        body = {**queries[0], **options} if is_one else {"queries": queries, **options}
        self.connection.request("POST", "/v1/lookup", json.dumps(body), {"content-type": "application/json"})
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            assert response.status == 400, (call, response.status, answer)
            return Refused(answer["error"])
        return [rows(answer)] if is_one else [rows(one) for one in answer["results"]]

    def by_python(self, call):
        options = {name: call[name] for name in ("k", "limit", "min_similarity", "source")}
        kinds = {kind for kind, _ in call["queries"]}
        values = [int(value, 16) if kind == "fp" and is_digits(value) else value for kind, value in call["queries"]]
        if True in [value for value in [*options.values(), *values] if isinstance(value, bool)]:
            return Skipped("in Python, True is 1")
        if len(kinds) > 1 or (kinds == {"text"} and not isinstance(values[0], str)):
            return Skipped("in Python, the first query says whether all are texts or fingerprints")
        if kinds == {"fp"} and any(isinstance(value, str) for value in values):
            return Skipped("in Python, fingerprints are integers")
        try:
            table = self.index.lookup(values[0] if len(values) == 1 and call["as one"] else values, **options)
        except (TypeError, ValueError, OverflowError) as error:
            return Refused(str(error))
        found = [[] for _ in values]
        for hit in table.to_pylist():
            day = hit["day"] and hit["day"].isoformat()
            found[hit["query"]].append((hit["id"], hit["distance"], day, hit["similarity"]))
        return found


def rows(answer):
    return [(hit["id"], hit["distance"], hit["day"], hit.get("similarity")) for hit in answer["hits"]]


def is_digits(value):
    return isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{16}", value) is not None


def is_argument(kind, value):
    """Whether a query can be an argument that is no path: a fingerprint, or a text of several words."""
    if kind == "fp":
        return type(value) is int and -(2**63) <= value < 2**64
    return isinstance(value, str) and len(value) < 50_000 and " " in value.strip() and not re.search("[\0\ud800-\udfff]", value)


def as_json(kind, value, call):
    if isinstance(value, str):
        # In JSON, half of a surrogate pair is an error. Python takes it as these characters.
        value = value.encode(errors="surrogatepass").decode(errors="replace")
    source = call["source"]
    name = "url" if isinstance(source, str) and "://" in source and call["as url"] else "source"
    return {kind: value} | ({} if source is None else {name: source})


def wrong(call, sketches):
    """The arguments that the documents do not allow."""
    names = {kind for kind, value in call["queries"] if kind == "text" and not isinstance(value, str)}
    names |= {kind for kind, value in call["queries"] if kind == "fp" and not (is_digits(value) or is_argument(kind, value))}
    if call["queries"] and not isinstance(call["source"], (str, type(None))):
        names.add("source")
    ranges = {"k": (0, 8, int), "limit": (1, 2**32 - 1, int), "min_similarity": (0, 1 if sketches else 0, int, float)}
    given = {name: call[name] for name in ranges if call[name] is not None}
    is_wrong = lambda value, least, most, *types: type(value) not in types or not least <= value <= most
    return names | {name for name, value in given.items() if is_wrong(value, *ranges[name])}


def random_query(random, documents, kind):
    document = random.choice(documents)
    if kind == "text":
        words = document["text"].split(" ")
        words[random.randrange(len(words))] = random.choice(["", "new", "敏捷"])
        return kind, random.choice([document["text"], " ".join(words), random.choice(TEXTS)])
    fingerprint = random.choice([0, 2**64 - 1, 1 << 63, random.getrandbits(64), *[document["fp"]] * 8])
    for _ in range(random.choice([0, 1, 3, 8, 9])):
        fingerprint ^= 1 << random.randrange(64)
    signed = fingerprint - (fingerprint >> 63 << 64)
    return kind, random.choice([fingerprint, signed, f"{fingerprint:016x}", f"{fingerprint:016X}"])


def random_call(random, lookups, name=None, value=None):
    """A call whose arguments are right, but for `value` if there is a name."""
    kinds = [name] if name in ("text", "fp") else random.choice([["text"], ["fp"], ["text", "fp"]])
    count = random.choice([1 if name else 0, 1, 1, 1, 2, 5, 40])
    queries = [random_query(random, lookups.documents, random.choice(kinds)) for _ in range(count)]
    similarities = [None, None, 0, 0.0, -0.0, *([1, 1e-300, 0.5, 0.755, random.random()] if lookups.sketches else [])]
    call = {
        "queries": [*queries, (name, value)] if name in ("text", "fp") else queries,
        "k": random.choice([None, *range(9)]),
        "limit": random.choice([None, None, None, 1, 2, 3, 100, 10_000, random.choice([10_001, 2**32 - 1])]),
        "min_similarity": random.choice(similarities),
        "source": random.choice([None, random.choice(SOURCES), "https://shop1.example/"]),
        **{how: random.random() < 0.5 for how in ("as one", "as url", "as arguments")},
    }
    return {**call, name: value} if name in call else call


def random_documents(random, id_type):
    """60 documents of two sources, each of which has a template; every third is a near-copy of the one before."""
    made = []
    for number in range(60):
        shop, words = "ab"[number // 3 % 2], ["".join(random.choices("abcdefgh", k=3)) for _ in range(90)]
        if number % 3 == 2:
            words = made[-1]["text"].split("\n")[1].split(" ")
            words[random.randrange(len(words))] = "new"
        text = f"Shop {shop} sells the finest goods.\n{' '.join(words)}\nRead about the offers of this month in shop {shop}."
        id = number * 7 - 100 if id_type == "bigint" else f"página-{number}"
        made.append({"id": id, "text": text, "url": f"https://www.shop{number // 3 % 2}.example/{number}"})
    return made


@pytest.mark.parametrize(("number", "id_type", "profile"), [(0, "string", "sharp"), (1, "bigint", "paper")])
def test_interfaces_agree(tmp_path, number, id_type, profile):
    print(f"DEDUP_JOB_TEST_SEED={SEED}")
    mixed, seeded = random.Random(SEED), random.Random(SEED + number)
    wrong_values = [(name, value) for name, values in WRONG.items() for value in mixed.sample(values, len(values))[number::2]]
    lookups = Lookups(tmp_path, random_documents(seeded, id_type), id_type, profile)
    counts = collections.Counter()
    try:
        for document in lookups.documents:
            [hit, *_] = lookups.index.lookup(document["text"], k=0, source=document["url"]).to_pylist()
            document["fp"] = hit["fp"]
        calls = [random_call(seeded, lookups) for _ in range(CALLS)]
        calls += [random_call(seeded, lookups, name, value) for name, value in wrong_values]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for call, by_command in zip(calls, pool.map(lookups.by_command, calls)):
                outcomes = {"command": by_command, "http": lookups.by_http(call), "python": lookups.by_python(call)}
                compare(call, wrong(call, lookups.sketches), outcomes, counts)
    finally:
        lookups.connection.close()
        lookups.server.terminate()
        lookups.server.communicate()
    print(*sorted(f"{name}: {count}" for name, count in counts.items()), sep="\n")
    assert min(counts[name] for name in ("found", "nothing", *WRONG)) > 0, counts


def compare(call, names, outcomes, counts):
    """Check the outcomes of a call whose arguments of these names are wrong."""
    counts.update(names)
    counts.update(f"skipped: {outcome.why}" for outcome in outcomes.values() if isinstance(outcome, Skipped))
    given = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, Skipped)}
    if not names:
        first, *others = given.values()
        assert isinstance(first, list) and all(other == first for other in others), (call, given)
        assert all(found == sorted(found, key=lambda row: (row[1], row[0])) for found in first), (call, given)
        counts.update("found" if found else "nothing" for found in first)
        return
    for interface, outcome in given.items():
        message = outcome.message if isinstance(outcome, Refused) else ""
        assert interface == "command" or "--min" not in message, (call, message)
        if not any(re.search(NAMES[name], message) for name in names):
            known = UNNAMED & {(interface, name) for name in names} if message else None
            assert known, (call, names, given)
            counts.update(f"known: {one}" for one in known)
