"""`python -m tests.check_learning`: a short training whose validation loss and BLEU must come out where they belong.

A loss above its bounds is a model that does not learn, one below them a decoder that sees what it should predict. BLEU
is there for mistakes in translating, which the loss of words that are given their past does not show. `--broken` breaks
one thing on purpose, to see whether the check notices it.
"""

import contextlib
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated
from unittest import mock

import typer
from keras import ops

from keras_transformer import masks
from keras_transformer.commands.console import exit_codes, prepare_process
from keras_transformer.ground.errors import ConfigError
from keras_transformer.layers.embedding import SinusoidalPositions
from keras_transformer.layers.masking import CausalSegmentMask, SegmentMask
from keras_transformer.losses import token_losses, token_sums
from keras_transformer.runs.run_folder import RunFolder
from train.config.run import load_config
from train.data import batches

CONFIG = "configs/paper/smoke.toml"
BOUNDS = {  # lowest and highest, after the last step: docs/results/check_learning.md has what seeds and breaks come to
    "validation/loss": (3.3, 3.6),  # nats per target token, label-smoothed
    "validation/bleu": (10.0, 40.0),  # greedy, of 200 sentences
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def unshifted(*arguments, lay_out=batches.lay_out) -> batches.Batch:
    """A batch whose decoder reads the labels."""
    batch = lay_out(*arguments)
    return {**batch, "target_ids": batch["labels"]}


def smoothing_counts_padding(logits, labels, segments, smoothing=0.1, by_row=False):
    """The sums of `token_sums`, with the smoothing's part of the loss of padding in the loss."""
    plain, _, _ = token_losses(logits, labels, 0.0)
    smoothed, _, _ = token_losses(logits, labels, smoothing)
    values = (smoothed - (1 - smoothing) * plain) * ops.cast(ops.equal(segments, 0), "float32")
    of_padding = ops.sum(values, axis=1 if by_row else None)
    sums = token_sums(logits, labels, segments, smoothing, by_row)
    return sums._replace(loss=sums.loss + of_padding)


def inverted(query_segments, key_segments):
    """A mask that hides what `segment_mask` shows, and shows what it hides."""
    return ops.logical_not(masks.segment_mask(query_segments, key_segments))


def replaced(*places: tuple[str, Callable]) -> contextlib.AbstractContextManager:
    """Put other functions into these places, "module.name", until the context ends."""
    stack = contextlib.ExitStack()
    for place, function in places:
        stack.enter_context(mock.patch(place, function))
    return stack


STEP, VALIDATION = "train.step.training_model", "train.validation.validation"
BREAKS = {  # by name, a context in which something is broken; main multiplies the learning rate itself
    "causal_mask": lambda: mock.patch.object(
        CausalSegmentMask, "call", lambda self, segments: masks.segment_mask(segments, segments)
    ),
    "source_mask": lambda: mock.patch.object(
        SegmentMask, "call", lambda self, query_segments, key_segments: inverted(query_segments, key_segments)
    ),
    "positions": lambda: mock.patch.object(SinusoidalPositions, "call", lambda self, embedded, positions: embedded),
    "shift": lambda: replaced(("train.data.batches.lay_out", unshifted)),
    "padding": lambda: replaced(
        (f"{STEP}.token_sums", smoothing_counts_padding), (f"{VALIDATION}.token_sums", smoothing_counts_padding)
    ),
    "learning_rate": contextlib.nullcontext,
}


@contextlib.contextmanager
def run_folder(path: pathlib.Path | None) -> Iterator[pathlib.Path]:
    """Yield `path`, or a folder that is deleted afterwards."""
    if path:
        yield path
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield pathlib.Path(folder)


@app.command()
def main(
    seed: Annotated[int, typer.Option(min=0, help="training.seed")] = 1,
    break_: Annotated[str | None, typer.Option("--broken", help=f"Break one of: {', '.join(BREAKS)}.")] = None,
    folder: Annotated[pathlib.Path | None, typer.Option(help="Keep the run here; else it is deleted.")] = None,
) -> None:
    """Train as configs/paper/smoke.toml says, and exit with 1 if loss or BLEU is out of its bounds."""
    prepare_process(is_long=True)
    from train.run import run

    with exit_codes(), run_folder(folder) as path:
        if break_ is not None and break_ not in BREAKS:
            raise ConfigError(f"--broken is {break_!r}; it must be one of {', '.join(BREAKS)}.")
        if RunFolder(path).has_begun():
            raise ConfigError(f"--folder is {path}, which has a run already, maybe of other code: name another one.")
        overrides = [f"training.seed={seed}", f"run_folder={json.dumps(str(path))}"]
        config = load_config(CONFIG, overrides)
        if break_ == "learning_rate":
            factor = 10 * config.training.learning_rate_factor
            config = load_config(CONFIG, [*overrides, f"training.learning_rate_factor={factor}"])
        with BREAKS[break_]() if break_ else contextlib.nullcontext():
            run(config)
        lines = (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    sys.exit(0 if all(list(map(is_right, BOUNDS, last_values(map(json.loads, lines))))) else 1)


def last_values(records: Iterable[dict]) -> list[float | None]:
    """The last value of each of BOUNDS; None if it was not finite."""
    validations = [record for record in records if "validation/loss" in record]
    return [validations[-1][name] for name in BOUNDS]


def is_right(name: str, value: float | None) -> bool:
    """Whether a value lies within its bounds, which is printed."""
    lowest, highest = BOUNDS[name]
    found = value is not None and lowest < value < highest
    print(f"{name} {value}, which must lie between {lowest} and {highest}: {'ok' if found else 'WRONG'}")
    return found


if __name__ == "__main__":
    app()
