// The page: it asks what is typed, and draws what is answered.

const PAUSE = 250; // milliseconds without typing before the server is asked
const PATIENCE = 1000; // milliseconds without an answer before the page shows that it waits
const SIGNATURE = "translate";

const data = JSON.parse(byId("page-data").textContent);
const controls = data.options.filter((option) => !isMenu(option)); // those that stand under Options
// Relative to the page: a proxy may serve it below a path of its own.
const url = new URL(`v1/models/${encodeURIComponent(data.model)}:predict`, location.href).href;

let asking = new AbortController();
let waiting = 0;

function start() {
  byId("model").textContent = data.model;
  document.title = `${data.model} \u2013 keras-transformer`;
  if (data.models?.length > 1) offerModels(data.models);
  if (data.explanation) startAsFile(data.explanation);
  else startWithServer();
}

/** Link to the pages of the models of the server. */
function offerModels(names) {
  const link = (name) =>
    element("a", { href: `?model=${encodeURIComponent(name)}`, "aria-current": name === data.model && "page" }, name);
  byId("models").replaceChildren(...names.map(link));
  byId("models").hidden = false;
}

/** Show the explanation in the file; there is no server to ask. */
function startAsFile(explanation) {
  for (const id of ["sentence", "programs", "reset"]) byId(id).hidden = true;
  byId("sentence-label").replaceWith(element("h2", {}, "Sentence"));
  byId("asked").textContent = explanation.source;
  byId("asked").hidden = false;
  const values = Object.entries(explanation.options);
  byId("controls").replaceChildren(
    element("dl", {}, ...values.flatMap(([name, value]) => [
      element("dt", {}, name.replaceAll("_", " ")),
      element("dd", { dir: typeof value === "string" && "auto" }, value === "" || value === null ? "none" : String(value)),
    ])),
  );
  show(explanation);
}

function startWithServer() {
  drawMenus(byId("languages"), data.options.filter(isMenu), askSoon);
  drawControls(byId("controls"), controls, askSoon);
  byId("sentence").addEventListener("input", askSoon);
  byId("question").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey();
  });
  byId("reset").addEventListener("click", () => {
    resetControls(controls);
    askSoon();
  });
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  followPointer();
  if (data.example) offerExample(data.example);
  showRequest();
  if (byId("sentence").value.trim()) askNow(); // the browser has kept what was typed before
}

function offerExample(text) {
  const button = byId("example");
  button.textContent = `Try \u201c${text}\u201d`;
  button.hidden = false;
  button.addEventListener("click", () => {
    byId("sentence").value = text;
    byId("sentence").focus();
    askNow();
  });
}

// asking

function askSoon() {
  showRequest();
  clearTimeout(waiting);
  waiting = setTimeout(askNow, PAUSE);
}

