"""report.md, the model card: what the model is for, how good and how large it is, its data, how to repeat it."""

import collections
import json
import pathlib
import platform
import shlex
from typing import Any

import numpy as np

from keras_transformer.ground.durations import duration
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.machine import package_versions, processor_and_cores
from keras_transformer.inspection.markdown import samples_table, table
from keras_transformer.losses import perplexity_text
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator

from ..config.run import RunConfig
from ..config.training import TrainingConfig
from ..cost.cost import corpus_flops, parameter_count, passes_of, trained_count
from ..data.cleaning import dropped_table
from ..data.corpus import skipped_sentence
from ..data.prepare import PreparedData
from ..data.spread import spread
from ..data.statistics import data_table
from ..loop.progress import Progress
from ..record.history import Part, history
from ..scoring.card import Card, TimedTranslations, translate_timed
from ..scoring.outputs import SCORED
from ..scoring.scored import Use
from ..validation.selection import Selection
from .curves import plot_curves, read_curves

SAMPLES = 10
PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece", "sacrebleu")


def write_report(
    config: RunConfig, folder: RunFolder, data: PreparedData, progress: Progress, selection: Selection, devices: str
) -> Card:
    """Translate the test set (the validation set if there is none) with the run folder's weights.

    Writes report.md, the same scores for programs to scores.json, and curves.png if there are metrics. Returns the
    Card with the scores.
    """
    split = data.corpus.test or data.corpus.validation
    options = config.translation.search_options(config.translation.beam_size)
    transformer, tokenizer = load_run(folder.path)
    translator = Translator(transformer, tokenizer, options, config.translation.batch_size, languages=data.languages)
    scored = SCORED[config.data.outputs].of_split(split, config.data, data)
    timed = translate_timed(translator, scored.pairs, scored.told)
    card = scored.score(timed, data.tokenizer)
    curves = read_curves(folder.metrics, progress.step)
    if curves:
        plot_curves(curves, folder.path.name, folder.curves)
    model = transformer.model_config
    sections = [
        f"# {folder.path.name}",
        f"{config.data.languages}.",
        "## Use\n\n" + use_text(config, scored.use),
        "## Scores\n\n" + scores_text(split.name, card, options, selection, split.skipped),
        "## Training\n\n" + training_table(config.training, data, model, progress, devices),
        *[f"![Loss, {scored.quality} and learning rate over the steps](curves.png)"] * bool(curves),
        "## Size and speed\n\n" + cost_table(model, folder.weights, curves, timed, progress, devices),
        "## Data\n\n" + data_table(config.data, data),
        *filter(None, [dropped_table(data.train.shards)]),
        "## How to repeat it\n\n" + "\n".join(reproduction_lines(folder, config.training)),
        f"## Sample translations ({split.name})\n\n" + samples_table(spread(timed.samples, SAMPLES)),
        "## Configuration\n\n```toml\n" + config.to_toml() + "```",
    ]
    write_atomically(folder.report, "\n\n".join(sections) + "\n")
    trained = training_json(config.training, folder, progress)
    scores = scores_json(split.name, card, options, selection, parameter_count(model), progress.step, trained)
    write_atomically(folder.scores, scores)
    return card


def use_text(config: RunConfig, use: Use) -> str:
    """What the model is for and what it is not for."""
    rows = config.training.row_lengths
    return "\n".join(
        [
            f"It {use.does.format(languages=config.data.languages)} of the kind that it was trained on (see Data). "
            f"No training sentence had more than {rows.source} source or {rows.target} target tokens, the end of "
            "sentence included.",
            "",
            "It is not for",
            "",
            "- text of another kind: how good it is there has not been measured;",
            f"- documents: each sentence is {use.done} without those around it;",
            f"- use without a reader who checks, where a mistake could do harm{use.risk}",
        ]
    )


def scores_text(
    name: str,
    card: Card,
    options: SearchOptions,
    selection: Selection,
    skipped: collections.Counter | None = None,
) -> str:
    """Scores of the split `name`, the validation of the kept weights, and tables of where scores are won and lost.

    skipped: pairs of the split that were left out, by reason.
    """
    search = f"beam {options.beam_size}, length penalty {options.length_penalty}"
    if options.length_normalization != SearchOptions.length_normalization:
        search += f" ({options.length_normalization})"
    if options.coverage_penalty:
        search += f", coverage penalty {options.coverage_penalty}"
    lines = [f"{name}, {search}:", ""]
    lines += [f"- {line}" for line in card.score_lines()]
    if skipped:
        lines.append(f"- pairs that were left out: {skipped_sentence(skipped)}")
    validation = selection.kept.validation
    interval = ""
    if validation.perplexity_interval:
        low, high = (perplexity_text(bound, 3) for bound in validation.perplexity_interval)
        interval = f" ({low} to {high}, 95 per cent interval)"
    lines.append(
        f"- validation perplexity {perplexity_text(validation.perplexity, 3)}{interval} per token; {selection}"
    )
    return "\n\n".join(["\n".join(lines), *(part.markdown() for part in card.tables())])


def training_json(training: TrainingConfig, folder: RunFolder, progress: Progress) -> dict[str, Any]:
    """Return what a table of results says of a training: its seed and start, seconds, machine and last commit."""
    parts = history(folder)
    return {
        "seed": training.seed,
        "start_from": training.start_from,
        "seconds": progress.seconds,
        "machine": processor_and_cores(),
        "commit": parts[-1].commit if parts else None,
    }


