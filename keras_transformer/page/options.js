// Options of the search as controls.

const UNBOUNDED = 2 ** 31 - 1;

const isText = (option) => typeof option.default === "string";
const isMenu = (option) => Boolean(option.choices);

/** Return the value with which the page begins: the default, but as many alternatives as there can be. */
const initialOf = (option) => (option.name === "n_best" ? option.highest : option.default);

/** Put a control per option into `place`, in groups; `onChange` is called whenever one of them changes. */
function drawControls(place, options, onChange) {
  for (const title of new Set(options.map((option) => option.group))) {
    const members = options.filter((option) => option.group === title);
    place.append(element("fieldset", {}, element("legend", {}, title), ...members.map(control)));
  }
  place.addEventListener("input", () => {
    keepWithinBeam(options);
    onChange();
  });
}

/** Put a menu per option that has choices, codes of languages, into `place`, and show it if there are any. */
function drawMenus(place, options, onChange) {
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
  const nameOf = (code) => {
    try {
      return names.of(code.replaceAll("_", "-"));
    } catch {
      return code;
    }
  };
  const menu = ({ name, choices, help, initial }) => {
    const isSource = name.startsWith("source");
    const byName = choices.filter(Boolean).map((code) => [code, nameOf(code)]);
    byName.sort(([, one], [, other]) => one.localeCompare(other, "en"));
    if (choices.includes("")) byName.unshift(["", isSource ? "any" : "as the text says"]);
    const entries = byName.map(([code, text]) => element("option", { value: code, selected: code === initial }, text));
    const select = element("select", { id: `option-${name}`, name, title: help }, ...entries);
    return element("label", {}, isSource ? "From" : "To", select);
  };
  place.replaceChildren(...options.map(menu));
  place.hidden = !options.length;
  place.addEventListener("input", onChange);
}

function control(option) {
  const id = `option-${option.name}`, hint = `${id}-hint`;
  const tag = option.placeholder ? "textarea" : "input";
  const kind = option.placeholder
    ? { rows: 3, dir: "auto", spellcheck: "false", placeholder: option.placeholder }
    : isText(option)
    ? { type: "text", dir: "auto" }
    : { type: "number", min: option.lowest, max: option.highest, step: option.is_whole ? 1 : 0.1, inputmode: "decimal" };
  return element(
    "div",
    { class: "control" },
    element("label", { for: id }, option.name.replaceAll("_", " ")),
    element(tag, { id, name: option.name, value: String(initialOf(option)), "aria-describedby": hint, ...kind }),
    element("small", { id: hint }, [option.help, boundsOf(option), beginningOf(option)].filter(Boolean).join(" ")),
  );
}

/** Name the value with which the page begins, if it is not the default. */
const beginningOf = (option) =>
  initialOf(option) === option.default ? "" : `This page begins with ${initialOf(option)}.`;

function boundsOf(option) {
  if (isText(option)) return "";
  const { lowest, highest } = option, known = `default ${option.default}.`;
  if (highest < UNBOUNDED) return `${lowest} to ${highest}, ${known}`;
  return lowest > -UNBOUNDED ? `${lowest} and more, ${known}` : `Any whole number, ${known}`;
}

/** There are at most as many alternatives as hypotheses. */
function keepWithinBeam(options) {
  const beam = byId("option-beam_size"), best = byId("option-n_best");
  const option = options.find((each) => each.name === "beam_size");
  if (!beam || !best || beam.value === "" || Number(beam.value) > option.highest || Number(beam.value) < 1) return;
  if (document.activeElement !== best && Number(best.value) > Number(beam.value)) best.value = beam.value;
}

/** Return the value of each option that does not have its default, which an empty field has, and of each menu. */
function chosenOptions(options) {
  const chosen = {};
  for (const option of options) {
    const text = byId(`option-${option.name}`).value;
    const value = option.name === "glossary" ? withTabs(text) : isText(option) ? text : Number(text);
    if (text !== "" && (isMenu(option) || value !== option.default)) chosen[option.name] = value;
  }
  return chosen;
}

/** Return a glossary in which a line without a tab has one in place of its first "=": Tab leaves the field. */
const withTabs = (text) =>
  text.split("\n").map((line) => (line.includes("\t") ? line : line.replace(/\s*=\s*/, "\t"))).join("\n");

/** Return how many controls differ from what the page began with. */
function changedCount(options) {
  return options.filter((option) => byId(`option-${option.name}`).value !== String(initialOf(option))).length;
}

function resetControls(options) {
  for (const option of options) byId(`option-${option.name}`).value = String(initialOf(option));
}

/** Return whether any of those of the text is chosen, which `explain` does not have. */
const hasOfText = (options, chosen) => options.some(({ group, name }) => group === "Text" && name in chosen);
