"""The arguments and options that several commands share, each written once.

A command takes them as types and adds the default: `beam_size: BeamSize = SearchOptions.beam_size`.
"""

import pathlib
from typing import Annotated, Any

import typer

from keras_transformer.batching import LONGEST_SOURCE


def or_of_run(context: typer.Context, options: dict[str, Any], of_run: dict[str, Any] | None) -> dict[str, Any]:
    """Return the options with those that are not on the command line replaced by the run's own, where it has them."""
    typed = {name: value for name, value in options.items() if context.get_parameter_source(name).name != "DEFAULT"}
    return options | (of_run or {}) | typed


RunPath = Annotated[pathlib.Path, typer.Argument(metavar="RUN", help="The run folder that training wrote.")]

Ensemble = Annotated[
    list[pathlib.Path],
    typer.Option(
        default_factory=list,
        metavar="RUN",
        help="Another run with the same tokenizer, whose predictions are averaged with those of RUN; may be repeated.",
        show_default="none",
    ),
]

BeamSize = Annotated[int, typer.Option(help="Hypotheses per sentence; 1 is greedy search.")]

LengthPenalty = Annotated[
    float, typer.Option(help="The exponent alpha of score = log P / ((5 + tokens) / 6)^alpha; 0 is no penalty.")
]

CoveragePenalty = Annotated[
    float,
    typer.Option(
        help="Beta of what is added to a score, beta x sum(log(min(a, 1))) over the tokens of the source; a is the sum "
        "of the attention that such a token got. It is against leaving out parts of a sentence; 0 is no penalty."
    ),
]

ExtraLength = Annotated[
    int, typer.Option(help="A translation has at most as many tokens as its source, plus this number.")
]

MinLength = Annotated[
    int,
    typer.Option(
        help="Tokens of the shortest translation, end of sentence included, if --extra-length allows as many."
    ),
]

MaxLength = Annotated[
    int | None,
    typer.Option(help="Tokens of the longest translation, if --extra-length allows more.", show_default="none"),
]

NoRepeatNgramSize = Annotated[
    int, typer.Option(help="No sequence of so many tokens comes twice in a translation; 0: no such rule.")
]

RepetitionPenalty = Annotated[
    float, typer.Option(help="Log-probabilities of tokens that a translation already has are multiplied by it.")
]

Temperature = Annotated[
    float, typer.Option(help="Above 0: draw tokens from P^(1/temperature) instead of searching, --beam-size times.")
]

TopK = Annotated[int, typer.Option(help="With --temperature: draw among the k most probable tokens; 0: among all.")]

TopP = Annotated[
    float, typer.Option(help="With --temperature: draw among the fewest most probable tokens whose sum reaches p.")
]

Seed = Annotated[int, typer.Option(help="Of what is drawn: the same seed, the same translation.")]

TargetPrefix = Annotated[str, typer.Option(help="The text with which every translation must begin.")]

MaxSourceTokens = Annotated[
    int, typer.Option(help=f"Longer sentences are truncated to this number of tokens; at most {LONGEST_SOURCE}.")
]

BatchSize = Annotated[int, typer.Option(help="Sentences translated together.")]

WithScores = Annotated[bool, typer.Option("--scores", help="Write each line as `score<TAB>text`.")]

Constrained = Annotated[
    bool,
    typer.Option(
        "--constrained", help="Of a run on a treebank: forbid during the search what would make an output no tree."
    ),
]

Precision = Annotated[
    str,
    typer.Option(
        help="float32 or bfloat16, of weights and matrix products: bfloat16 is faster if the processor has it."
    ),
]
