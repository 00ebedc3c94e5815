"""Scripts, styles and images as they stand in a page: no text of the page, but most of its bytes."""

import base64
import json
import random

_PROPERTIES = (
    "display position top left margin padding color background-color border font-size line-height width height max-width "
    "flex-direction align-items justify-content grid-template-columns z-index opacity transform transition box-shadow "
    "border-radius overflow text-decoration letter-spacing cursor"
).split()
_VALUES = (
    "block none flex inherit auto 0 1px 4px 8px 12px 16px 24px 1rem 1.5rem 100% 50% center space-between relative absolute "
    "#fff #1a1a1a #f4f4f4 #0a66c2 rgba(0,0,0,.12) pointer hidden ease-in-out .2s uppercase 600 700"
).split()
_MEMBERS = (
    "addEventListener querySelector getAttribute setAttribute classList dataset length prototype hasOwnProperty call apply push "
    "forEach map filter indexOf concat slice then catch resolve createElement appendChild parentNode innerHTML textContent "
    "location href replace split join toString defineProperty exports default getBoundingClientRect requestAnimationFrame "
    "setTimeout localStorage getItem setItem stringify parse dispatch subscribe emit render state props children current"
).split()
_STRINGS = (
    "click scroll resize load submit keydown touchstart DOMContentLoaded visibilitychange consent granted denied pageview event "
    "hidden active open is-sticky js-toggle data-src lazyload utm_source undefined object function string GET POST "
    "application/json include no-store session user anonymous experiment variant control error warn timeout"
).split()


def name(rng, length=6):
    """A random name such as bundlers give."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", k=length))


def css(rng, size):
    """About `size` bytes of minified CSS."""
    names = [name(rng) for _ in range(60)]
    parts, total = [], 0
    while total < size:
        selector = rng.choice([".{0}", ".{0}:hover", ".{0}>.{1}", "#{0} .{1}", ".{0}::after", "@media(max-width:{2}px){{.{0}"])
        is_media = selector.startswith("@")
        selector = selector.format(rng.choice(names), rng.choice(names), rng.choice([480, 768, 1024, 1280]))
        rules = ";".join(f"{rng.choice(_PROPERTIES)}:{rng.choice(_VALUES)}" for _ in range(rng.randint(1, 6)))
        parts.append(f"{selector}{{{rules}}}" + "}" * is_media)
        total += len(parts[-1])
    return "".join(parts)


def script(rng, size):
    """About `size` bytes of minified JavaScript."""
    names = [name(rng, 3) for _ in range(40)]
    parts, total = [], 0
    while total < size:
        a, b, c, e = rng.sample("abcdefgtnr", 4)
        x, y, z = (rng.choice(_MEMBERS[: rng.choice([8, len(_MEMBERS)])]) for _ in range(3))
        s, t = rng.choices(_STRINGS, k=2)
        f, n = rng.choice(names), rng.randint(0, 99)
        parts.append(
            rng.choice(
                [
                    f"function {f}({a},{b}){{var {c}={a}.{x}({b});return {c}&&{c}.{y}?{c}.{y}({n}):null}}",
                    f'{a}.{x}("{s}",function({b}){{{b}.{y}({c}=>{c}.{z}("{t}"))}});',
                    f'{n}:function({a},{b},{c}){{"use strict";{c}.d({b},"{f}",function(){{return {e}}});var {e}={c}({n + 7})}},',
                    f'if("{s}"===typeof {a}.{x}||{a}.{y}<{n}){{{b}=[{n},{a}.{z}];for(var {c}=0;{c}<{b}.length;{c}++){b}[{c}].{x}("<div class=\'{t}\'>")}}',
                    f"!function({a}){{var {b}={a}.{x}||({a}.{x}={{}});{b}.{f}={n}/1e3|0,{b}.{y}=/^[{e}-z]+\\/{s}$/i}}(window);",
                    f'const {{{a}:{b},{c}={n}}}=await {e}.{x}({{{y}:"{s}",{z}:!0,{f}:`${{{a}}}/{t}`}});',
                ]
            )
        )
        total += len(parts[-1])
    return "".join(parts)


def icon(rng):
    """An inline SVG icon."""
    path = "".join(
        f"{rng.choice('MLCHVS')}{rng.uniform(0, 24):.2f} {rng.uniform(0, 24):.2f} {rng.uniform(0, 24):.2f} {rng.uniform(0, 24):.2f}"
        for _ in range(rng.randint(3, 12))
    )
    return f'<svg class="icon" width="24" height="24" viewBox="0 0 24 24" aria-hidden="true"><path d="{path}z"/></svg>'


def random_base64(rng, size):
    """`size` random bytes in base 64, as view states, tokens and embedded images are."""
    return base64.b64encode(rng.randbytes(size)).decode()


def image_url(rng, host):
    """The address of an image."""
    return f"https://img.{host}/{rng.randint(2016, 2026)}/{rng.randint(1, 12):02}/{name(rng, 10)}.{rng.choice(['jpg', 'webp', 'png'])}"


def picture(rng, host, alt):
    """An image in several sizes."""
    base = image_url(rng, host)
    sources = ", ".join(f"{base}?w={width}&amp;q=75&amp;sig={name(rng, 8)} {width}w" for width in (320, 480, 640, 960, 1280))
    return (
        f'<picture><source type="image/webp" srcset="{sources}" sizes="(min-width:960px) 640px, 100vw">'
        f'<img src="{base}" alt="{alt}" width="640" height="{rng.randint(300, 480)}" loading="lazy"></picture>'
    )


def json_state(rng, article, size):
    """The state from which a page framework renders the page again: the article's text, and about `size` bytes of other entries."""
    entries, total = [], 0
    while total < size:
        entry = {
            "id": rng.randint(10**6, 10**8),
            "slug": "-".join(rng.choices(_STRINGS, k=3)).lower(),
            "__typename": rng.choice(["Teaser", "Image", "Author", "Slot"]),
            "url": f"https://static.example/media/{rng.randint(1000, 9999)}.webp",
            "ratio": round(rng.random(), 4),
            "flags": {flag: rng.random() < 0.5 for flag in rng.sample(_STRINGS, 3)},
        }
        total += 220
        entries.append(entry)
    state = {
        "props": {"pageProps": {"article": {"title": article.title, "body": article.text}, "related": entries}},
        "buildId": name(rng, 21),
    }
    return json.dumps(state, ensure_ascii=False).replace("</", "<\\/")


class Assets:
    """Scripts and styles that all pages of a site have in common."""

    def __init__(self, host, kilobytes):
        rng = random.Random(f"assets {host}")
        css_bytes = int(kilobytes * 1024 * rng.uniform(0.25, 0.5))
        self.css = css(rng, css_bytes)
        self.script = script(rng, kilobytes * 1024 - css_bytes)
        self.icons = [icon(rng) for _ in range(12)]
        self.logo = f"data:image/png;base64,{random_base64(rng, 900)}"
        cut = len(self.script) // 3
        self.scripts = [self.script[:cut], self.script[cut:]]
