"""Makes invented web sites with known truth over several days, for detectors that leave out what the pages of a site share:
crawl_sites.py --out DIR [--seed N] [--days N] [--scale X] [--html] [--scenario NAME ...].

Needs pyarrow. All words are invented. A site has frames (navigation, header, sidebar, footer) around the own text of its
pages; one site in ten is in Chinese, one in fifteen in Cyrillic letters. Equal arguments make equal pages, and a scenario has
the same pages whichever others are made.

Writes to --out:

- day-N.parquet: the pages of day N, in random order: `id`, unique over all days; `url`; `text`, a line for each block, or with
  --html `html`, the page in one line; and the truth: `content`, equal for pages that are copies of one another, whichever
  their host, day or frame; `scenario`; `host`;
- counts.json: the pages, contents and hosts, in total, by scenario and by day.
"""

import argparse
import bisect
import dataclasses
import html
import itertools
import json
import pathlib
import random
import re

import pyarrow as pa
import pyarrow.parquet as pq


class Language:
    """Words drawn by Zipf's law. `latin` and `latin2` have no vocabulary in common; a word of `han` is one character."""

    def __init__(self, name, seed):
        rng = random.Random(f"{seed}-language-{name}")
        self.han = name == "han"
        self.stop, self.space = ("。", "") if self.han else (".", " ")
        if self.han:
            self.words = [chr(each) for each in rng.sample(range(0x4E00, 0x9000), 1500)]
        else:
            starts, vowels, ends = {
                "latin": ("b c d f g h k l m n p r s t v z st tr pl br sh".split(), "a e i o u ai".split(), ["", "", "", "n", "r", "s"]),
                "latin2": ("w j x q gw ll kh ts dz ny mb".split(), "y å ö ü ea uo".split(), ["", "", "k", "m", "th"]),
                "cyrillic": ("б в г д ж з к л м н п р с т ст пр".split(), "а е и о у я".split(), ["", "", "", "н", "р", "т", "й"]),
            }[name]
            words = {}
            while len(words) < 30_000:
                # The most frequent words are the shortest.
                rank = len(words)
                syllables = 1 + (rank > 40) + rng.randrange(1 + (rank > 400) + (rank > 4000))
                words["".join(rng.choice(starts) + rng.choice(vowels) + rng.choice(ends) for _ in range(syllables))] = None
            self.words = list(words)
        self.weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def draw(self, rng, count):
        return rng.choices(self.words, cum_weights=self.weights, k=round(count * 1.6) if self.han else count)

    def phrase(self, rng, low, high):
        text = self.space.join(self.draw(rng, rng.randint(low, high)))
        return text[0].upper() + text[1:]

    def sentence(self, rng, low=8, high=20):
        return self.phrase(rng, low, high) + self.stop

    def paragraph(self, rng, low=2, high=5):
        return self.space.join(self.sentence(rng) for _ in range(rng.randint(low, high)))

    def text(self, rng, words):
        """Paragraphs of about `words` words in all."""
        paragraphs, lengths = [], []
        while words > 0:
            lengths.append(min(rng.randint(8, 20), max(words, 8)))
            words -= lengths[-1]
        while lengths:
            some = [lengths.pop() for _ in range(min(len(lengths), rng.randint(2, 5)))]
            paragraphs.append(self.space.join(self.sentence(rng, each, each) for each in some))
        return paragraphs

    def split(self, text):
        return list(text) if self.han else text.split(" ")

    def count(self, lines):
        return sum(len(self.split(each)) for each in lines)

    def edit(self, rng, paragraphs, positions):
        """The paragraphs with other words at these positions."""
        tokens = [self.split(each) for each in paragraphs]
        ends = list(itertools.accumulate(len(each) for each in tokens))
        for position in positions:
            which = bisect.bisect_right(ends, position)
            words, at = tokens[which], position - ends[which] + len(tokens[which])
            new = next(each for each in iter(lambda: self.draw(rng, 1)[0], None) if each != words[at].strip(".").lower())
            if words[at] != self.stop:
                words[at] = (new.capitalize() if words[at][0].isupper() else new) + ("." if words[at].endswith(".") else "")
        return [self.space.join(each) for each in tokens]


