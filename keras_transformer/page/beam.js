// The tree of the beam as a drawing: kept, finished and dropped hypotheses differ in form, mark and label.

const ROW = 36, HEIGHT = 26, GAP = 38, MARGIN = 10; // pixels
const KIND_LABELS = { kept: "kept", finished: "finished", dropped: "dropped" };

/** Draw the beam of an explanation, and again whenever more or fewer dropped hypotheses are wanted. */
function drawBeam(explanation) {
  const redraw = () => drawTree(treeOf(withBestDropped(explanation.beam), explainedPieces(explanation)));
  byId("beam-dropped").onchange = redraw;
  redraw();
  drawBeamLegend();
}

/** Leave out dropped hypotheses, except the best of each step. */
function withBestDropped(beam) {
  const most = Number(byId("beam-dropped").value);
  const counts = [];
  const best = beam.filter((entry) => entry.slot < 0).sort((a, b) => b.log_probability - a.log_probability);
  const shown = new Set(best.filter(({ step }) => (counts[step] = (counts[step] ?? 0) + 1) <= most));
  return beam.filter((entry) => entry.slot >= 0 || shown.has(entry));
}

function drawTree(layers) {
  place(layers);
  const nodes = layers.slice(1).flat();
  const cells = new Map(nodes.map((node) => [nodeElement(node), node]));
  const drawing = shape(
    "svg",
    { class: "beam", role: "list", "aria-labelledby": "beam-title", ...sizeOf(layers) },
    shape("g", { "aria-hidden": "true" }, rootElement(layers[0][0]), ...nodes.map(branch).sort(bestLast)),
    ...cells.keys(),
  );
  byId("beam-tree").replaceChildren(drawing);
  const readout = byId("beam-readout");
  readout.replaceChildren("Point at a token, or move with the arrow keys, for its hypothesis.");
  explore(drawing, [...cells.keys()], inTree(cells), (cell) => readout.replaceChildren(...described(cells.get(cell))));
}

/** Give each node its x, y and width; a column is as wide as its widest node. */
function place(layers) {
  let x = MARGIN + 8;
  for (const layer of layers) {
    const width = Math.max(0, ...layer.map(widthOf));
    layer.forEach((node, row) => Object.assign(node, { x, y: MARGIN + row * ROW + HEIGHT / 2, width: widthOf(node) }));
    x += width + GAP;
  }
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size) {
  pen.font = `500 ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

const labelWidth = (node) => textWidth(written(node.piece), 14) + (beginsWord(node.piece) ? 10 : 0);
const numberWidth = (node) => textWidth(fixed(node.log_probability, 2).replaceAll(/\d/g, "0"), 11); // all as wide as 0
const widthOf = (node) => (node.kind === "root" ? 8 : 12 + labelWidth(node) + 8 + numberWidth(node) + 12);

function sizeOf(layers) {
  const all = layers.flat();
  const width = Math.ceil(Math.max(...all.map((node) => node.x + node.width)) + MARGIN);
  const height = Math.ceil(Math.max(...all.map((node) => node.y)) + HEIGHT / 2 + MARGIN);
  return { width, height, viewBox: `0 0 ${width} ${height}` };
}

const rootElement = (root) => shape("circle", { class: "root", cx: root.x + 4, cy: root.y, r: 4 });

/** Draw the line from a node's parent. */
function branch(node) {
  const from = node.parent.x + node.parent.width, middle = (from + node.x) / 2;
  const line = `M${from} ${node.parent.y}C${middle} ${node.parent.y} ${middle} ${node.y} ${node.x} ${node.y}`;
  return shape("path", { class: classesOf("branch", node), d: line });
}

const bestLast = (a, b) => a.classList.contains("best") - b.classList.contains("best");
const classesOf = (name, node) => [name, node.kind, node.isBest ? "best" : ""].filter(Boolean).join(" ");

function nodeElement(node) {
  const left = node.x + 12, number = node.x + node.width - 12;
  return shape(
    "g",
    { class: classesOf("node", node), role: "listitem", tabindex: -1, "aria-label": spoken(node) },
    ...outline(node),
    ...(beginsWord(node.piece) ? [shape("path", { class: "space", d: `M${left} ${node.y + 1}v4h5v-4` })] : []),
    shape("text", { x: left + (beginsWord(node.piece) ? 10 : 0), y: node.y, dy: "0.35em" }, written(node.piece)),
    shape("text", { class: "small", x: number, y: node.y, dy: "0.35em", "text-anchor": "end" }, fixed(node.log_probability, 2)),
  );
}

/** A kept hypothesis is a box, a finished one has round ends and two lines, a dropped one has a broken line. */
function outline({ kind, x, y, width }) {
  const box = (inset, radius) =>
    shape("rect", {
      class: inset ? "inner" : "outer", x: x + inset, y: y - HEIGHT / 2 + inset,
      width: width - 2 * inset, height: HEIGHT - 2 * inset, rx: radius,
    });
  if (kind === "finished") return [box(0, HEIGHT / 2), box(3, HEIGHT / 2 - 3)];
  return [box(0, kind === "kept" ? 5 : 2)];
}

function spoken(node) {
  const path = node.isBest ? ", on the best path" : "";
  return `${written(node.piece)}, ${KIND_LABELS[node.kind]}${path}, log-probability ${fixed(node.log_probability, 2)}`;
}

function described(node) {
  return [
    pieceElement(node.piece),
    element("b", {}, fixed(node.log_probability, 3)),
    element("span", {}, `${KIND_LABELS[node.kind]}${node.isBest ? ", on the best path" : ""}`),
    element("span", { class: "text", lang: "" }, textOf(pathOf(node))),
  ];
}

/** Left and right lead to the parent and to the first child, up and down to others of the same step. */
function inTree(cells) {
  const elements = new Map([...cells].map(([cell, node]) => [node, cell]));
  const layers = new Map();
  for (const node of cells.values()) layers.set(node.x, [...(layers.get(node.x) ?? []), node]);
  return (cell, key) => {
    const node = cells.get(cell), layer = layers.get(node.x);
    switch (key) {
      case "ArrowLeft": return elements.get(node.parent);
      case "ArrowRight": return elements.get(node.children.toSorted((a, b) => a.place - b.place)[0]);
      case "ArrowUp": return elements.get(layer[node.place - 1]);
      case "ArrowDown": return elements.get(layer[node.place + 1]);
    }
  };
}

function drawBeamLegend() {
  const sample = (kind, isBest, label) => {
    const node = { kind, isBest, x: 1, y: 13, width: 32 };
    const box = shape("g", { class: classesOf("node", node) }, ...outline(node));
    return element("span", {}, shape("svg", { class: "beam", width: 34, height: 27, "aria-hidden": "true" }, box), label);
  };
  byId("beam-legend").replaceChildren(
    sample("kept", true, "best path"), sample("kept", false, "kept"),
    sample("finished", false, "finished"), sample("dropped", false, "dropped"),
  );
}
