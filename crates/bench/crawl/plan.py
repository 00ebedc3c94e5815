"""Decides which pages the crawl has: originals, planted near-duplicates and pages that only list others; and the truth."""

import collections
import dataclasses
import itertools
import random
import re

from . import blocks as block
from .articles import Article
from .page import SLOTS, Page, slug
from .sites import SITES
from .templates.press import listing

#: Reasons of planted pairs, and their share of all pages. `recrawl` changes advertisement, counter, date and navigation.
REASONS = {
    "advertisement": 0.06,
    "counter": 0.06,
    "date": 0.06,
    "navigation": 0.06,
    "edit": 0.06,
    "mirror": 0.06,
    "recrawl": 0.04,
}
#: The share of pages that only list articles, and of pages with a short article, of which nobody has a copy.
LISTINGS, SHORT = 0.03, 0.10
#: Words of an article that is edited, at least.
LONG = 1000
#: Words that an edit replaces, at most.
MOST_EDITS = 3
#: Addresses of the same page.
SAME_PAGE = [
    "utm_source=newsletter&utm_medium=email",
    "ref=home",
    "print=1",
    "fbclid={n:x}",
    "sessionid={n:08x}",
    "amp=1",
    "from=search",
]


@dataclasses.dataclass
class Planned:
    """A page, and how it came about."""

    page: Page
    #: None for an original; "listing" for a page that only lists articles; "short" for one with a short article.
    reason: str | None = None
    #: The number of the page that it was made from.
    origin: int | None = None
    #: Number of words that an edit replaced.
    edits: int = 0


def plan(count, articles, seed):
    """About `count` pages, in the order of the crawl."""
    rng = random.Random(f"plan {seed}")
    articles = {language: list(each) for language, each in articles.items()}
    others = {language: [(each.title, each.summary) for each in some] for language, some in articles.items()}
    numbers = itertools.count(100_000 + rng.randint(0, 10_000))

    def page(site, article, **changed):
        number = next(numbers)
        seeds = {part: article.id for part in SLOTS} | {"front": "", "fetch": number} | changed
        return Page(number, site, article, others[site.language], seeds)

    originals = []
    planted = sum(REASONS.values()) + LISTINGS + SHORT
    for site, wanted in _shares(count * (1 - planted), {language: len(each) for language, each in articles.items()}):
        for _ in range(wanted):
            originals.append(Planned(page(site, articles[site.language].pop())))
    for each in originals:
        each.page.url = _address(each.page)
    pages = list(originals)
    long = [each for each in originals if block.size(each.page.article.text) >= LONG] or originals
    for reason, share in REASONS.items():
        for _ in range(round(count * share)):
            origin = rng.choice(long if reason == "edit" else originals)
            pages.append(_copy(origin, reason, page, rng))
    for _ in range(round(count * LISTINGS)):
        site = rng.choice([site for site in SITES if len(others[site.language]) > 60])
        article = Article(f"listing-{rng.randint(0, 10**9)}", site.language, rng.choice(site.menu), [])
        made = page(site, article)
        article.blocks = listing(made)
        made.url = f"https://{site.host}/list/{made.number}/"
        pages.append(Planned(made, "listing"))
    for article in articles["short"][: round(count * SHORT)]:
        short = page(rng.choice([site for site in SITES if site.language == "en"]), article)
        short.url = _address(short)
        pages.append(Planned(short, "short"))
    rng.shuffle(pages)
    return pages


def _shares(total, available):
    """How many originals each site has: by its share, as far as there are articles in its language."""
    left = dict(available)
    counts = dict.fromkeys(range(len(SITES)), 0)
    open_sites = list(counts)
    while total >= 1 and open_sites:
        shares = sum(SITES[at].share for at in open_sites)
        given = 0
        for at in open_sites:
            some = min(max(1, round(total * SITES[at].share / shares)), left[SITES[at].language])
            counts[at] += some
            left[SITES[at].language] -= some
            given += some
        total -= given
        open_sites = [at for at in open_sites if left[SITES[at].language] > 0]
    return [(SITES[at], some) for at, some in counts.items()]


def _copy(origin, reason, page, rng):
    """A near-duplicate of an original."""
    source = origin.page
    new = f"{source.article.id} {rng.randint(0, 10**9)}"
    site, article, edits = source.site, source.article, 0
    changed = {
        "advertisement": ["ad"],
        "counter": ["counter"],
        "date": ["date"],
        "navigation": ["navigation", "front"],
        "edit": [],
        "mirror": [],
        "recrawl": ["ad", "counter", "date", "navigation", "front"],
    }[reason]
    if reason == "mirror":
        others = [other for other in SITES if other.language == site.language and other.template is not site.template]
        # A language with one site: the mirror has the same template, and another name.
        site = rng.choice(others) if others else dataclasses.replace(site, host=f"mirror.{site.host}", title=site.title + " 2")
    if reason == "edit":
        edits = rng.randint(1, MOST_EDITS)
        article = _edited(article, edits, rng)
    made = page(site, article, **dict.fromkeys(changed, new))
    if reason == "mirror":
        made.url = _address(made)
    else:
        separator = "&" if "?" in source.url else "?"
        made.url = source.url + separator + rng.choice(SAME_PAGE).format(n=made.number) + f"&n={made.number}"
    return Planned(made, reason, source.number, edits)


def _address(page):
    rng = page.rng("story")
    path = page.site.path.format(
        slug=slug(page.article.title) + f"-{page.number % 10_000}",
        number=page.number,
        y=rng.randint(2014, 2026),
        m=rng.randint(1, 12),
    )
    return f"https://{page.site.host}{path}"


#: What an edit replaces: a word, or two Chinese, Japanese or Korean characters.
_WORD = re.compile(r"\b[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4,}\b|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


def _edited(article, edits, rng):
    """The article with `edits` words of its paragraphs replaced by others of its own words."""
    blocks = list(article.blocks)
    paragraphs = [at for at, part in enumerate(blocks) if part[0] == "p" and _WORD.search(block.block_text(part))]
    for at in rng.sample(paragraphs, min(edits, len(paragraphs))):
        line = list(blocks[at][1])
        where = [place for place, span in enumerate(line) if _WORD.search(span[1])]
        place = rng.choice(where)
        words = list(_WORD.finditer(line[place][1]))
        old = rng.choice(words)
        new = rng.choice(_WORD.findall(block.block_text(blocks[rng.choice(paragraphs)])))
        if new == old[0]:
            new = new[::-1]
        text = line[place][1]
        line[place] = (line[place][0], text[: old.start()] + new + text[old.end() :], *line[place][2:])
        blocks[at] = ("p", line)
    return dataclasses.replace(article, blocks=blocks)


def truth(pages):
    """Every pair of pages with one article: (page, page, reason, edited words). Two copies of one page are a `combined` pair."""
    groups = collections.defaultdict(list)
    for each in pages:
        if each.reason != "listing":
            groups[each.page.article.id].append(each)
    for group in groups.values():
        for a, b in itertools.combinations(group, 2):
            if a.origin == b.page.number:
                a, b = b, a
            reason = b.reason if b.origin == a.page.number else "combined"
            yield a.page, b.page, reason, a.edits + b.edits
