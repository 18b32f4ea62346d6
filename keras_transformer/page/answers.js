// Answers of the server as an explanation, the one form that the page draws.
//
//   source, options          what was asked
//   source_pieces            pieces of the sentence, the end included
//   truncated                whether the sentence was longer than the model takes
//   translations             best first: text, score, log_probability, pieces, piece_log_probabilities, is_cut,
//                            is_forced, unplaced, remaining, confidence, null if the run was not calibrated
//   target_pieces            the pieces that attend; if missing, those of the best translation
//   attention                memory, encoder, decoder, each [layer][head][row][column]; or null
//   beam                     step, parent, slot, piece, log_probability; slot -1 was dropped; or null

const isMissing = (score) => score < -1e8;

const itemsOf = (value) => (Array.isArray(value) ? value : String(value).split(" ").filter((item) => item !== ""));
const numbersOf = (value) => itemsOf(value).map(Number);

/** Return a row of the signature `translate` as an explanation that has translations alone. */
function fromTranslate(row, source, options) {
  const translations = row.translations
    .map((text, rank) => ({
      text,
      score: row.scores[rank],
      log_probability: row.log_probabilities[rank],
      pieces: itemsOf(row.pieces[rank]),
      piece_log_probabilities: numbersOf(row.piece_log_probabilities[rank]),
      is_cut: row.is_cut?.[rank] ?? false, // older exports do not tell
      is_forced: row.is_forced?.[rank] ?? false, // only if something was required
      unplaced: row.unplaced?.[rank] ?? "", // only if something was to be protected or required
      remaining: row.remaining?.[rank] ?? "", // only if something was forbidden
      confidence: row.confidences?.[rank] ?? null,
    }))
    .filter(({ text, score }, rank) => !isMissing(score) && row.translations.indexOf(text) === rank); // spans make some equal
  return { source, options, truncated: row.truncated, translations, source_pieces: null, attention: null, beam: null };
}

/** Return `explanation` with attention and beam from a row of the signature `explain`. */
function withExplain(explanation, row) {
  const source = itemsOf(row.source_pieces), target = itemsOf(row.pieces), heads = Number(row.heads);
  const cut = (numbers, rows, columns) => inLayers(numbersOf(numbers), heads, rows.length, columns.length);
  return {
    ...explanation,
    source_pieces: source,
    target_pieces: target,
    attention: {
      memory: cut(row.memory_attention, target, source),
      encoder: cut(row.encoder_attention, source, source),
      decoder: cut(row.decoder_attention, target, target),
    },
    beam: beamOf(row),
  };
}

/** Cut flat numbers into [layer][head][row][column]. */
function inLayers(numbers, heads, rows, columns) {
  const cut = (values, size) =>
    Array.from({ length: size ? Math.floor(values.length / size) : 0 }, (_, i) => values.slice(i * size, (i + 1) * size));
  return cut(numbers, heads * rows * columns).map((layer) =>
    cut(layer, rows * columns).map((head) => cut(head, columns)),
  );
}

function beamOf(row) {
  const steps = numbersOf(row.beam_steps), parents = numbersOf(row.beam_parents), slots = numbersOf(row.beam_slots);
  const pieces = itemsOf(row.beam_pieces), logProbabilities = numbersOf(row.beam_log_probabilities);
  return steps.map((step, i) => ({
    step, parent: parents[i], slot: slots[i], piece: pieces[i], log_probability: logProbabilities[i],
  }));
}

/** Return the pieces of the translation whose attention and beam an explanation has. */
const explainedPieces = (explanation) => explanation.target_pieces ?? explanation.translations[0].pieces;

/** Return whether attention and beam belong to a shorter text: `explain` reads and writes fewer tokens. */
const isExplainedInPart = (explanation) =>
  explainedPieces(explanation).join(" ") !== explanation.translations[0].pieces.join(" ");
