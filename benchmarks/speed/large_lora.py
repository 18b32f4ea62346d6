"""`python -m benchmarks.speed.large_lora RUN`: memory and time of a training step, of all weights and of LoRA.

RUN is what `keras-transformer import` wrote, or any run of a Transformer. Each kind of training has a process of its
own, which loads the weights and takes steps on rows of random tokens without padding, without XLA. The table has the
largest memory of the process, the estimate that training logs, with 0.8 GiB of the process, and the median of the steps
after the first. A kind whose estimate is above `--most` is not run.
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.result_files import command_line
from benchmarks.speed.processes import peak_bytes
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import UserError
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.runs.kinds import load_model_config
from keras_transformer.runs.run_folder import RunFolder
from train.config.training import TrainingConfig
from train.cost.cost import parameter_count, trained_count, training_memory

KINDS: dict[str, dict[str, Any]] = {
    "all weights": {},
    "LoRA 8, query and value": {"lora_rank": 8},
    "LoRA 8, every matrix": {"lora_rank": 8, "lora_matrices": ["query", "key", "value", "output", "ffn"]},
}
PROCESS = 0.8  # GiB that a process holds before its model is built
HEAD = (
    "| trained | parameters | estimate, GiB | peak, GiB | seconds per step, of the processor |\n"
    "|---|---:|---:|---:|---:|"
)

app = command_app()


@app.command()
def main(
    run: Annotated[pathlib.Path, typer.Argument(metavar="RUN")],
    rows: Annotated[int, typer.Option(min=1, help="Of a step.")] = 8,
    length: Annotated[int, typer.Option(min=8, help="Positions of a row, on both sides.")] = 32,
    steps: Annotated[int, typer.Option(min=2, help="Of which the first is not counted.")] = 4,
    most: Annotated[float, typer.Option(min=0, help="GiB that a process may take.")] = 12.0,
) -> None:
    """Print a table in Markdown."""
    with exit_codes():
        config = load_model_config(RunFolder(run).model)
        if not isinstance(config, TransformerConfig):
            raise UserError(f"{run} is of kind {config.kind!r}, which LoRA does not adapt: give a Transformer.")
        print(f"{command_line('speed.large_lora')} on {processor_and_cores()}\n\n{HEAD}", flush=True)
        for kind in KINDS:
            print(row(run, config, kind, (rows, length, steps), most), flush=True)


def training_of(run: pathlib.Path, kind: str, rows: int, length: int) -> TrainingConfig:
    return TrainingConfig(
        start_from=str(run),
        tokens_per_batch=rows * length,
        row_length=length,
        histograms_every=0,
        precision="float32",
        xla=False,
        schedule="constant",
        **KINDS[kind],
    )


def row(run: pathlib.Path, config: TransformerConfig, kind: str, sizes: tuple[int, int, int], most: float) -> str:
    """Return the row of one kind of training, for which a process is started if its estimate fits in `most` GiB."""
    training = training_of(run, kind, *sizes[:2])
    estimate = PROCESS + training_memory(training, config, sizes[0], training.row_lengths) / 2**30
    share = trained_count(training, config) / parameter_count(config)
    cells = [kind, f"{trained_count(training, config):,} ({share:.2%})", f"{estimate:.1f}"]
    if estimate > most:
        return f"| {' | '.join([*cells, f'not run: more than {most:g}', ''])} |"
    arguments = ["-c", "from benchmarks.speed.large_lora import steps_of; import sys; steps_of(*sys.argv[1:])"]
    command = [sys.executable, *arguments, str(run), kind, json.dumps(sizes)]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise UserError(f"{kind}: {(process.stderr.strip().splitlines() or [str(process.returncode)])[-1]}")
    found = json.loads(process.stdout.splitlines()[-1])
    cells += [f"{found['peak'] / 2**30:.1f}", f"{found['seconds']:.2f}"]
    return f"| {' | '.join(cells)} |"


def steps_of(run: str, kind: str, sizes: str) -> None:
    """Take the steps of one kind of training, and print their peak of memory and median of time as JSON."""
    import tensorflow as tf

    from keras_transformer.runs.saved_run import load_run
    from train.step.training_model import compiled

    rows, length, steps = json.loads(sizes)
    transformer, _ = load_run(run)
    model = compiled(transformer, training_of(pathlib.Path(run), kind, rows, length), tf.distribute.get_strategy())
    step = model.make_train_function()
    batch = batch_of(transformer.model_config.vocab_size, rows, length)
    batches, seconds = iter(tf.data.Dataset.from_tensors(batch).repeat()), []
    for _ in range(steps):
        began = time.process_time()
        float(step(batches)["loss"])
        seconds.append(time.process_time() - began)
    print(
        json.dumps(
            {"peak": peak_bytes(resource.getrusage(resource.RUSAGE_SELF)), "seconds": statistics.median(seconds[1:])}
        )
    )


def batch_of(pieces: int, rows: int, length: int) -> dict[str, np.ndarray]:
    """Return rows of one sentence pair each, as long as the row."""
    ids = np.random.default_rng(0).integers(4, pieces, (rows, length)).astype("int32")
    ones = np.ones_like(ids)
    return {"source_ids": ids, "source_segments": ones, "target_ids": ids, "target_segments": ones, "labels": ids}


if __name__ == "__main__":
    app()