def scores_json(
    name: str,
    card: Card,
    options: SearchOptions,
    selection: Selection,
    parameters: int,
    step: int,
    training: dict[str, Any],
) -> str:
    """Return what `scores_text` has, for programs, with the number of parameters, the last step and `training_json`."""
    scored = {
        "step": step,
        "split": name,
        "beam_size": options.beam_size,
        "length_penalty": options.length_penalty,
        "length_normalization": options.length_normalization,
        "coverage_penalty": options.coverage_penalty,
        "validation_loss": selection.kept.validation.loss,
        "validation_perplexity": selection.kept.validation.perplexity,
        "validation_perplexity_interval": selection.kept.validation.perplexity_interval,
        "parameters": parameters,
        "training": training,
        **card.as_json(),
    }
    return json.dumps(scored, ensure_ascii=False) + "\n"


def training_table(
    training: TrainingConfig, data: PreparedData, transformer_config: BaseModelConfig, progress: Progress, devices: str
) -> str:
    """What training took. The number of epochs is that of updates over the batches of one epoch."""
    batches = data.batches
    flops = corpus_flops(transformer_config, data.train, progress.target_tokens, passes_of(training))
    packages = package_versions(PACKAGES)
    python = packages.pop("python")
    numbers = ", ".join(map(str, progress.skipped))
    start = f"the weights of {training.start_from}, whose training comes on top"
    return table(
        *[("begun with", start)] * bool(training.start_from),
        *[("trained by LoRA", f"{trained_count(training, transformer_config):,} parameters")]
        * bool(training.lora_rank),
        ("updates", f"{progress.step:,}, of {batches.rows_per_batch} rows of {batches.row_lengths.target} positions"),
        ("epochs", f"{batches.epochs(progress.step):.1f}"),
        ("left out after divergence", f"{len(progress.skipped)} batches" + (f": {numbers}" if numbers else "")),
        ("target tokens", f"{progress.target_tokens:,.0f}"),
        ("time", f"{duration(progress.seconds)}, validation included"),
        ("training FLOPs", f"{flops:.2e}, estimated from the shapes of the matrix products at mean sentence length"),
        ("devices", f"{devices}, {training.precision}, XLA {'on' if training.xla else 'off'}"),
        ("machine", f"{platform.machine()}, {processor_and_cores()}, Python {python}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in packages.items())),
    )


def cost_table(
    transformer_config: BaseModelConfig,
    weights: pathlib.Path,
    curves: dict[str, np.ndarray],
    timed: TimedTranslations,
    progress: Progress,
    devices: str,
) -> str:
    """How large the model is, how fast it trains and translates, and what its training cost."""
    speed = "not recorded"
    if "train/tokens_per_second" in curves:
        speed = f"{np.median(curves['train/tokens_per_second'][:, 1]):,.0f} target tokens/s, the median of all updates"
    hours, cores = progress.seconds / 3600, progress.core_seconds / max(progress.seconds, 1e-9)
    its_cores = "1 core" if f"{cores:.3g}" == "1" else f"{cores:.3g} cores"
    alone = " of the first worker, without those of the others" if "workers" in devices else ""
    cost = f"{progress.core_seconds / 3600:.2f} core hours: {duration(progress.seconds)} on {its_cores}{alone}"
    return table(
        ("parameters", f"{parameter_count(transformer_config):,}"),
        ("weights", f"{weights.stat().st_size:,} bytes, float32 ({weights.name})"),
        ("training", speed),
        ("translation", timed.line().removeprefix("speed ")),
        ("training took", cost if "CPU" in devices else f"{hours:.2f} hours of {devices}; {cost}"),
    )


def reproduction_lines(folder: RunFolder, training: TrainingConfig) -> list[str]:
    """Lines of Markdown: the commands that repeat the run, and what they need for the same result.

    Commits are those of the run's history; a run from before there was a history has none.
    """
    parts = distinct(history(folder))
    name = folder.path.name
    lines = ["```"]
    if parts and parts[-1].commit:
        lines.append(f"git checkout {parts[-1].commit.partition(' ')[0]}")
    start = f"Its first weights are those of {training.start_from}. " if training.start_from else ""
    decided = "the order of the text" if training.start_from else "the first weights, the order of the text"
    repeated = "" if len(parts) < 2 else ", if the same is changed at the same steps"
    lines += [
        shlex.join(["keras-transformer", "train", folder.config.name, "--set", f"run_folder=runs/{name}_again"]),
        "```",
        "",
        f"`{folder.config.name}` is the configuration at the end of this page, with every override and default; save "
        f"it under that name first. {start}Its seed, {training.seed}, decides {decided} and dropout: the same text, "
        f"packages and processor give the same weights, on CPUs bit for bit{repeated}.",
        "",
    ]
    if len(parts) < 2:
        return [*lines, f"Commit: {named(parts[0].commit if parts else None)}."]
    return [*lines, "It was trained", "", *map(part_line, parts)]


def distinct(parts: list[Part]) -> list[Part]:
    """The parts without those that went on with the code and the configuration of the part before."""
    return [
        part
        for number, part in enumerate(parts)
        if number == 0 or part.changes or part.commit != parts[number - 1].commit
    ]


def part_line(part: Part) -> str:
    """An item of a list: where a part begins, its commit, what it changed."""
    changes = [f"; `{key}` was {before} and is {after}" for key, (before, after) in part.changes.items()]
    return f"- from step {part.step:,} on, commit {named(part.commit)}{''.join(changes)}"


def named(commit: str | None) -> str:
    """A commit as people read it."""
    return commit or "not known, since the code was not in a git checkout"
