// Attention as a heat map: which token attends to which, per layer and head.

const KINDS = {
  memory: { label: "Translation to source", rows: "target", columns: "source" },
  encoder: { label: "Source to source", rows: "source", columns: "source" },
  decoder: { label: "Translation to translation", rows: "target", columns: "target" },
};
const MEAN = "mean";
const STEPS = [0, 0.05, 0.2, 0.5, 1]; // of the legend

const selects = { kind: "attention-kind", layer: "attention-layer", head: "attention-head" };

/** Fill the controls and draw; what was selected before stays selected if it still exists. */
function drawAttention(explanation) {
  const kinds = Object.keys(KINDS).filter((kind) => explanation.attention[kind].length);
  byId("attention").hidden = !kinds.length; // a model without attention
  if (!kinds.length) return;
  fillSelect(selects.kind, kinds.map((kind) => [kind, KINDS[kind].label]), kinds[0]);
  const redraw = () => {
    const layers = explanation.attention[byId(selects.kind).value];
    const best = Math.max(0, layers.length - 2); // the last layer but one aligns best (Garg et al. 2019)
    fillSelect(selects.layer, layers.map((_, i) => [String(i), `${i + 1} of ${layers.length}`]), String(best));
    const heads = layers[0].map((_, i) => [String(i), `${i + 1} of ${layers[0].length}`]);
    fillSelect(selects.head, [[MEAN, "mean of heads"], ...heads], MEAN);
    drawMap(explanation, byId(selects.kind).value, byId(selects.layer).value, byId(selects.head).value);
  };
  for (const id of Object.values(selects)) byId(id).onchange = redraw;
  redraw();
  drawScale();
}

function fillSelect(id, choices, initial) {
  const select = byId(id), previous = select.value;
  select.replaceChildren(...choices.map(([value, label]) => element("option", { value }, label)));
  select.value = choices.some(([value]) => value === previous) ? previous : initial;
}

/** Return the weights [row][column] of a head, or the mean of the heads of a layer. */
function weightsOf(heads, head) {
  if (head !== MEAN) return heads[Number(head)];
  return heads[0].map((row, i) => row.map((_, j) => heads.reduce((sum, each) => sum + each[i][j], 0) / heads.length));
}

function drawMap(explanation, kind, layer, head) {
  const sides = { source: explanation.source_pieces, target: explainedPieces(explanation) };
  const rowPieces = sides[KINDS[kind].rows], columnPieces = sides[KINDS[kind].columns];
  const weights = weightsOf(explanation.attention[kind][Number(layer)], head);
  const columns = columnPieces.map((piece) => header(piece, "col"));
  const rows = rowPieces.map((piece) => header(piece, "row"));
  const cells = rowPieces.map((piece, i) => columnPieces.map((to, j) => heatCell(piece, to, weights[i][j])));
  const table = element(
    "table",
    { class: "heat", role: "grid", "aria-label": `Attention, ${KINDS[kind].label.toLowerCase()}` },
    element("thead", {}, element("tr", {}, element("td"), ...columns)),
    element("tbody", {}, ...cells.map((row, i) => element("tr", {}, rows[i], ...row))),
  );
  byId("attention-map").replaceChildren(table);
  const readout = byId("attention-readout");
  readout.replaceChildren("Point at a cell, or move with the arrow keys, for its number.");
  const places = new Map(cells.flatMap((row, i) => row.map((cell, j) => [cell, [i, j]])));
  explore(table, cells.flat(), inTable(cells), (cell) => {
    const [i, j] = places.get(cell);
    mark(rows, i);
    mark(columns, j);
    readout.replaceChildren(
      pieceElement(rowPieces[i]), element("span", { class: "arrow" }, " attends to "), pieceElement(columnPieces[j]),
      element("b", {}, fixed(weights[i][j], 3)),
    );
  });
}

const header = (piece, scope) => element("th", { scope }, element("span", {}, pieceElement(piece)));

function heatCell(from, to, weight) {
  const name = `${written(from)} attends to ${written(to)}: ${fixed(weight, 3)}`;
  const cell = element("td", { tabindex: -1, "aria-label": name });
  colour(cell, weight);
  return cell;
}

/** Colour grows with the root of a weight, so that small weights are told apart. */
function colour(node, weight) {
  node.style.setProperty("--share", String(Math.sqrt(Math.min(1, Math.max(0, weight)))));
}

function mark(headers, chosen) {
  headers.forEach((each, i) => each.classList.toggle("marked", i === chosen));
}

function drawScale() {
  const swatches = STEPS.map((weight) => {
    const swatch = element("i", { class: "swatch" });
    colour(swatch, weight);
    return element("span", {}, swatch, String(weight));
  });
  byId("attention-legend").replaceChildren(...swatches);
}
