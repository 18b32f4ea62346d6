"""Requests with ICU messages that have branches: the sentences of a message are translated, as those of a text are."""

from collections.abc import Callable, Collection

import numpy as np

from keras_transformer.text.messages import Pieces, is_sentence, joined, lost, pieces_of, sentences_of_line

from .errors import invalid
from .paragraphs import MOST_SENTENCES, as_array, first, lines_in, with_first
from .paragraphs import joined as joined_outputs
from .protection import AS_IT_IS
from .signature import Arrays, Signature

BEST, ALL = "translation", "translations"  # the outputs of signatures that have the text

Run = Callable[[tuple[str, ...], Arrays, Collection[int]], Arrays]


def text_output(signature: Signature) -> str | None:
    """Return which output has the text, BEST or ALL, if messages in the lines of a signature are translated."""
    names = (BEST, ALL) if signature.name != "explain" else ()
    return next((name for name in names if name in signature.outputs), None)


def sentences_in(signature: Signature, inputs: Arrays) -> int:
    """Return how many sentences a request has, those of messages and texts included.

    Raises RequestError for a text whose sentences cannot be found.
    """
    return 0 if text_output(signature) is None else sum(map(sentences_of_line, lines_in(inputs)))


def run_messages(run: Run, outputs: tuple[str, ...], inputs: Arrays, text: str) -> Arrays:
    """Return the outputs of a batch of lines, some of which are messages.

    run: from names of outputs, inputs, and which lines are sentences of messages, to these outputs. text: which output
    has the text, BEST or ALL. Of a message there is the best translation alone; its other outputs are as those of a
    text of several sentences, in paragraphs.py. Raises RequestError for a line of too many sentences.
    """
    lines = [line.decode(*AS_IT_IS) for line in inputs["text"]]
    pieces = [pieces_of(line) for line in lines]
    if not any(pieces):
        return run(outputs, inputs, ())
    texts = [
        [line] if of_line is None else list(filter(is_sentence, of_line)) or [""]
        for line, of_line in zip(lines, pieces, strict=True)
    ]
    counts = list(map(len, texts))
    if max(counts) > MOST_SENTENCES:
        raise invalid(f"A line has more than {MOST_SENTENCES} sentences, the most here: send it in parts.")
    wide = {
        name: np.repeat(values, counts, axis=0) if len(values) == len(lines) else values
        for name, values in inputs.items()
    }
    wide["text"] = as_array([each.encode(*AS_IT_IS) for of_line in texts for each in of_line])
    is_branch = np.repeat([of_line is not None for of_line in pieces], counts)
    names = tuple(dict.fromkeys([*outputs, text]))
    found = run(names, wide, set(np.flatnonzero(is_branch).tolist()))
    answers, row = [], 0
    for of_line, count in zip(pieces, counts, strict=True):
        rows = range(row, row := row + count)
        answers.append({name: answer_of(name, text, of_line, [found[name][each] for each in rows]) for name in outputs})
    return {name: as_array([answer[name] for answer in answers]) for name in outputs}


def answer_of(name: str, text: str, pieces: Pieces | None, values: list):
    """Return an output of a line from those of its sentences."""
    if pieces is None:
        return values[0]
    if name != text:
        return joined_outputs(name, values)
    translations = [first(value).decode(*AS_IT_IS) for value in values]
    if text == BEST:  # nothing protects its branches, and no output names what they lack
        sentences = filter(is_sentence, pieces)
        translations = [
            sentence if lost(sentence, translation) else translation
            for sentence, translation in zip(sentences, translations, strict=False)
        ]
    return with_first(values[0], joined(pieces, translations).encode(*AS_IT_IS), b"")
