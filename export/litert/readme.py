"""The README.md of a LiteRT model: how to translate with it in Python, and what an application has to do itself."""

from collections.abc import Iterable

from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.lite_folder import (
    ALIGN,
    ENDING_TOKENS,
    PHRASE_TOKENS,
    PHRASES,
    PREFIX_TOKENS,
    SEQUENCE_TOKENS,
    WAYS,
    Room,
)
from keras_transformer.search.options import SearchOptions

README = """\
# {name}

A Transformer with its beam search as one LiteRT file of builtin operations, {weights}: ids in, ids out. To translate
with this project, without TensorFlow (`pip install 'keras-transformer-mt[litert]'`):

```
keras-transformer translate-export {name} < in.txt > out.txt
```

or in Python with LiteRT and SentencePiece alone:

```python
import numpy as np, sentencepiece
from ai_edge_litert.interpreter import Interpreter

tokenizer = sentencepiece.SentencePieceProcessor(model_file="{name}/tokenizer.model")
translate = Interpreter(model_path="{name}/search.tflite", num_threads=1).get_signature_runner("{first}")
ids = tokenizer.encode("A dog runs across the field.")[: {tokens} - 1] + [3]  # 3 is the end of the sentence
source_ids = np.array([ids + [0] * ({tokens} - len(ids))], np.int32)
outputs = translate(source_ids=source_ids, n_best=np.array([1], np.int32))
best = outputs["ids"][0, 0]
print(tokenizer.decode(best[best > 3].tolist()), outputs["scores"][0, 0])
```

(A model that was imported with two SentencePiece models and a vocabulary has all three in `tokenizer.model`, a zip.)

## Signatures

- `source_ids` int32 (rows, tokens): pieces, the end of the sentence (3), then 0.
- `n_best` int32 (rows): how many of the best hypotheses of each sentence are wanted; the search may end before it
  knows the others.
- `openings` int32 (rows), if the model is told the language to write: the piece of it.
- `prefixes` int32 (rows, {prefix_tokens}) and `endings` int32 (rows, N, {ending_tokens}), of `translate_constrained_`
  alone, if the file was written with `--constraints`: the pieces with which the translation must begin, then 0; and N
  sequences, one of which must follow, each then 0. N is any number.
- `forbidden` int32 (rows, N, {sequence_tokens}), of the same: sequences that must not come, each behind zeros.
- `required` int32 (rows, {phrases}, {ways}, {phrase_tokens}), of the same: phrases that must come, each in one of
  several ways, then 0. A way that begins with 2 is for the beginning of the translation.
- `ids` int32 (rows, {beam_size}, longest): the hypotheses of each sentence, best first, each with its end (3), then 0.
- `scores` float32 (rows, {beam_size}): -inf for what no hypothesis filled.
- `is_cut` bool (rows, {beam_size}): whether the longest output ended it.
- `lost` float32 (rows, {beam_size}), of `translate_constrained_`: by how much the phrases lowered the natural
  log-probability.
- `is_done` bool (rows): false if the translation would be longer than a signature finds. Then nothing was found: ask a
  signature for any output.
{alignment}
All signatures share the weights. A search ends when its hypotheses do, so a signature for long sentences takes little
longer than one for short ones. One with a bound on the output is the fastest.

| signature | rows | tokens, the end included | tokens of an output |
|---|---:|---:|---:|
{rooms}

## In an application

These lines were not run. Kotlin: `interpreter.runSignature(mapOf("source_ids" to ids), outputs, "{first}")`, with
`com.google.ai.edge.litert` or `org.tensorflow.lite.Interpreter`. Swift: `interpreter.signatureRunner(with: "{first}")`.
SentencePiece has libraries for both; the tokenizer's file is the same.
"""


OF_ALIGNMENT = """
`{align}` tells which words translate each other: `source_ids` int32 (1, S) and `target_ids` int32 (1, T), a translation
and its end (3), of any length, give `attention` float32 (1, T, S), of each piece of the translation to those of the
source. It is that of decoder block {block} in the step that {step} the piece, in the mean of the heads. This project
sums it over the pieces of a word.
"""


def readme(
    name: str,
    options: SearchOptions,
    rooms: Iterable[Room],
    quantization: str | None,
    alignment: AlignedBy | None = None,
) -> str:
    """Return the README.md of the model folder `name`."""
    rooms = list(rooms)
    step = "reads" if alignment and alignment.reads else "writes"
    of_alignment = alignment and OF_ALIGNMENT.format(align=ALIGN, block=alignment.block, step=step)
    return README.format(
        name=name,
        weights="weights of 8-bit integers" if quantization else "float32",
        first=rooms[0].signature,
        tokens=rooms[0].tokens,
        beam_size=options.beam_size,
        prefix_tokens=PREFIX_TOKENS,
        ending_tokens=ENDING_TOKENS,
        sequence_tokens=SEQUENCE_TOKENS,
        phrases=PHRASES,
        ways=WAYS,
        phrase_tokens=PHRASE_TOKENS,
        alignment=of_alignment or "",
        rooms="\n".join(
            f"| `{room.signature}` | {room.rows} | {room.tokens} | {room.outputs or 'any'} |" for room in rooms
        ),
    )
