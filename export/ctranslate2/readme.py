"""The README.md of a CTranslate2 model: Python that translates as the run does, and the differences that remain."""

import math
from collections.abc import Sequence

from keras_transformer.search.options import TOKENS, SearchOptions

README = """\
# {name}

A Transformer in the format of CTranslate2 {version}, with {tokenizer}. To translate:

```python
{opened}
translator = ctranslate2.Translator("{name}", inter_threads=2, intra_threads=1)  # workers, threads per worker
sources = {encoded}
results = translator.translate_batch(sources, max_batch_size=32, {search})
best = [max(zip(r.hypotheses, r.scores), key=lambda h: h[1] / ({length}) ** {alpha})[0] for r in results]
print({decoded})
```

## The search

The run divides the log-probability of a hypothesis by {penalty}; the length counts EOS.
`length_penalty=0` makes CTranslate2, which has length^alpha, return log-probabilities, and the line after it chooses
among {beam_size} hypotheses as the run does. `min_decoding_length=0` allows an empty output, and `max_input_length`
truncates a long source at the same token as the run. These differences remain:

- CTranslate2 continues {beam_size} hypotheses until enough have finished; in the run each finished one takes a place
  of the beam. Therefore a few sentences get another translation. A greedy search has no such difference.
- The run ends an output {extra_length} tokens after the length of its source. CTranslate2 has one limit for all
  sentences, `max_decoding_length`. An output of so many tokens was cut there; CTranslate2 does not tell.
- The run never outputs `<pad>`, `<unk>` or `<s>`, to which a trained model gives almost no probability.
- The run translates a blank line, of spaces or invisible characters alone, to an empty line. CTranslate2 does so if
  the tokenizer leaves nothing of it.

{limit}
"""

TABLE = "Positions in the table: {positions}. CTranslate2 refuses longer sources and outputs."
NO_TABLE = "There is no table of positions: CTranslate2 reads and writes texts of any length."

SHORTLIST = """
## The shortlist

`vmap.txt` is the run's shortlist: `translate_batch(..., use_vmap=True)` considers only the target pieces that it has
for the sentences of a batch. CTranslate2 takes those of the whole batch for each of its sentences, the run those of
the sentence alone.
"""

ONE_MODEL = {
    "tokenizer": "its SentencePiece model",
    "opened": """\
import ctranslate2, sentencepiece

tokenizer = sentencepiece.SentencePieceProcessor(model_file="{name}/tokenizer.model")""",
    "encoded": 'tokenizer.encode(["A dog runs across the field."], out_type=str)',
    "decoded": "tokenizer.decode(best)",
}
PAIR = {
    "tokenizer": "the SentencePiece models of its source and target",
    "opened": """\
import ctranslate2, re, sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="{name}/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file="{name}/target.spm")


def pieces_of(line):  # a tag such as >>deu<< that begins a line is one piece
    tag, text = re.fullmatch("(>>.*?<<)?(.*)", line, re.DOTALL).groups()
    return ([tag] if tag else []) + source.encode(text, out_type=str)

""",
    "encoded": '[pieces_of(line) for line in ["A dog runs across the field."]]',
    "decoded": r"""[target.decode(pieces).replace("\u2581", " ").strip() for pieces in best]""",
}


def readme(
    name: str,
    version: str,
    models: Sequence[str],
    options: SearchOptions,
    max_source_tokens: int,
    positions: int | None,
) -> str:
    """Return the README.md of the model folder `name`, whose table of positions has so many rows; None: it has none.

    models: the names of its SentencePiece models, one, or those of source and target.
    """
    tokenizer = ONE_MODEL if len(models) == 1 else PAIR
    most = math.inf if positions is None else positions
    search = {
        "beam_size": options.beam_size,
        "num_hypotheses": options.beam_size,
        "return_scores": True,
        "length_penalty": 0,
        "min_decoding_length": 0,
        "max_decoding_length": min(max_source_tokens + options.extra_length, most),
        "max_input_length": min(max_source_tokens, most),
    }
    by_tokens = options.length_normalization == TOKENS
    return README.format(
        **{part: text.format(name=name) for part, text in tokenizer.items()},
        name=name,
        version=version,
        search=", ".join(f"{key}={value}" for key, value in search.items()),
        alpha=options.length_penalty,
        length="len(h[0]) + 1" if by_tokens else "(6 + len(h[0])) / 6",
        penalty="length^alpha" if by_tokens else "((5 + length) / 6)^alpha",
        beam_size=options.beam_size,
        extra_length=options.extra_length,
        limit=NO_TABLE if positions is None else TABLE.format(positions=positions),
    )
