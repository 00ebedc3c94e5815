"use strict";

/** Hits that are added to the table at once. */
const ROWS = 200;
/** The most words and separators of a text that are compared. */
const MAX_WORDS = 5000;
/** The most words and separators that may differ; beyond, only the start and the end of two texts are compared. */
const MAX_DIFFERING = 2000;
/** Equal words and separators that are shown before and after a difference. */
const CONTEXT = 12;
/** Width of a bit in the bar, and of the gap between two bytes, in SVG units. */
const [BIT, GAP] = [5, 3];
/** Milliseconds after which the next lookup also reloads the figures of the index. */
const OLD = 60_000;

const at = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");
const plural = (number, name) => `${count(number)} ${name}${number === 1 ? "" : "s"}`;

/** Replaces control characters, and those that reverse the order of others. */
const visible = (text) => text.replace(/(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f]/gu, "\ufffd");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// What is looked up.

/** Reads an input as a fingerprint, and returns its 16 hexadecimal digits; null if the input is a text. */
function asFingerprint(input) {
  const hexadecimal = /^(?:0x)?([0-9a-f]{16})$/i.exec(input);
  if (hexadecimal) return hexadecimal[1].toLowerCase();
  // A signed number, as in the column fp of an archive. Shorter ones are more likely part of a text.
  if (!/^(?:-\d{1,19}|\d{17,19})$/.test(input)) return null;
  const number = BigInt(input);
  if (number !== BigInt.asIntN(64, number)) return null;
  return BigInt.asUintN(64, number).toString(16).padStart(16, "0");
}

/** The body of a lookup, from the form. */
function asked() {
  const input = at("query").value;
  const fp = asFingerprint(input.trim());
  const query = { k: at("k").valueAsNumber, limit: at("limit").valueAsNumber };
  if (fp !== null) return { fp, ...query };
  const similarity = at("similarity-field").hidden ? 0 : at("similarity").valueAsNumber;
  return { text: input, ...query, ...(similarity > 0 && { min_similarity: similarity }) };
}

// The server.

/** A failed request, with a sentence for the user. */
class Failure extends Error {}

/** Sends a request with the token, if there is one; returns the answer and its headers. */
async function request(path, options = {}) {
  const token = at("token").value.trim();
  const headers = { ...options.headers };
  if (/^[\x21-\x7e]+$/.test(token)) headers.authorization = `Bearer ${token}`;
  let response, text;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The server cannot be reached.");
  }
  let answer = null;
  try {
    // Keeps the digits of an id beyond 2^53, which a number would round.
    answer = JSON.parse(text, (key, value, source) =>
      key === "id" && typeof value === "number" && !Number.isSafeInteger(value) ? source?.source ?? value : value);
  } catch {
    if (response.ok) throw new Failure("The answer of the server cannot be read.");
  }
  if (response.status === 401) at("token-field").hidden = false;
  if (!response.ok) throw new Failure(sentence(response, answer?.error, token !== ""));
  return { answer, headers: response.headers };
}

/** Says what an answer with an error means. */
function sentence(response, said, hasToken) {
  const reason = typeof said === "string" && said ? ` The server says: ${visible(said)}` : "";
  const seconds = Number(response.headers.get("retry-after"));
  const when = seconds > 0 ? `in ${plural(seconds, "second")}` : "in a moment";
  switch (response.status) {
    case 401:
      return hasToken ? "The server refuses this token." : "The server asks for a token. Type it below the text, and look up again.";
    case 408:
      return "The text took too long to arrive. Look it up again.";
    case 413:
      return `The text is too large for this server. Look up a part of it, or its fingerprint.${reason}`;
    case 429:
      return `The server has too many requests. Look it up again ${when}.`;
    case 503:
      return `The server cannot answer now. Look it up again ${when}.${reason}`;
    case 400:
      return `The server refuses this lookup.${reason}`;
    default:
      return response.status >= 500 ? `The server failed.${reason}` : `The server does not answer lookups (status ${response.status}).${reason}`;
  }
}

// What the index holds.

let loaded = -Infinity;

async function showIndex() {
  let info;
  try {
    ({ answer: info } = await request("v1/info"));
  } catch (failure) {
    at("about").textContent = failure.message;
    return;
  }
  const isFirst = loaded === -Infinity;
  loaded = performance.now();
  const numbers = [
    [info.rows, info.rows === 1 ? "document" : "documents"],
    [info.fingerprints, "distinct fingerprints"],
    [info.days, info.days === 1 ? "day" : "days"],
  ];
  at("numbers").replaceChildren(...numbers.map(([number, name]) =>
    element("li", {}, element("strong", {}, count(number)), element("span", {}, name))));
  at("numbers").hidden = false;
  const sketches = info.sketch_bits > 0 ? `, with sketches of ${info.sketch_bits} bits` : "";
  at("about").textContent = visible(
    `Version ${count(info.version)} of the index covers version ${count(info.archive_version)} of the archive ${info.archive}${sketches}. `
    + `Features: ${info.tokenizer}.`);
  at("k").max = info.max_distance;
  if (isFirst) {
    at("k").value = info.k;
    at("similarity").value = info.min_similarity;
  }
  showK();
  at("similarity-field").hidden = !(info.sketch_bits > 0);
}