/** Ask for what the page shows, and give up an earlier request that has no answer yet. */
async function askNow() {
  clearTimeout(waiting);
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const written = byId("sentence").value, text = written.trim(), options = chosenOptions(data.options);
  showRequest();
  byId("mirror").replaceChildren();
  byId("example").hidden = text !== "" || !data.example;
  if (!text) return showNothing();
  if (options.required && text.includes("\n")) {
    showNothing();
    return showError("required is for one sentence: write the text in one line, or leave required empty.");
  }
  document.body.classList.add("asking");
  try {
    if (hasParagraphs(text, options)) await askParts(written, options, signal);
    else await askFor(text, options, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    showError(error.message);
    hideReasons();
  } finally {
    if (!signal.aborted) document.body.classList.remove("asking");
  }
}

/** Show the translation of a text first, then attention and beam, which cost more. */
async function askFor(text, options, signal) {
  const begin = performance.now();
  const answer = await patiently(ask(url, bodyOf(SIGNATURE, text, options), signal)).catch((error) => {
    if (error.name !== "AbortError") showNothing();
    throw error;
  });
  const explanation = fromTranslate(answer, text, options);
  show(explanation);
  byId("answer-note").append(` \u00b7 ${Math.round(performance.now() - begin)} ms`);
  if (!canExplain(options) || !explanation.translations.length) return;
  const reasons = await ask(url, bodyOf("explain", text, options), signal);
  showReasons(withExplain(explanation, reasons));
}

/** Return whether `explain` shows the translation that `translate` gives with these options. */
const canExplain = (options) => data.has_explain && !hasOfText(data.options, options);

/** Wait for an answer; if it takes long, show that the page waits. */
async function patiently(answer) {
  const timer = setTimeout(() => (byId("answer-note").textContent = "still waiting for the server"), PATIENCE);
  return answer.finally(() => clearTimeout(timer));
}

/** Show the field for an API key: the server wants one, or another one. */
function askForKey() {
  byId("key-wanted").hidden = false;
}

/** Ask again with the key that was typed, and keep no copy of it in the field. */
function useKey() {
  const typed = byId("key").value.trim();
  if (!typed) return;
  byId("key").value = "";
  if (!takeKey(typed)) return showError("An API key is of ASCII letters, digits and signs, without spaces.");
  byId("key-wanted").hidden = true;
  askNow();
}

// showing

function showRequest() {
  const text = byId("sentence").value.trim() || data.example || "";
  const options = chosenOptions(data.options);
  const asParagraphs = hasParagraphs(text, options) ? { paragraphs: true } : {};
  const body = bodyOf(SIGNATURE, text, { ...options, ...asParagraphs });
  byId("curl").textContent = curlLine(url, body);
  byId("python").textContent = pythonLines(url, body);
  const count = changedCount(controls);
  byId("changed").textContent = count ? `${count} changed` : "";
  byId("reset").disabled = !count;
}

function showNothing() {
  showError("");
  document.body.classList.remove("asking");
  for (const id of ["translation", "answer-note", "source-note"]) byId(id).textContent = "";
  byId("results").hidden = true;
}

function showError(sentence) {
  byId("error").textContent = sentence;
  byId("error").hidden = sentence === "";
}

/** Return what stands below the best translation. */
function noteOf(best) {
  if (!best) return "nothing to translate";
  const confidence = best.confidence == null ? "" : `confidence ${percent(best.confidence)} \u00b7 `;
  return `${confidence}score ${fixed(best.score, 2)}${troubleOf(best)}`;
}

/** Return what a reader must know: whether it was cut, whether phrases fit, what is missing, what came all the same. */
function troubleOf({ is_cut, is_forced, unplaced, remaining }) {
  const cut = is_cut ? " \u00b7 cut at its limit: its end may be missing" : "";
  const forced = is_forced ? " \u00b7 the required phrases do not fit: it may make no sense" : "";
  const missing = unplaced ? ` \u00b7 without ${unplaced.replaceAll("\n", ", ")}, which has no place` : "";
  const forbidden = remaining ? ` \u00b7 with ${remaining.replaceAll("\n", ", ")}, though forbidden` : "";
  return `${cut}${forced}${missing}${forbidden}`;
}

/** Show an explanation, or as much of it as there is. */
function show(explanation) {
  showError("");
  const { translations } = explanation;
  byId("translation").textContent = translations[0]?.text ?? "";
  byId("translation").lang = "";
  byId("source-note").textContent = explanation.truncated ? "Longer than the model takes: its end was left out." : "";
  byId("answer-note").textContent = noteOf(translations[0]);
  byId("results").hidden = translations.length === 0;
  byId("no-explain").hidden = data.has_explain || explanation.beam !== null;
  byId("not-explained").hidden = !data.has_explain || canExplain(explanation.options) || explanation.beam !== null;
  if (!translations.length) return;
  const showTokens = (rank) => drawTokens(byId("tokens"), byId("tokens-readout"), translations[rank]);
  drawAlternatives(byId("alternatives"), translations, showTokens);
  showTokens(0);
  showReasons(explanation);
}

/** Hide attention and beam, which are those of an earlier sentence. */
function hideReasons() {
  for (const id of ["attention", "beam", "in-part", "awaited"]) byId(id).hidden = true;
}

/** Show attention and beam once they are there. Until then, those of an earlier sentence are pale. */
function showReasons(explanation) {
  const isThere = explanation.attention !== null;
  for (const id of ["attention", "beam"]) byId(id).classList.toggle("pending", !isThere);
  if (!isThere && !canExplain(explanation.options)) return hideReasons();
  byId("awaited").hidden = isThere || !byId("attention").hidden;
  if (!isThere) return;
  byId("attention").hidden = byId("beam").hidden = false;
  byId("in-part").hidden = !isExplainedInPart(explanation);
  drawAttention(explanation);
  drawBeam(explanation);
}

/** Copy a request, or select it if the page may not write to the clipboard, as without TLS. */
async function copy(button) {
  const request = byId(button.dataset.copy);
  if (navigator.clipboard) await navigator.clipboard.writeText(request.textContent);
  else getSelection().selectAllChildren(request);
  button.textContent = byId("copied").textContent = navigator.clipboard ? "Copied" : "Selected";
  setTimeout(() => {
    button.textContent = "Copy";
    byId("copied").textContent = "";
  }, 1500);
}

start();
