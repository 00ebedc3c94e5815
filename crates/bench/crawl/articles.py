"""Cuts the texts of the corpora into articles that share little text with each other."""

import collections
import dataclasses
import pathlib
import random
import re
import zlib

import pyarrow.parquet as pq

from . import blocks as block

#: Articles with more of their shingles in another one are left out: they would be true pairs that nobody planted.
MOST_SHARED = 0.15
#: The same for languages without spaces, whose shingles are of four characters.
MOST_SHARED_CHARACTERS = 0.3
#: Sizes of an article in words, at least and at most.
SHORTEST, LONGEST = 150, 2500
#: Words of a short article, at least.
SHORT = 40
#: Pages of the command manual that make one article.
COMMANDS = (4, 9)


@dataclasses.dataclass
class Article:
    """A title and blocks; see blocks.py."""

    id: str
    language: str
    title: str
    blocks: list

    @property
    def text(self):
        """Title and text, a line for each part."""
        return "\n".join([self.title, *map(block.block_text, self.blocks)])

    @property
    def summary(self):
        """The first words of the text, as in a teaser."""
        first = next((block.block_text(part) for part in self.blocks if part[0] == "p"), self.title)
        return first if len(first) <= 180 else first[:180].rsplit(" ", 1)[0] + " …"


def load(directory, seed):
    """All articles of the corpora in `directory`, by language, in a random order; the short ones, all English, under "short"."""
    directory = pathlib.Path(directory)
    rng = random.Random(f"articles {seed}")
    found = collections.defaultdict(list)
    for row in _last_revisions(directory / "peps.parquet"):
        found["en"].extend(_cut(row["doc"], "en", *block.restructured(row["text"]), rng))
    for row in _last_revisions(directory / "rust-book-zh.parquet"):
        found["zh"].extend(_cut(row["doc"], "zh", *block.markdown(row["text"]), rng))
    commands = collections.defaultdict(list)
    for row in pq.read_table(directory / "unrelated.parquet").to_pylist():
        if row["source"] == "tldr":
            folder = row["id"].split("/")[1]
            commands[folder.partition(".")[2] or "en"].append(row)
        else:
            found["en"].extend(_cut(row["id"], "en", *block.markdown(row["text"]), rng))
    commands["en"], short = commands["en"][::2], commands["en"][1::2]
    for row in short:
        title, blocks = block.markdown(row["text"])
        if blocks and SHORT <= sum(block.size(block.block_text(part)) for part in blocks) < SHORTEST:
            found["short"].append(_article(row["id"], "en", title, None, blocks))
    for language in ("en", "zh", "ja", "ko", "ru", "fr", "de", "es", "it"):
        found[language].extend(_round_ups(language, commands[language], rng))
    return {language: _distinct(articles, rng) for language, articles in found.items()}


def _last_revisions(path):
    """The last revision of each document."""
    last = {}
    for row in pq.read_table(path).to_pylist():
        if row["text"] and (row["doc"] not in last or row["revised"] >= last[row["doc"]]["revised"]):
            last[row["doc"]] = row
    return last.values()


def _cut(name, language, title, blocks, rng):
    """Cuts a document into articles, at headings where it has them."""
    target, words, part, begun = _target(rng), 0, [], None
    for each in blocks:
        here = block.size(block.block_text(each))
        ends = words >= target and each[0] in ("h", "p") or words + here > LONGEST
        if ends and words >= SHORTEST:
            yield _article(name, language, title, begun, part)
            target, words, part, begun = _target(rng), 0, [], None
        if not part and each[0] == "h":
            begun = block.line_text(each[-1])
            continue
        if here <= LONGEST:
            part.append(each)
            words += here
    if words >= SHORTEST:
        yield _article(name, language, title, begun, part)


def _target(rng):
    """Words of an article: half of them have less than 550."""
    return min(max(SHORTEST, int(rng.lognormvariate(6.3, 0.7))), LONGEST)


def _article(name, language, title, begun, part):
    while part and part[-1][0] == "h":
        part = part[:-1]
    heading = ": ".join(filter(None, [title, begun])) or block.block_text(part[0])[:60]
    heading = " ".join(heading.replace("`", "").split())
    digest = zlib.crc32((name + block.block_text(part[0])).encode())
    return Article(f"{re.sub(r'[^a-zA-Z0-9]+', '-', name.rsplit('/', 1)[-1])}-{digest:08x}", language, heading, part)


def _round_ups(language, rows, rng):
    """Articles of several pages of the command manual."""
    rows = [row for row in rows if row["text"]]
    rng.shuffle(rows)
    while len(rows) > COMMANDS[1]:
        some = [rows.pop() for _ in range(rng.randint(*COMMANDS))]
        blocks, names = [], []
        for row in some:
            name, body = block.markdown(row["text"])
            names.append(name or "?")
            blocks += [("h", 2, [("t", names[-1])]), *body]
        yield _article("-".join(names[:3]), language, ", ".join(names[:4]), None, blocks[1:])


def _has_spaces(article):
    return article.language not in ("zh", "ja")


def _shingles(article):
    """An eighth of the hashes of three words in a row, or of four characters of a language without spaces."""
    text = article.text
    if not _has_spaces(article):
        parts = (text[at : at + 4] for at in range(len(text) - 3))
    else:
        words = text.split()
        parts = (" ".join(words[at : at + 3]) for at in range(len(words) - 2))
    hashes = {zlib.crc32(part.encode()) for part in parts}
    return {each for each in hashes if each % 8 == 0}


def _distinct(articles, rng):
    """The articles that have little in common with those before them."""
    rng.shuffle(articles)
    sizes, where, chosen = [], collections.defaultdict(list), []
    for article in articles:
        shingles = _shingles(article)
        most = MOST_SHARED if _has_spaces(article) else MOST_SHARED_CHARACTERS
        shared = collections.Counter(at for shingle in shingles for at in where[shingle])
        if any(count > most * min(sizes[at], len(shingles)) for at, count in shared.items()):
            continue
        for shingle in shingles:
            where[shingle].append(len(sizes))
        sizes.append(len(shingles))
        chosen.append(article)
    return chosen
