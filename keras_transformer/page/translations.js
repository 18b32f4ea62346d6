// The alternatives of a sentence, and the tokens of one of them.

/** List translations as radio buttons; `choose` is called with the number of the one that is chosen. */
function drawAlternatives(place, translations, choose) {
  place.replaceChildren(...translations.map((translation, rank) => alternative(translation, rank, choose)));
}

function alternative(translation, rank, choose) {
  const input = element("input", { type: "radio", name: "alternative", value: rank, checked: rank === 0 });
  input.addEventListener("change", () => choose(rank));
  return element(
    "label",
    { class: "alternative" },
    input,
    element("span", { class: "text", lang: "", dir: "auto" }, translation.text || "(empty)", ...marksOf(translation)),
    numbered("score", translation.score),
    numbered("log P", translation.log_probability),
    ...(translation.confidence == null ? [] : [numbered("confidence", translation.confidence)]),
  );
}

/** Return what a reader must know of an alternative, behind its text. */
function marksOf({ is_cut, is_forced }) {
  const marks = [...(is_cut ? ["cut at its limit"] : []), ...(is_forced ? ["the required phrases do not fit"] : [])];
  return marks.length ? [element("small", { class: "marks", lang: "en" }, ` ${marks.join(" \u00b7 ")}`)] : [];
}

const numbered = (name, value) =>
  element("span", { class: "number" }, element("small", {}, `${name} `), fixed(value, 2));

/** Draw the tokens of a translation with their probabilities: as a bar, in per cent, and in full for one at a time. */
function drawTokens(place, readout, translation) {
  const { pieces, piece_log_probabilities: logs } = translation;
  const cells = pieces.map((piece, i) => token(piece, logs[i]));
  const list = element("ol", { class: "tokens", "aria-labelledby": "tokens-title" }, ...cells);
  place.replaceChildren(list);
  readout.replaceChildren("Point at a token, or move with the arrow keys, for its exact number.");
  explore(list, cells, inTable([cells]), (cell) => {
    const i = cells.indexOf(cell);
    readout.replaceChildren(
      pieceElement(pieces[i]),
      element("b", {}, fixed(Math.exp(logs[i]), 4)),
      element("span", {}, `log-probability ${fixed(logs[i], 3)}`),
    );
  });
}

function token(piece, log) {
  const probability = Math.exp(log);
  const attributes = { class: beginsWord(piece) ? "token begins" : "token", tabindex: -1 };
  const cell = element("li", attributes, pieceElement(piece), element("small", {}, percent(probability)));
  cell.style.setProperty("--doubt-share", String(Math.min(1, 1 - probability)));
  return cell;
}
