"""`python -m benchmarks.marian`: two models that Marian trained, imported, beside Marian's own scores and translations.

tests/data/marian has the models and what Marian makes of 60 lines. `--paper` imports them as Hugging Face's
conversion does, to see what that changes.
"""

import pathlib
from typing import Annotated, NamedTuple

import typer

from keras_transformer.commands.console import exit_codes, prepare_process
from keras_transformer.ground.imports import quiet_imports

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
DATA = pathlib.Path(__file__).parents[1] / "tests/data/marian"
MODELS = {"self-attention": "self-attention", "SSRU": "rnn"}  # the decoder, and the name of its files
EPSILON_OF_PYTORCH = 1e-5


class Row(NamedTuple):
    """What was found of a model."""

    decoder: str
    score_difference: float  # nats, the largest of a given pair
    beam: int  # lines translated as by Marian, of a beam of 6
    greedy: int
    lines: int


@app.command()
def main(
    paper: Annotated[
        bool, typer.Option("--paper", help="With the sinusoids of the paper and PyTorch's epsilon, as Hugging Face.")
    ] = False,
) -> None:
    """Compare two models that Marian trained, imported, with Marian: scores, a beam of 6, and greedy search."""
    with exit_codes():
        prepare_process()
        with quiet_imports():
            rows = [compare(decoder, name, paper) for decoder, name in MODELS.items()]
    print("| decoder | largest difference of a pair's log-probability | beam 6: same translation | greedy: same |")
    print("|---|---|---|---|")
    for row in rows:
        print(
            f"| {row.decoder} | {row.score_difference:.1e} | {row.beam} of {row.lines} | {row.greedy} of {row.lines} |"
        )


def compare(decoder: str, name: str, is_paper: bool) -> Row:
    """Import a model, score the pairs and translate the lines."""
    from keras_transformer.models.imported.folder import import_folder
    from keras_transformer.search.options import SearchOptions
    from keras_transformer.translation.scorer import Scorer
    from keras_transformer.translation.translator import Translator

    model = import_folder(DATA / f"{name}.npz")
    if is_paper:
        model = model._replace(config=model.config.replace(sinusoids="paper", norm_epsilon=EPSILON_OF_PYTORCH))
    transformer, sources = model.transformer(), lines_of("test.en")

    def text_of(pieces: str) -> str:
        return model.tokenizer.decode([model.tokenizer.ids[piece] for piece in pieces.split()])

    def equal(expected: list[str], **options) -> int:
        translations = Translator(transformer, model.tokenizer, SearchOptions(**options)).translate(sources)
        return sum(one.text == text_of(other) for one, other in zip(translations, expected, strict=True))

    pairs = Scorer(transformer, model.tokenizer).score(sources, lines_of("test.de"))
    differences = [
        abs(pair.log_probability - float(score))
        for pair, score in zip(pairs, lines_of(f"{name}.scores.txt"), strict=True)
    ]
    return Row(
        decoder,
        max(differences),
        equal(best_of_beam(name), beam_size=6, length_penalty=1.0, length_normalization="tokens"),
        equal(lines_of(f"{name}.greedy.txt"), beam_size=1),
        len(sources),
    )


def best_of_beam(name: str) -> list[str]:
    """Return the pieces of the first translation of each line among those that Marian's beam of 6 found."""
    best = {}
    for line in lines_of(f"{name}.beam6.txt"):
        number, pieces, *_ = line.split(" ||| ")
        best.setdefault(number, pieces)
    return list(best.values())


def lines_of(name: str) -> list[str]:
    return pathlib.Path(DATA / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


if __name__ == "__main__":
    app()