// Words that differ.

const segmenter = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

/** Splits a text into words and separators; white space becomes one space. `cut`: the text has more than are compared. */
function words(text) {
  const found = [];
  const pieces = segmenter ? segmenter.segment(text) : text.matchAll(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu);
  for (const piece of pieces) {
    if (found.length === MAX_WORDS) return { found, cut: true };
    const word = piece.segment ?? piece[0];
    if (/\S/.test(word)) found.push(visible(word));
    else if (found.length > 0 && found[found.length - 1] !== " ") found.push(" ");
  }
  return { found, cut: false };
}

const countWords = (some) => some.filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** The runs that two lists have in common, as [start in a, start in b, length]: a longest common subsequence (Myers 1986). */
function commonRuns(a, b) {
  const most = Math.min(a.length + b.length, MAX_DIFFERING);
  // For each diagonal, from -most - 1 on, the furthest position in a that was reached on it.
  const furthest = new Int32Array(2 * most + 3);
  const get = (diagonal) => furthest[diagonal + most + 1];
  const steps = [];
  for (let differing = 0; differing <= most; differing++) {
    for (let diagonal = -differing; diagonal <= differing; diagonal += 2) {
      let x = isDown(get, diagonal, differing) ? get(diagonal + 1) : get(diagonal - 1) + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      furthest[diagonal + most + 1] = x;
      if (x >= a.length && x - diagonal >= b.length) return backwards(steps, a.length, b.length);
    }
    steps.push(furthest.slice(most + 1 - differing, most + 2 + differing));
  }
  return startAndEnd(a, b);
}

/** Whether the furthest path to a diagonal comes from the diagonal above, not from the one below. */
function isDown(get, diagonal, differing) {
  return diagonal === -differing || (diagonal !== differing && get(diagonal - 1) < get(diagonal + 1));
}

/** Follows the recorded steps back from the end; returns the common runs, the first first. */
function backwards(steps, x, y) {
  const runs = [];
  for (let differing = steps.length; differing > 0; differing--) {
    const get = (diagonal) => steps[differing - 1][diagonal + differing - 1];
    const diagonal = x - y;
    const before = isDown(get, diagonal, differing) ? diagonal + 1 : diagonal - 1;
    const from = get(before);
    const start = before > diagonal ? from : from + 1;
    runs.push([start, start - diagonal, x - start]);
    [x, y] = [from, from - before];
  }
  runs.push([0, 0, x]);
  return runs.reverse().filter(([, , length]) => length > 0);
}

