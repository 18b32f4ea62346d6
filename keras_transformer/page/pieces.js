// Pieces of words, as SentencePiece writes them, and numbers: how they are written on the page.

const SPACE = "\u2581"; // begins a piece that begins a word
const NAMES = { "</s>": "end", "<s>": "begin", "<unk>": "unknown", "<pad>": "padding" };

const beginsWord = (piece) => piece.startsWith(SPACE);

/** Return the text of a piece without the mark of its space. */
function written(piece) {
  if (Object.hasOwn(NAMES, piece)) return NAMES[piece];
  return piece.replaceAll(SPACE, "") || "space";
}

/** Return a piece as an element: a thin mark stands where a word begins, and names of tokens are set apart. */
function pieceElement(piece) {
  if (Object.hasOwn(NAMES, piece)) return element("span", { class: "piece name" }, NAMES[piece]);
  const mark = beginsWord(piece) ? [element("span", { class: "space", "aria-hidden": "true" })] : [];
  const text = piece.replaceAll(SPACE, "") || element("span", { class: "sr" }, "space");
  return element("span", { class: "piece", dir: "auto" }, ...mark, text);
}

/** Return the text that pieces stand for. */
function textOf(pieces) {
  const words = pieces.filter((piece) => !Object.hasOwn(NAMES, piece));
  return words.join("").replaceAll(SPACE, " ").trim();
}

/** Write a number with this many digits after the point, and with a real minus sign. */
function fixed(number, digits) {
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "\u2212");
}

/** Write a probability in per cent; only 0 is 0%, and only 1 is 100%. */
function percent(probability) {
  const rounded = Math.round(100 * probability);
  if (rounded === 0 && probability > 0) return "<1%";
  if (rounded === 100 && probability < 1) return ">99%";
  return `${rounded}%`;
}