@dataclasses.dataclass
class Frame:
    nav: list
    header: list
    aside: list
    footer: list
    aside_first: bool = False
    crumb: str = ""

    @classmethod
    def make(cls, rng, language, words=None, like=None):
        """A frame of about `words` words; with `like`, one of the same site with another sidebar."""
        words = words or rng.randint(60, 400)
        few = words < 150
        if like:
            frame = dataclasses.replace(like, aside=[])
        else:
            nav = [language.phrase(rng, 1, 2 if few else 3) for _ in range(rng.randint(8, 12 if few else 20))]
            footer = [language.sentence(rng) for _ in range(2 if few else rng.randint(2, 6))]
            if rng.random() < 0.5:
                footer = [language.space.join(footer)]
            crumb = language.phrase(rng, 1, 1) if rng.random() < 0.3 else ""
            frame = cls(nav, [language.phrase(rng, 3, 8)], [], footer, rng.random() < 0.3, crumb)
        rest = words - language.count(frame.nav + frame.header + frame.footer) / (1.6 if language.han else 1)
        rest = max(rest, 15) if like else rest
        while rest > 0:
            line = language.phrase(rng, 1, 5) if rest < 15 or rng.random() < 0.7 else language.paragraph(rng, 1, 4)
            rest -= max(1, language.count([line]) / (1.6 if language.han else 1))
            frame.aside.append(line)
        return frame

    def zones(self, main):
        if self.crumb:
            main = [f"{self.crumb} / {main[0]}", *main]
        middle = [("main", main), ("aside", self.aside)]
        return [("nav", self.nav), ("header", self.header), *(middle[::-1] if self.aside_first else middle), ("footer", self.footer)]


class Host:
    """A host, its language, labels and frames: `frame`, and others by kind or section, made when first asked for."""

    def __init__(self, world, name, language=None, words=None):
        self.rng = random.Random(f"{world.seed}-host-{name}")
        draw = self.rng.random()
        self.name = name
        self.language = world.languages[language or ("han" if draw < 1 / 10 else "cyrillic" if draw < 1 / 10 + 1 / 15 else "latin")]
        self.words = words
        self.frame = Frame.make(self.rng, self.language, words)
        self.labels = [self.language.phrase(self.rng, 1, 2) for _ in range(12)]
        self.adverts = [self.language.paragraph(self.rng, 1, 2) for _ in range(10)]
        self.kinds = {}

    def kind(self, name):
        if name not in self.kinds:
            self.kinds[name] = Frame.make(self.rng, self.language, self.words, like=self.frame)
        return self.kinds[name]

    def other(self, words=None):
        return Frame.make(self.rng, self.language, words)


class World:
    def __init__(self, seed, days, scale):
        self.seed, self.scale, self.days = seed, scale, range(1, days + 1)
        self.languages = {name: Language(name, seed) for name in ("latin", "latin2", "han", "cyrillic")}
        self.pages = {day: [] for day in self.days}

    def number(self, count, least=1):
        return max(least, round(count * self.scale))

    def hosts(self, count, name, **options):
        return [Host(self, f"{name}{number}.example", **options) for number in range(1, self.number(count) + 1)]

    def add(self, day, host, path, frame, main, content):
        """A page; returns its lines. The first block of `main` is its title; `content` need be unique in the scenario only."""
        name = host if isinstance(host, str) else host.name
        zones = frame.zones(main) if frame else [("main", main)]
        self.pages[day].append((f"https://{name}/{path}", name, self.scenario, f"{self.scenario}/{content}", zones))
        return [line for _, lines in zones for line in lines]

    def plan(self, rng, per_day, make, again=0.55):
        """Of each day the items that are captured on it, `again` of them for a second time: (day, number, item, is again)."""
        items = []
        for day in self.days:
            old = rng.sample(range(len(items)), min(len(items), round(per_day * again)))
            yield from ((day, number, items[number], True) for number in sorted(old))
            for _ in range(per_day - len(old)):
                items.append(make())
                yield day, len(items) - 1, items[-1], False


