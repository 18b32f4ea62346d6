// A text of several sentences: its parts are asked one after the other, and pointing at a sentence shows its partner.

const ABBREVIATION = /(?:^|[\s(])\p{L}{1,4}\.\s*$/u; // what may be none: then the server, which knows more, decides
const INSIDE = /[.?!]$/; // a stop without a space behind it may be inside a URL: the server decides here too
const WORD = /\p{L}/u; // what has none is no sentence to the server

/** Return the parts of a text as [start, end], each one sentence or more; the server finds the sentences inside. */
function partsOf(text) {
  const segments = new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text);
  const parts = [];
  let start = 0;
  for (const { segment, index } of segments) {
    const end = index + segment.length;
    const endsLine = /\n\s*$/.test(segment);
    if (ABBREVIATION.test(segment) && !endsLine && end < text.length) continue;
    if (INSIDE.test(segment) && end < text.length) continue;
    if (endsLine && isWrapped(text, start, end)) continue;
    if (WORD.test(text.slice(start, end))) parts.push([start, end]);
    start = end;
  }
  if (WORD.test(text.slice(start))) parts.push([start, text.length]);
  return parts;
}

/** Return whether a line may go on in the next one; the server decides. */
function isWrapped(text, start, end) {
  const line = text.slice(start, end);
  return line.length >= 40 && !/\n[ \t]*\r?\n\s*$/.test(line) && !/[.!?\u2026:][\p{P}]*\s*$/u.test(line) && end < text.length;
}

/** Return whether a text is translated in parts, and not as one sentence with all its alternatives. */
function hasParagraphs(text, options) {
  if (!data.has_paragraphs || !("Segmenter" in Intl) || options.required) return false;
  return partsOf(text).length > 1 || /\n/.test(text.trim());
}

/** Translate the parts of a text, and show each when it is ready. */
async function askParts(text, options, signal) {
  const begin = performance.now(), view = drawParts(text, partsOf(text));
  const { n_best, target_prefix, ...others } = { ...options, paragraphs: true };
  const unplaced = new Set(), remaining = new Set();
  let isCut = false;
  for (const [number, [start, end]] of view.parts.entries()) {
    const part = text.slice(start, end).trim();
    const asked = { ...others, n_best: 1, ...(target_prefix && number === 0 ? { target_prefix } : {}) };
    const known = JSON.stringify([part, asked]);
    if (!answered.has(known)) answered.set(known, await patiently(ask(url, bodyOf(SIGNATURE, part, asked), signal)));
    const row = answered.get(known);
    for (const [phrases, of] of [[unplaced, row.unplaced], [remaining, row.remaining]])
      for (const phrase of (of?.[0] ?? "").split("\n").filter(Boolean)) phrases.add(phrase);
    isCut ||= Boolean(row.is_cut?.[0]);
    view.fill(number, row.translations[0], pairsOf(row.spans));
    const share = number + 1 < view.parts.length ? `${number + 1} of ${view.parts.length} parts` : `${view.sentences()} sentences`;
    const trouble = troubleOf({ is_cut: isCut, unplaced: [...unplaced].join(", "), remaining: [...remaining].join(", ") });
    byId("answer-note").textContent = `${share}${trouble} \u00b7 ${Math.round(performance.now() - begin)} ms`;
  }
}

const answered = new Map(); // of this page: what is typed at the end of a text asks for nothing before it

/** Return the places of sentences: [source start, source end, target start, target end]. */
function pairsOf(spans) {
  const places = numbersOf(spans);
  return Array.from({ length: places.length / 4 }, (_, i) => places.slice(4 * i, 4 * i + 4));
}

/** Show a text in both panes: until a part is translated, its source is pale in place of the translation. */
function drawParts(text, parts) {
  showError("");
  byId("results").hidden = true;
  byId("source-note").textContent = "";
  const shown = [], mirrored = [];
  let reached = 0, count = 0;
  for (const [start, end] of parts) {
    const raw = text.slice(start, end), inner = raw.trim(), before = start + raw.indexOf(inner);
    for (const list of [shown, mirrored]) list.push(text.slice(reached, before));
    shown.push(element("span", { class: "awaited" }, inner));
    mirrored.push(element("span", {}, inner));
    reached = before + inner.length;
  }
  for (const list of [shown, mirrored]) list.push(text.slice(reached));
  byId("translation").replaceChildren(...shown);
  byId("mirror").replaceChildren(...mirrored);
  const [targets, sources] = ["translation", "mirror"].map((id) => [...byId(id).children]);
  const fill = (part, translation, pairs) => {
    const source = sources[part].textContent, ids = pairs.map(() => count++);
    sources[part].replaceChildren(...inSentences(source, pairs.map((pair) => pair.slice(0, 2)), ids));
    targets[part].replaceChildren(...inSentences(translation, pairs.map((pair) => pair.slice(2)), ids));
    targets[part].classList.remove("awaited");
  };
  return { parts, fill, sentences: () => count };
}

/** Return a text whose sentences are elements. Places count characters of Unicode, which may be two of JavaScript. */
function inSentences(text, spans, ids) {
  const characters = [...text], pieces = [];
  let reached = 0;
  spans.forEach(([start, end], i) => {
    pieces.push(characters.slice(reached, start).join(""));
    pieces.push(element("span", { class: "sentence", "data-sentence": ids[i] }, characters.slice(start, end).join("")));
    reached = end;
  });
  return [...pieces, characters.slice(reached).join("")];
}

/** Mark the sentence of this number in both panes, and no other. */
function markSentence(number) {
  for (const sentence of document.querySelectorAll(".sentence"))
    sentence.classList.toggle("marked", sentence.dataset.sentence === number);
}

/** Pointing at a sentence, or the caret in it, marks it and its partner. */
function followPointer() {
  const box = byId("sentence"), mirror = byId("mirror");
  byId("translation").addEventListener("pointerover", (event) => markSentence(event.target.closest(".sentence")?.dataset.sentence));
  byId("translation").addEventListener("pointerleave", () => markSentence());
  box.addEventListener("pointermove", ({ clientX: x, clientY: y }) => markSentence(
    [...mirror.querySelectorAll(".sentence")].find((sentence) => [...sentence.getClientRects()].some(
      (box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom,
    ))?.dataset.sentence,
  ));
  box.addEventListener("pointerleave", () => markSentence());
  document.addEventListener("selectionchange", () => {
    if (document.activeElement !== box) return;
    let place = box.selectionStart;
    const walker = document.createTreeWalker(mirror, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (place <= walker.currentNode.length) return markSentence(walker.currentNode.parentElement.closest(".sentence")?.dataset.sentence);
      place -= walker.currentNode.length;
    }
  });
}
