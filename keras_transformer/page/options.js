// Options of the search as controls.

const GROUPS = {
  Search: ["beam_size", "n_best", "length_penalty"],
  Output: ["min_length", "max_length", "target_prefix"],
  Repetition: ["no_repeat_ngram_size", "repetition_penalty"],
  Sampling: ["temperature", "top_k", "top_p", "seed"],
};
const MEANINGS = {
  beam_size: "Hypotheses; 1 is greedy search.",
  n_best: "Alternatives; this page begins with all.",
  length_penalty: "Alpha; 0 prefers short outputs.",
  min_length: "Tokens, end included.",
  max_length: "Tokens, end included.",
  target_prefix: "How the translation begins.",
  no_repeat_ngram_size: "No sequence of so many tokens comes twice; 0: no rule.",
  repetition_penalty: "Above 1, tokens come again less often.",
  temperature: "Above 0, outputs are drawn.",
  top_k: "With a temperature: draw from the k best tokens; 0: from all.",
  top_p: "With a temperature: draw from the best tokens with this sum.",
  seed: "The same seed draws the same output.",
};
const UNBOUNDED = 2 ** 31 - 1;

const isText = (option) => typeof option.default === "string";

/** Return the value with which the page begins: the default, but as many alternatives as there can be. */
const initialOf = (option) => (option.name === "n_best" ? option.highest : option.default);

/** Put a control per option into `place`; `onChange` is called whenever one of them changes. */
function drawControls(place, options, onChange) {
  const known = new Set(Object.values(GROUPS).flat());
  const groups = { ...GROUPS, Other: options.map((option) => option.name).filter((name) => !known.has(name)) };
  for (const [title, names] of Object.entries(groups)) {
    const members = options.filter((option) => names.includes(option.name));
    if (!members.length) continue;
    place.append(element("fieldset", {}, element("legend", {}, title), ...members.map(control)));
  }
  place.addEventListener("input", () => {
    keepWithinBeam(options);
    onChange();
  });
}

function control(option) {
  const id = `option-${option.name}`, hint = `${id}-hint`;
  const kind = isText(option)
    ? { type: "text" }
    : { type: "number", min: option.lowest, max: option.highest, step: option.is_whole ? 1 : 0.1, inputmode: "decimal" };
  return element(
    "div",
    { class: "control" },
    element("label", { for: id }, option.name.replaceAll("_", " ")),
    element("input", { id, name: option.name, value: String(initialOf(option)), "aria-describedby": hint, ...kind }),
    element("small", { id: hint }, [MEANINGS[option.name], boundsOf(option)].filter(Boolean).join(" ")),
  );
}

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

/** Return the value of each option that does not have its default; an empty field has it. */
function chosenOptions(options) {
  const chosen = {};
  for (const option of options) {
    const text = byId(`option-${option.name}`).value;
    const value = isText(option) ? text : Number(text);
    if (text !== "" && value !== option.default) chosen[option.name] = value;
  }
  return chosen;
}

/** Return how many controls differ from what the page began with. */
function changedCount(options) {
  return options.filter((option) => byId(`option-${option.name}`).value !== String(initialOf(option))).length;
}

function resetControls(options) {
  for (const option of options) byId(`option-${option.name}`).value = String(initialOf(option));
}
