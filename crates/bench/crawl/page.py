"""A page: an article on a site, and the parts that change from one fetch to the next."""

import dataclasses
import functools
import random
import re
from html import escape

from . import assets, words

#: The parts of a page, each with a seed of its own: a planted pair differs in one of them. `front` is the navigation that all
#: pages of a site have in common.
SLOTS = ("story", "ad", "counter", "date", "navigation", "front", "fetch")


@dataclasses.dataclass
class Site:
    """A site: all its pages have one template."""

    host: str
    title: str
    #: The function that renders a page.
    template: callable
    language: str = "en"
    charset: str = "utf-8"
    #: Kilobytes of scripts and styles in each page.
    kilobytes: int = 8
    #: Its share of all pages, against those of the other sites.
    share: float = 1.0
    #: The form of its addresses.
    path: str = "/{y}/{m:02}/{slug}.html"

    @functools.cached_property
    def assets(self):
        return assets.Assets(self.host, self.kilobytes)

    @functools.cached_property
    def menu(self):
        """The entries of its main menu."""
        rng = random.Random(f"menu {self.host}")
        sections = words.SECTIONS[self.language]
        return rng.sample(sections, min(len(sections), rng.randint(7, 13)))


@dataclasses.dataclass
class Page:
    """A page of the crawl."""

    number: int
    site: Site
    article: object
    #: Titles and summaries of other articles of the language, for teasers.
    others: list
    #: The seed of each slot.
    seeds: dict
    url: str = ""

    def __post_init__(self):
        self.rngs = {}
        self.label = words.LABEL[self.site.language]

    def rng(self, slot):
        """The random numbers of a slot."""
        if slot not in self.rngs:
            self.rngs[slot] = random.Random(f"{slot} {self.site.host} {self.seeds[slot]}")
        return self.rngs[slot]

    def render(self):
        """The page as HTML."""
        self.rngs = {}
        return self.site.template(self)

    # The story: who wrote it and when, the same in each fetch.

    def author(self, slot="story"):
        rng = self.rng(slot)
        return f"{rng.choice(words.GIVEN)} {rng.choice(words.FAMILY)}"

    def published(self):
        return self._date(self.rng("story"), range(2014, 2026))

    def remarks(self, most):
        """Comments of readers: (name, date, text)."""
        rng = self.rng("story")
        return [
            (self.author(), self._date(rng, range(2024, 2027)), self.fill(rng, rng.choice(words.REMARKS[self.site.language])))
            for _ in range(rng.randint(0, most))
        ]

    # What changes with each fetch.

    def today(self):
        """The date and time of the fetch, as a page shows it."""
        rng = self.rng("date")
        day = f"{rng.choice(words.DAYS)}, " if self.site.language == "en" else ""
        return f"{day}{self._date(rng, [2026])} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}"

    def updated(self):
        return self._date(self.rng("date"), [2025, 2026])

    def _date(self, rng, years):
        month = rng.randint(1, 12)
        return words.DATES[self.site.language].format(
            d=rng.randint(1, 28), m=month, y=rng.choice(years), month=words.MONTHS[month - 1]
        )

    def count(self, most=100_000):
        """A count of views, votes or the like: small numbers are more frequent."""
        number = int(most ** self.rng("counter").random())
        return f"{number:,}" if self.site.language == "en" else str(number)

    # Advertisements.

    def fill(self, rng, text):
        return text.format(
            n=rng.randint(12, 99),
            m=rng.randint(3, 30),
            goods=rng.choice(words.GOODS[self.site.language]),
            brand=rng.choice(words.BRANDS),
            name=rng.choice(words.GIVEN),
            day=rng.choice(words.DAYS),
        )

    def ad(self):
        """Headline, text and address of an advertisement."""
        rng = self.rng("ad")
        headline, text = rng.choice(words.ADS[self.site.language])
        address = f"https://ads.{rng.choice(words.BRANDS).lower().replace(' ', '')}.example/c?id={rng.randint(10**8, 10**9)}"
        # One random state for both, so that the brand is the same.
        state = rng.getstate()
        headline = self.fill(rng, headline)
        rng.setstate(state)
        return escape(headline), escape(self.fill(rng, text)), escape(address)

    def ad_frame(self):
        """An advertisement that a script loads: no text but its label."""
        rng = self.rng("ad")
        slot = assets.name(rng, 12)
        return (
            f'<div class="ad-slot ad-slot--mpu" id="ad-{slot}" data-ad-unit="/{rng.randint(10**6, 10**7)}/{slot}" aria-hidden="true">'
            f'<span class="ad-label">{self.label["ad"]}</span><iframe src="https://ads.example/f?{slot}" width="300" height="250" '
            f'title="3rd party ad content" loading="lazy"></iframe><script>adq.push({{id:"ad-{slot}",k:{rng.randint(1, 999)}}})</script></div>'
        )

    def ad_box(self, css="sponsored"):
        """An advertisement with text."""
        headline, text, address = self.ad()
        return (
            f'<div class="{css}"><span class="ad-label">{self.label["sponsored"]}</span>'
            f'<a href="{address}" rel="sponsored nofollow"><strong>{headline}</strong></a><p>{text}</p></div>'
        )

    # Navigation.

    def menu_links(self, separator="", item='<li class="menu-item"><a href="{href}">{text}</a></li>'):
        """The main menu, and what it features at the moment."""
        featured = self.rng("front").sample(words.SECTIONS[self.site.language], 2)
        return separator.join(
            item.format(href=f"/{at}/", text=escape(text)) for at, text in enumerate([*self.site.menu, *featured])
        )

    def teasers(self, count, slot="navigation"):
        """Other articles: (title, summary, address)."""
        rng = self.rng(slot)
        some = rng.sample(self.others, min(count, len(self.others)))
        return [(escape(title), escape(summary), f"/{rng.randint(10**5, 10**6)}-{slug(title)}") for title, summary in some]

    def teaser_list(self, count, item='<li><a href="{href}">{title}</a></li>', slot="navigation"):
        """Articles that are related to this one."""
        return "".join(
            item.format(href=href, title=title, summary=summary) for title, summary, href in self.teasers(count, slot)
        )

    def front_list(self, count, item='<li><a href="{href}">{title}</a></li>'):
        """Articles that all pages of the site point to, such as the most read ones."""
        return self.teaser_list(count, item, "front")

    # Notices.

    def cookie_text(self):
        rng = random.Random(f"cookies {self.site.host}")
        return escape(rng.choice(words.COOKIES[self.site.language]).format(n=rng.randint(40, 900)))

    def newsletter_text(self):
        rng = random.Random(f"newsletter {self.site.host}")
        return escape(rng.choice(words.NEWSLETTER[self.site.language]).format(n=rng.randint(12, 90)))

    def notices(self, count):
        """Paragraphs that stand on all pages of the site."""
        texts = words.NOTICES.get(self.site.language, [])
        rng = random.Random(f"notices {self.site.host}")
        return [escape(text.format(site=self.site.title)) for text in rng.sample(texts, min(count, len(texts)))]

    def footer_text(self):
        year = 2026
        return (
            f"© {random.Random(self.site.host).randint(1996, 2019)}–{year} {escape(self.site.title)}. {self.label['rights']}."
        )

    def icon(self, at):
        return self.site.assets.icons[at % len(self.site.assets.icons)]

    def token(self, size=24):
        """A token that every fetch has anew."""
        return assets.random_base64(self.rng("fetch"), size)

    def picture(self):
        return assets.picture(self.rng("story"), self.site.host, escape(self.article.title, quote=True))


def slug(title):
    """A title as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "page"