/** The common runs at the start and at the end of two lists. */
function startAndEnd(a, b) {
  const least = Math.min(a.length, b.length);
  let [start, end] = [0, 0];
  while (start < least && a[start] === b[start]) start++;
  while (end < least - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return [[0, 0, start], [a.length - end, b.length - end, end]].filter(([, , length]) => length > 0);
}

/** Compares two texts: the parts of each side, how many words differ, and how many there are. */
function compare(left, right) {
  const [a, b] = [words(left), words(right)];
  const sides = { left: [], right: [], differing: 0, words: 0, cut: a.cut || b.cut };
  sides.words = Math.max(countWords(a.found), countWords(b.found));
  let [x, y] = [0, 0];
  const differ = (toX, toY) => {
    const [gone, come] = [a.found.slice(x, toX), b.found.slice(y, toY)];
    if (gone.length > 0) sides.left.push({ mark: "del", text: gone.join("") });
    if (come.length > 0) sides.right.push({ mark: "ins", text: come.join("") });
    sides.differing += Math.max(countWords(gone), countWords(come));
  };
  for (const [runX, runY, length] of commonRuns(a.found, b.found)) {
    differ(runX, runY);
    [x, y] = [runX + length, runY + length];
    const isFirst = runX === 0 && runY === 0;
    const isLast = x === a.found.length && y === b.found.length;
    const parts = shortened(a.found.slice(runX, x), isFirst, isLast);
    sides.left.push(...parts);
    sides.right.push(...parts);
  }
  differ(a.found.length, b.found.length);
  return sides;
}

/** A run of equal words; of a long one, only what is next to a difference. */
function shortened(run, isFirst, isLast) {
  const before = isFirst ? (isLast ? 4 * CONTEXT : 0) : CONTEXT;
  const after = isLast ? 0 : CONTEXT;
  if (run.length <= before + after + CONTEXT) return [{ text: run.join("") }];
  const hidden = run.slice(before, run.length - after);
  return [
    { text: run.slice(0, before).join("") },
    { hidden: countWords(hidden) },
    { text: run.slice(run.length - after).join("") },
  ].filter((part) => part.text !== "");
}

// The answer.

/** An SVG path of the bits for which `has` is true, the highest bit at the left. */
function bits(has) {
  let path = "";
  for (let bit = 63; bit >= 0; bit--) {
    const number = 63 - bit;
    if (has(bit)) path += `M${number * BIT + Math.floor(number / 8) * GAP} 0h${BIT - 1}v14h-${BIT - 1}z`;
  }
  return path;
}

const ALL_BITS = bits(() => true);

/** A bar of 64 bits, in which those that differ are marked. */
function bar(one, other) {
  const difference = BigInt(`0x${one}`) ^ BigInt(`0x${other}`);
  const differs = (bit) => (difference >> BigInt(bit) & 1n) === 1n;
  const which = [...Array(64).keys()].reverse().filter(differs);
  const shape = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const label = which.length === 0 ? "all bits are equal" : `differing bits, counted from 0: ${which.join(", ")}`;
  const width = 64 * BIT - 1 + 7 * GAP;
  const made = shape("svg", { viewBox: `0 0 ${width} 14`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  made.append(shape("path", { class: "same", d: ALL_BITS }), shape("path", { class: "differs", d: bits(differs) }));
  const title = shape("title", {});
  title.textContent = label;
  made.prepend(title);
  return made;
}

/** The text of one side, its parts marked. */
function side(name, parts, attributes = {}) {
  const text = element("p", { class: "text", dir: "auto", tabindex: "0", role: "region", "aria-label": name });
  for (const part of parts) {
    if (part.hidden !== undefined) text.append(" ", element("span", { class: "hidden" }, `… ${plural(part.hidden, "equal word")} …`), " ");
    else text.append(part.mark ? element(part.mark, {}, part.text) : part.text);
  }
  return element("div", attributes, element("h3", {}, name), text);
}

/** The text of a hit; beside it, if a text was looked up, that text, with the differing words marked. */
function texts(looked, hit) {
  if (looked.text === undefined) {
    const { found, cut } = words(hit.text);
    const whole = [{ text: found.join("") + (cut ? " …" : "") }];
    return element("div", { class: "sides" }, side("text of the document", whole, { class: "alone" }));
  }
  const sides = compare(looked.text, hit.text);
  const first = sides.cut ? "the first " : "";
  const note = sides.differing === 0
    ? `All ${first}words are equal.`
    : `${count(sides.differing)} of ${first}${plural(sides.words, "word")} ${sides.differing === 1 ? "differs" : "differ"}.`;
  return element("div", { class: "sides" }, element("p", { class: "why note" }, note),
    side("text that was looked up", sides.left), side("text of the document", sides.right));
}

// On a narrow screen the style sheet makes blocks of rows and cells, so their roles must be explicit.
const cell = (attributes, ...children) => element("td", { role: "cell", ...attributes }, ...children);
const row = (...cells) => element("tr", { role: "row" }, ...cells);

/** The rows of a hit: its own, and that of its text, which is made when it is opened. */
function hitRows(looked, fp, hit, columns) {
  const id = element("bdi", {}, visible(String(hit.id)));
  const name = element("th", { scope: "row", role: "rowheader" }, id);
  const distance = element("div", {}, element("b", {}, String(hit.distance)));
  if (hit.fp) distance.append(bar(fp, hit.fp));
  const cells = [name, cell({ class: "distance", "data-name": "distance" }, distance),
    cell({ class: "day" }, hit.day ?? (hit.remembered ? "remembered" : "no day"))];
  if (columns.similarity) {
    const known = hit.similarity !== undefined && hit.similarity !== null;
    cells.push(cell({ class: "similarity", "data-name": "similarity" }, known ? hit.similarity.toFixed(2) : "not known"));
  }
  const own = row(...cells);
  if (hit.text === undefined) return [own];
  const open = element("button", { type: "button", class: "open", "aria-expanded": "false" });
  id.replaceWith(open);
  open.append(id);
  const below = row();
  below.className = "texts";
  below.hidden = true;
  open.addEventListener("click", () => {
    if (below.childElementCount === 0) below.append(cell({ colspan: String(cells.length) }, texts(looked, hit)));
    below.hidden = !below.hidden;
    open.setAttribute("aria-expanded", String(!below.hidden));
  });
  return [own, below];
}

/** The table of the hits, some at a time. */
function table(looked, answer) {
  const { hits, fp } = answer;
  const columns = { similarity: hits.some((hit) => hit.similarity !== undefined) };
  const names = [["document", "Document"], ["distance", "Distance in bits"], ["day", "Day"]];
  if (columns.similarity) names.push(["similarity", "Similarity"]);
  const head = row(...names.map(([kind, name]) => element("th", { scope: "col", role: "columnheader", class: kind }, name)));
  const body = element("tbody", { role: "rowgroup" });
  const made = element("div", {}, element("table", { role: "table", "aria-label": "Hits" },
    element("thead", { role: "rowgroup" }, head), body));
  const more = element("button", { type: "button", id: "more" });
  let shown = 0;
  const show = () => {
    const next = hits.slice(shown, shown + ROWS).flatMap((hit) => hitRows(looked, fp, hit, columns));
    body.append(...next);
    const isFirst = shown === 0;
    shown = Math.min(shown + ROWS, hits.length);
    more.textContent = `Show ${count(Math.min(ROWS, hits.length - shown))} more of ${plural(hits.length, "document")}`;
    more.hidden = shown === hits.length;
    if (!isFirst) {
      // The button may be gone, and the focus with it.
      next[0].tabIndex = -1;
      next[0].focus();
    }
  };
  more.addEventListener("click", show);
  show();
  made.append(more);
  return made;
}

function showAnswer(looked, answer, times) {
  const fp = element("span", { class: "fingerprint" }, answer.fp ?? "");
  const said = element("p");
  if (answer.fp === null) {
    said.append("This text is empty or too short, so it cannot be compared.");
  } else if (answer.hits.length === 0) {
    const wider = looked.k < Number(at("k").max) ? " A larger k finds documents that are less near." : "";
    said.append(`Nothing within ${plural(looked.k, "bit")} of the fingerprint `, fp, `.${wider}`);
  } else {
    said.append(`${plural(answer.hits.length, "document")} within ${plural(looked.k, "bit")} of the fingerprint `, fp, ".");
  }
  if (answer.more) said.append(` There are more than ${count(looked.limit)}; the nearest are shown.`);
  at("said").replaceChildren(said, element("p", { class: "why" }, times));
  at("hits").replaceChildren(...(answer.hits.length > 0 ? [table(looked, answer)] : []));
}

const time = (milliseconds) => milliseconds < 1 ? `${Math.round(milliseconds * 1000)} µs`
  : milliseconds < 1000 ? `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;

/** How long the server took, by its header Server-Timing, and the whole request. */
function took(headers, whole) {
  const own = /(?:^|,)\s*lookup\s*;[^,]*?\bdur=([\d.]+)/.exec(headers.get("server-timing") ?? "");
  return own ? `The server took ${time(Number(own[1]))}, the whole request ${time(whole)}.` : `The request took ${time(whole)}.`;
}

let running = null;

async function lookUp() {
  running?.abort();
  const own = running = new AbortController();
  at("failed").textContent = "";
  at("answer").setAttribute("aria-busy", "true");
  try {
    const looked = asked();
    if (looked.text !== undefined && !looked.text.trim()) throw new Failure("There is nothing to look up: the text is empty.");
    const start = performance.now();
    const { answer, headers } = await request("v1/lookup", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(looked),
      signal: own.signal,
    });
    const whole = performance.now() - start;
    if (start - loaded > OLD) showIndex();
    if (own === running) showAnswer(looked, answer, took(headers, whole));
  } catch (error) {
    if (error.name === "AbortError" || own !== running) return;
    if (!(error instanceof Failure)) throw error;
    at("said").replaceChildren();
    at("hits").replaceChildren();
    at("failed").textContent = error.message;
    if (!at("token-field").hidden && !at("token").value) at("token").focus();
  } finally {
    if (own === running) at("answer").setAttribute("aria-busy", "false");
  }
}

// The form.

function showK() {
  at("k-value").textContent = plural(at("k").valueAsNumber, "bit");
}

function showReadAs() {
  const input = at("query").value.trim();
  const fp = asFingerprint(input);
  const note = at("read-as");
  if (fp !== null) note.replaceChildren("This is read as the fingerprint ", element("span", { class: "fingerprint" }, fp), ".");
  else note.textContent = "A fingerprint has 16 hexadecimal digits, or is a number of the column fp. Everything else is a text.";
}

at("k").addEventListener("input", showK);
at("query").addEventListener("input", showReadAs);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  lookUp();
});
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    at("form").requestSubmit();
  }
});
if (/^(Mac|iP)/.test(navigator.platform)) at("keys").textContent = "or ⌘+Enter in the text";
showK();
showReadAs();
showIndex();
