// Elements: how to make them, and how to move among them with the pointer, a finger or the arrow keys.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

/** Make an HTML element. Children are elements or texts; a text is never read as HTML. */
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Make an element of a drawing. */
function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/**
 * Make `cells` inside `root` explorable: Tab enters at one of them, the arrow keys move on.
 *
 * `neighbour(cell, key)` is the cell to which a key leads, or nothing; `show(cell)` is called with the cell that has the
 * pointer or the focus.
 */
function explore(root, cells, neighbour, show) {
  const known = new Set(cells);
  let entrance = cells[0];
  entrance?.setAttribute("tabindex", "0");
  const on = (type, react) =>
    root.addEventListener(type, (event) => {
      const cell = event.target.closest("[tabindex]");
      if (known.has(cell)) react(cell, event);
    });
  on("pointerover", show);
  on("focusin", (cell) => {
    entrance.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
    entrance = cell;
    show(cell);
  });
  on("keydown", (cell, event) => {
    const next = event.ctrlKey || event.metaKey || event.altKey ? null : neighbour(cell, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

/** Return the neighbours in a table: `rows` are lists of cells. */
function inTable(rows) {
  const places = new Map(rows.flatMap((row, i) => row.map((cell, j) => [cell, [i, j]])));
  return (cell, key) => {
    const [i, j] = places.get(cell);
    switch (key) {
      case "ArrowLeft": return rows[i][j - 1];
      case "ArrowRight": return rows[i][j + 1];
      case "ArrowUp": return rows[i - 1]?.[j];
      case "ArrowDown": return rows[i + 1]?.[j];
      case "Home": return rows[i][0];
      case "End": return rows[i].at(-1);
    }
  };
}
