// The beam as a tree: which hypothesis continues which, and where each of them is drawn.

/**
 * Return the layers of the tree, one list of nodes per step; the first one holds the root alone.
 *
 * beam: as in `answers.js`; bestPieces: those of the best translation. A node has its piece, its log-probability, its
 * kind (kept, finished or dropped), parent, children, place in its layer, and whether it is on the path to the best
 * translation. Layers are ordered as their parents are, the best path first, so that no two branches cross.
 */
function treeOf(beam, bestPieces) {
  const root = { piece: "", kind: "root", log_probability: 0, parent: null, children: [], isBest: true, place: 0 };
  const layers = [[root]];
  let slots = new Map();
  for (const step of groupedBySteps(beam)) {
    const next = new Map();
    const layer = step.map((entry) => {
      const node = nodeOf(entry, slots.get(entry.parent) ?? (layers.length === 1 ? root : null));
      if (entry.slot >= 0) next.set(entry.slot, node);
      return node;
    });
    layers.push(layer.filter((node) => node.parent));
    slots = next;
  }
  markBest(layers, bestPieces);
  for (const layer of layers.slice(1)) {
    layer.sort(byPlace);
    layer.forEach((node, place) => (node.place = place));
  }
  return layers;
}

function groupedBySteps(beam) {
  const steps = [];
  for (const entry of beam) (steps[entry.step] ??= []).push(entry);
  return steps.filter(Boolean);
}

function nodeOf(entry, parent) {
  const kind = entry.slot < 0 ? "dropped" : entry.piece === "</s>" ? "finished" : "kept";
  const node = { piece: entry.piece, kind, log_probability: entry.log_probability, parent, children: [], isBest: false, place: 0 };
  parent?.children.push(node);
  return node;
}

/** Return the pieces of a hypothesis, from the first to this node's. */
function pathOf(node) {
  const pieces = [];
  for (let each = node; each.parent; each = each.parent) pieces.unshift(each.piece);
  return pieces;
}

function markBest(layers, bestPieces) {
  const wanted = bestPieces.join(" ");
  const isWanted = (node) => node.kind !== "dropped" && pathOf(node).join(" ") === wanted;
  let node = (layers[bestPieces.length] ?? []).find(isWanted);
  for (; node; node = node.parent) node.isBest = true;
}

const RANKS = { kept: 0, finished: 0, dropped: 1 };

/** Compare nodes of one layer; their parents have their places already. */
function byPlace(a, b) {
  return (
    a.parent.place - b.parent.place ||
    b.isBest - a.isBest ||
    RANKS[a.kind] - RANKS[b.kind] ||
    b.log_probability - a.log_probability
  );
}