def date(rng, day):
    return f"2026-{day // 28 % 12 + 1:02}-{day % 28 + 1:02} {rng.randrange(24):02}:{rng.randrange(60):02}"


def code(rng, digits=8):
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def article(rng, language, low=80, high=600):
    """A title and paragraphs. Short articles are more frequent than long ones."""
    return [language.phrase(rng, 4, 9), *language.text(rng, round(low * (high / low) ** rng.random()))]


def product(rng, language):
    sentences = [language.sentence(rng) for _ in range(rng.randint(1, 2))]
    return language.phrase(rng, 2, 5), language.space.join(sentences), f"{rng.randrange(10**7):07}"


def product_page(rng, host, item):
    """The page of a product today, with today's price and stock."""
    name, text, number = item
    price, stock = f"{rng.randint(1, 400)}.{rng.randrange(100):02} €", rng.randint(1, 99)
    return [name, text, f"{host.labels[0]}: {price}", f"{host.labels[1]} {number}", f"{host.labels[2]} {stock} {host.labels[3]}"]


def article_page(rng, host, day, item):
    """The page of an article today, with what changes on it from day to day."""
    title, *paragraphs = item
    main = [title, *paragraphs]
    if rng.random() < 0.5:
        main.insert(1, f"{host.labels[4]} {date(rng, day)}")
    if rng.random() < 0.4:
        main.insert(rng.randint(1, len(main)), rng.choice(host.adverts))
    main.append(f"{rng.randint(0, 300)} {host.labels[5]}")
    return main


def captures(world, rng, host, per_day, prefix="a", again=0.55, low=80, high=600, frame=None):
    """Articles of a host, some of them captured on several days. `frame` chooses the frame of a page by its number and day."""
    for day, number, item, _ in world.plan(rng, per_day, lambda: article(rng, host.language, low, high), again):
        chosen = frame(number, day) if frame else host.frame
        world.add(day, host, f"{prefix}/{number}", chosen, article_page(rng, host, day, item), f"{host.name}/{prefix}/{number}")


def shops(world, rng):
    for host in world.hosts(8, "shop", words=900):
        for day, number, item, _ in world.plan(rng, 195, lambda: product(rng, host.language)):
            world.add(day, host, f"product/{number}", host.frame, product_page(rng, host, item), f"{host.name}/{number}")


def articles(world, rng):
    for host in world.hosts(20, "news"):
        kinds = rng.randint(1, 3)
        captures(world, rng, host, 78, frame=lambda number, _: host.kind(number % kinds))


def mirrors(world, rng):
    hosts = world.hosts(25, "mirror")
    hosts += [Host(world, f"mirror-more{each}.example") for each in range(5 - len(hosts))]
    for host in hosts:
        captures(world, rng, host, 6)
    for number in range(world.number(600)):
        item = article(rng, world.languages["latin"])
        # Hosts in another language also have copies: a mirror does not translate.
        for host in rng.sample(hosts, 5):
            day = rng.choice(world.days)
            world.add(day, host, f"mirrored/{number}", host.frame, article_page(rng, host, day, item), f"mirrored/{number}")


def press(world, rng):
    # Half of the hosts are those of the scenario webframes.
    hosts = world.hosts(100, "press") + world.hosts(100, "web")
    for host in hosts:
        captures(world, rng, host, 3, again=0.34, prefix="own")
    about = world.languages["latin"].paragraph(rng)
    for number, copies in enumerate([200, 150, 100, 80, 60, 40, 30, 20, 20, 10, 10, 8, 6, 5, 5, 4, 3, 3, 2, 2]):
        title, *paragraphs = article(rng, world.languages["latin"], 150, 500)
        for host in rng.sample(hosts, world.number(copies)):
            own = world.languages["latin"].phrase(rng, 4, 9) if rng.random() < 0.2 else title
            main = article_page(rng, host, day := rng.choice(world.days), [own, *paragraphs, about])
            world.add(day, host, f"press/{number}", host.frame, main, f"release/{number}")


def listings(world, rng):
    for host in world.hosts(6, "listing"):
        captures(world, rng, host, 25)
        tags = [host.language.phrase(rng, 1, 1) for _ in range(14)]
        teasers, frame = [], host.kind("listing")
        for day in world.days:
            # Some tags get nothing new: their listings are the same on the next day.
            fresh = tags if day == 1 else rng.sample(tags, 8)
            for _ in range(200 if day == 1 else 40):
                number = len(teasers)
                teasers.append((number, rng.sample(fresh, 2), host.language.phrase(rng, 4, 9), host.language.sentence(rng)))
            for at, tag in [(0, ""), *enumerate(tags, 1)]:
                found = [each for each in reversed(teasers) if not tag or tag in each[1]]
                for page in range(min(10 if not tag else 4, len(found) // 10)):
                    shown = found[page * 10 : page * 10 + 10]
                    main = [f"{tag or host.labels[0]} {page + 1}", *(line for each in shown for line in each[2:])]
                    content = "-".join(str(each) for each in sorted(each[0] for each in shown))
                    world.add(day, host, f"list/{at}/{page + 1}", frame, main, f"{host.name}/list/{content}")


def forums(world, rng):
    for host in world.hosts(8, "forum"):
        language = host.language
        users = [(language.phrase(rng, 1, 1) + str(rng.randrange(100)), language.sentence(rng) if rng.random() < 0.6 else "") for _ in range(80)]

        def post(thread, day):
            user, signature = rng.choice(users)
            lines = [f"{user} {date(rng, day)}"]
            if thread["quotes"] and rng.random() < 0.4:
                who, text = rng.choice(thread["quotes"])
                lines.append(f"{who} {host.labels[0]}: {text.split(language.stop)[0]}{language.stop}")
            text = language.text(rng, rng.randint(10, 90))
            thread["quotes"].append((user, text[0]))
            thread["lines"] += [*lines, *text, *([signature] if signature else [])]

        def thread():
            new = {"lines": [language.phrase(rng, 3, 9)], "quotes": [], "version": 0}
            for _ in range(rng.randint(3, 20)):
                post(new, 0)
            new["words"] = language.count(new["lines"])
            return new

        for day, number, item, again in world.plan(rng, 78, thread):
            for _ in range(rng.choice([0, 1, 1, 3]) if again else 0):
                post(item, day)
            words = language.count(item["lines"])
            if words - item["words"] > 0.2 * words:
                item["version"], item["words"] = item["version"] + 1, words
            main = [*item["lines"], f"{rng.randint(10, 9000)} {host.labels[1]}"]
            world.add(day, host, f"thread/{number}", host.frame, main, f"{host.name}/{number}/{item['version']}")


def calendars(world, rng):
    for host in world.hosts(6, "calendar"):
        grid = " ".join(str(each) for each in range(1, 32))
        pages = itertools.count(0)

        def page():
            number, monthly = next(pages), rng.random() < 0.1
            when = f"2026-{number // 28 % 12 + 1}" + ("" if monthly else f"-{number % 28 + 1}")
            events = rng.choice([0, 0, 1, 1, 2, 4]) * (3 if monthly else 1)
            return when, [f"{rng.randint(8, 21)}:{rng.randrange(0, 60, 15):02} {host.language.phrase(rng, 3, 8)}" for _ in range(events)]

        for day, number, (when, events), _ in world.plan(rng, 88, page):
            main = [f"{host.labels[0]} {when}", grid, *(events or [f"{host.labels[1]} {host.labels[2]} {when}"])]
            world.add(day, host, f"calendar/{number}", host.frame, main, f"{host.name}/{number if events else 'empty'}")


def galleries(world, rng):
    for host in world.hosts(6, "gallery"):
        caption, first = host.language.sentence(rng), rng.randint(1000, 5000)
        for day, number, title, _ in world.plan(rng, 78, lambda: host.language.phrase(rng, 1, 4)):
            main = [f"IMG {first + number} {title}", caption, f"{rng.randint(0, 900)} {host.labels[0]}"]
            world.add(day, host, f"picture/{number}", host.frame, main, f"{host.name}/{number}")


def manuals(world, rng):
    for host in world.hosts(3, "manual"):
        language = host.language
        pages = {}
        names = itertools.count(0)

        def new():
            pages[next(names)] = {"text": article(rng, language, 100, 600), "edited": set(), "content": 0}

        for _ in range(rng.randint(50, 110)):
            new()
        for version in range(1, 13):
            day = world.days[(version - 1) * len(world.days) // 12]
            if version > 1:
                for _ in range(rng.randrange(3)):
                    new()
                del pages[rng.choice(list(pages))]
            for number, page in pages.items():
                words, draw = language.count(page["text"]), rng.random()
                if version > 1 and draw > 0.6:
                    share = rng.uniform(0.1, 0.4) if draw > 0.95 else rng.uniform(0.001, 0.015)
                    positions = rng.sample(range(words), max(1, round(words * share)))
                    page["text"] = language.edit(rng, page["text"], positions)
                    page["edited"].update(positions)
                    if len(page["edited"]) > 0.03 * words:
                        page["content"], page["edited"] = page["content"] + 1, set()
                title, *paragraphs = page["text"]
                main = [title, f"{host.labels[0]} {version}", *paragraphs]
                world.add(day, host, f"v{version}/{number}", host.frame, main, f"{host.name}/{number}/{page['content']}")


def two_languages(world, rng):
    for host in world.hosts(5, "bilingual"):
        second = world.languages["latin2"]
        # The frame of the second language keeps the navigation and the sidebar of the first.
        frame = dataclasses.replace(host.frame, header=[second.phrase(rng, 3, 8)], footer=[second.sentence(rng) for _ in range(4)])

        def pair():
            return article(rng, host.language), article(rng, second)

        for day, number, items, _ in world.plan(rng, 58, pair):
            for name, item, around in zip(("a", "b"), items, (host.frame, frame)):
                world.add(day, host, f"{name}/{number}", around, article_page(rng, host, day, item), f"{host.name}/{name}/{number}")


def signatures(world, rng):
    for host in world.hosts(4, "member"):
        language = host.language
        users = [(language.phrase(rng, 1, 2) + str(each), language.paragraph(rng, 1, 3)) for each in range(60)]

        def page():
            return rng.randrange(60), [language.phrase(rng, 2, 6), *language.text(rng, rng.randint(15, 80))]

        for user, (name, signature) in enumerate(users):
            for day in sorted(rng.sample(world.days, min(2, len(world.days)))):
                facts = [f"{host.labels[0]} {name}", f"{host.labels[1]} 20{user % 26:02}", f"{host.labels[2]} {rng.randint(0, 999)}"]
                world.add(day, host, f"user/{user}", host.kind("user"), [name, *facts, signature], f"{host.name}/user/{user}")
        for day, number, (user, (title, *text)), _ in world.plan(rng, 45, page):
            main = [title, users[user][0], *text, users[user][1]]
            world.add(day, host, f"post/{number}", host.frame, main, f"{host.name}/post/{number}")


def tiny(world, rng):
    for host in world.hosts(40, "tiny"):
        items = [article(rng, host.language, 40, 250) for _ in range(3)]
        for day in sorted(rng.sample(world.days, min(2, len(world.days)))):
            for number, item in enumerate(items):
                world.add(day, host, ("", "about", "contact")[number], host.frame, item, f"{host.name}/{number}")


def freehosters(world, rng):
    shared = Host(world, "www.freehost.example", language="latin", words=80)
    pages = world.plan(rng, world.number(1400), lambda: article(rng, shared.language, 60, 300), again=0.15)
    for day, number, item, _ in pages:
        world.add(day, f"user{number}.freehost.example", "", shared.frame, item, number)


def copied300(world, rng):
    for host in world.hosts(4, "tracked"):
        captures(world, rng, host, rng.randint(100, 400) // 3 + 1)
        title, *text = article(rng, host.language, 150, 400)
        for number in range(300):
            session = code(rng, 16)
            main = [title, f"{host.labels[0]} {session} {host.labels[1]}", *text, f"{host.labels[2]} ?sid={session}"]
            path = f"offer?utm_source={rng.choice(['mail', 'feed', 'ad'])}&n={number}&sid={session}"
            world.add(rng.choice(world.days), host, path, host.frame, main, f"{host.name}/copied")


def versions(world, rng):
    for host in world.hosts(5, "printed"):
        mobile, page_b = host.other(60), host.other()
        for day, number, item, _ in world.plan(rng, 45, lambda: article(rng, host.language), again=0.4):
            world.add(day, host, f"a/{number}", host.frame, article_page(rng, host, day, item), content := f"{host.name}/{number}")
            if rng.random() < 0.5:
                main = [*item, f"{host.labels[6]} https://{host.name}/a/{number} {date(rng, day)}"]
                world.add(day, host, f"print/{number}", None, main, content)
            if rng.random() < 0.5:
                world.add(day, f"m.{host.name}", f"a/{number}", mobile, article_page(rng, host, day, item), content)
        captures(world, rng, host, 30, prefix="ab", frame=lambda *_: rng.choice([host.frame, page_b]))


def redesign(world, rng):
    for host in world.hosts(5, "redesigned"):
        after = host.other()
        items = [article(rng, host.language) for _ in range(95)]
        for day in world.days:
            items += [article(rng, host.language) for _ in range(20 if day > 1 else 0)]
            for number, item in enumerate(items):
                main = article_page(rng, host, day, item)
                world.add(day, host, f"a/{number}", host.frame if day == 1 else after, main, f"{host.name}/{number}")


def moved(world, rng):
    for at, host in enumerate(world.hosts(4, "old")):
        new, frame = f"new-{host.name}", host.other() if at % 2 else host.frame
        items = [article(rng, host.language) for _ in range(90)]
        for day in world.days:
            items += [article(rng, host.language) for _ in range(10 if day > 1 else 0)]
            for number, item in enumerate(items):
                where, around = (host, host.frame) if day == 1 else (new, frame)
                world.add(day, where, f"a/{number}", around, article_page(rng, host, day, item), f"{host.name}/{number}")


def nothingbut(world, rng):
    for host in world.hosts(8, "empty"):
        captures(world, rng, host, 20)
        for kind in ("login", "missing", "cart", "consent"):
            lines = [host.language.phrase(rng, 2, 5), *(host.language.sentence(rng) for _ in range(rng.randint(1, 4)))]
            for day in world.days:
                for number in range(rng.randint(4, 14)):
                    what = rng.choice([f"https://{host.name}/{code(rng)}/{host.language.draw(rng, 1)[0]}", date(rng, day)])
                    main = [*lines, f"{host.labels[7]} {what}"]
                    world.add(day, host, f"{kind}?from={day}-{number}", host.frame, main, f"{host.name}/{kind}")


def sessions(world, rng):
    for at, host in enumerate(world.hosts(5, "session")):
        for day, number, item, _ in world.plan(rng, 78, lambda: article(rng, host.language)):
            session = code(rng)

            def mark(lines):
                # The same session in all lines, an own one in each line, or the time.
                ends = [(f"(sid {session})", f"(sid {code(rng)})", date(rng, day))[at % 3] for _ in lines]
                return [f"{line} {end}" for line, end in zip(lines, ends)]

            around = host.frame
            around = Frame(*(mark(each) for each in (around.nav, around.header, around.aside, around.footer)), around.aside_first)
            world.add(day, host, f"a/{number}", around, mark(item), f"{host.name}/{number}")


def bighost(world, rng):
    host = Host(world, "big.example", language="latin", words=250)
    sections = [host.language.phrase(rng, 1, 1) + str(each) for each in range(16)]

    def page():
        kind = rng.random() < 0.5
        return kind, rng.choice(sections), product(rng, host.language) if kind else article(rng, host.language)

    for day, number, (kind, section, item), _ in world.plan(rng, world.number(5000), page):
        main = product_page(rng, host, item) if kind else article_page(rng, host, day, item)
        world.add(day, host, f"{section}/{number}", host.kind(section), main, number)


def singles(world, rng):
    for host in world.hosts(1500, "single"):
        world.add(rng.choice(world.days), host, "", host.frame, article(rng, host.language, 60, 500), host.name)


def webframes(world, rng):
    language = world.languages["latin"]
    cookies = [[language.paragraph(rng, 2, 4)] for _ in range(2)]
    terms = [language.text(rng, 250) for _ in range(3)]
    licences = [language.text(rng, 150) for _ in range(2)]
    program = [language.phrase(rng, 1, 4) for _ in range(15)] + [language.sentence(rng) for _ in range(5)]
    for host in world.hosts(150, "web"):
        own = rng.randint(0, 2)
        shared = rng.choice(cookies) + (program if own == 0 else rng.choice(terms) if own == 1 else [])
        shared = shared + (rng.choice(licences) if rng.random() < 0.5 else [])
        around = dataclasses.replace(host.frame, footer=host.frame.footer + shared)
        items = [article(rng, host.language, 60, 300) for _ in range(rng.randint(2, 10))]
        for number, item in enumerate(items):
            for day in rng.sample(world.days, min(rng.choice([1, 2]), len(world.days))):
                world.add(day, host, f"web/{number}", around, article_page(rng, host, day, item), f"{host.name}/{number}")


def collectors(world, rng):
    sources = world.hosts(4, "collected")
    alone = world.hosts(40, "collected-once")
    collecting = [Host(world, f"collector{each}.example", language="latin") for each in range(1, 5)]
    for at, source in enumerate(sources + alone):
        several = at < len(sources)
        taken = rng.sample(collecting, 2)
        plan = world.plan(rng, 35 if several else 1, lambda: article(rng, source.language), again=0.3)
        for day, number, item, again in plan:
            content = f"{source.name}/{number}"
            lines = world.add(day, source, f"a/{number}", source.frame, article_page(rng, source, day, item), content)
            for collector in taken if not again and (number < 60 if several else number == 0) else []:
                if rng.random() < 0.7:
                    # Two of the collectors have a banner, the others nothing of their own.
                    banner = [f"{collector.labels[0]} https://{source.name}/a/{number}"] if collector in collecting[:2] else []
                    later = rng.choice(world.days[day - 1 :])
                    world.add(later, collector, f"of/{source.name}/{number}", None, [*banner, *lines], content)


def shortposts(world, rng):
    for host in world.hosts(4, "short", words=100):
        contents = []
        for day, number, _, again in world.plan(rng, 145, lambda: None, again=0.2):
            if again:
                content, text = contents[number]
            elif contents and rng.random() < 0.35:
                content = rng.choice(contents)[0]
                text = contents[content][1]
                text = host.language.edit(rng, [text], [rng.randrange(host.language.count([text]) - 1)])[0]
                contents.append((content, text))
            else:
                content, text = number, host.language.sentence(rng, 10, 25)
                contents.append((content, text))
            world.add(day, host, f"post/{number}", host.frame, [text], f"{host.name}/{content}")


def hostile(world, rng):
    language = world.languages["latin"]
    many, far, source, repeater = [Host(world, f"{each}.example", "latin") for each in ("passages", "long", "source", "repeater")]
    for number in range(50):
        lines = {language.phrase(rng, 2, 5): None for _ in range(2000)}
        world.add(world.days[number % len(world.days)], many, str(number), many.frame, list(lines), f"passages/{number}")
    captures(world, rng, far, 10)
    world.add(1, far, "long", far.frame, ["Long", " ".join(language.draw(rng, 80_000))[:300_000]], "long")
    captures(world, rng, source, 20)
    captures(world, rng, repeater, 20)
    # The repeater has ten paragraphs of an article on 20 pages around other text, and on one page the article itself.
    item = [language.phrase(rng, 4, 9), *(language.paragraph(rng) for _ in range(10))]
    world.add(1, source, "repeated", source.frame, item, "repeated")
    world.add(world.days[-1], repeater, "copy", repeater.frame, item, "repeated")
    for number in range(20):
        own = article(rng, language, 150, 300)
        world.add(world.days[number % len(world.days)], repeater, f"r/{number}", repeater.frame, [*own, *item[1:]], f"repeater/{number}")


SCENARIOS = {
    each.__name__.replace("_", "-"): each
    for each in [
        *(shops, articles, mirrors, press, listings, forums, calendars, galleries, manuals, two_languages, signatures, tiny),
        *(freehosters, copied300, versions, redesign, moved, nothingbut, sessions, bighost, singles, webframes, collectors),
        *(shortposts, hostile),
    ]
}


def as_html(zones):
    """The page in one line, with the lines of its text as blocks."""
    parts = []
    for name, lines in zones:
        lines = [html.escape(each, quote=False) for each in lines]
        if name == "main":
            title = lines[0]
            body = f"<h1>{title}</h1>" + "".join(f"<p>{each}</p>" for each in lines[1:])
            parts.append(f"<main><article>{body}</article></main>")
        elif name == "nav":
            parts.append("<nav><ul>" + "".join(f'<li><a href="/n{at}">{each}</a></li>' for at, each in enumerate(lines)) + "</ul></nav>")
        else:
            parts.append(f"<{name}>" + "".join(f"<div>{each}</div>" for each in lines) + f"</{name}>")
    return f'<!doctype html><html><head><meta charset="utf-8"><title>{title}</title></head><body>{"".join(parts)}</body></html>'


def count(rows):
    contents = {row[3] for row in rows}
    return {"pages": len(rows), "contents": len(contents), "copies": len(rows) - len(contents), "hosts": len({row[1] for row in rows})}


def main():
    parser = argparse.ArgumentParser(description=re.split(r"[:\n]", __doc__)[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of hosts, or of pages of one host [default: 1]")
    parser.add_argument("--html", action="store_true")
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME", help=", ".join(SCENARIOS))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    world = World(args.seed, args.days, args.scale)
    for world.scenario in dict.fromkeys(args.scenario):
        SCENARIOS[world.scenario](world, random.Random(f"{args.seed}-scenario-{world.scenario}"))
    column, by_text = "html" if args.html else "text", {}
    for day, rows in world.pages.items():
        random.Random(f"{args.seed}-order-{day}").shuffle(rows)
        assert len({row[0] for row in rows}) == len(rows), f"day {day} has two pages with one address"
        texts = ["\n".join(line for _, lines in row[4] for line in lines) for row in rows]
        for row, text in zip(rows, texts):
            assert by_text.setdefault(text, row[3]) == row[3], f"{row[0]} has the text of another content"
        columns = {
            "id": [f"d{day}-{number:06}" for number in range(len(rows))],
            "url": [row[0] for row in rows],
            column: [as_html(row[4]) for row in rows] if args.html else texts,
            "content": [row[3] for row in rows],
            "scenario": [row[2] for row in rows],
            "host": [row[1] for row in rows],
        }
        pq.write_table(pa.table(columns), args.out / f"day-{day}.parquet", compression="zstd")
    everything = list(itertools.chain(*world.pages.values()))
    by_scenario = {name: [row for row in everything if row[2] == name] for name in args.scenario}
    counts = {
        "seed": args.seed,
        "scale": args.scale,
        "total": count(everything),
        "days": {day: count(rows) for day, rows in world.pages.items()},
        "scenarios": {name: count(rows) for name, rows in by_scenario.items()},
    }
    # Written last: its presence says that all files are complete.
    (args.out / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


main()
