"""`python -m benchmarks.corpus_cache`: what a corpus of WMT14's size takes in time, on disk and in memory.

The corpus is synthetic: words follow a Zipf distribution, sentence lengths a log-normal one with WMT14's mean. Each
stage is a process of its own and is timed from its start, imports included.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.result_files import command_line, write_result
from benchmarks.worker import peak_bytes
from keras_transformer.machine import processor_and_cores, versions

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

FORMS = 300_000  # different words per language
CHUNK = 50_000  # sentences written at once
VALIDATION_PAIRS = 3_000  # about as many as newstest2013 has
BATCHES = 1_000  # batches after the first, timed together
CONFIG = """
run_folder = "{folder}/run"
data = {{source = "files", train = [["{folder}/train.a", "{folder}/train.b"]], validation = [["{folder}/val.a", "{folder}/val.b"]]}}
tokenizer = {{vocab_size = {vocab_size}}}
training = {{tokens_per_batch = 25088, row_length = 256}}
"""  # noqa: E501


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    pairs: Annotated[int, typer.Option(help="Sentence pairs of the corpus.")] = 4_500_000,
    vocab_size: Annotated[int, typer.Option(help="Pieces of the tokenizer.")] = 32_000,
    to: Annotated[str, typer.Option(help="The file to write the table to.")] = "benchmarks/results/corpus_cache.md",
) -> None:
    """Write a corpus into a temporary folder, start a run on it twice, then print and write a table of the costs."""
    if context.invoked_subcommand:
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config = folder / "config.toml"
        config.write_text(CONFIG.format(folder=folder, vocab_size=vocab_size), encoding="utf-8")
        write_corpus(folder, "val", VALIDATION_PAIRS, seed=1)
        write_corpus(folder, "train", pairs, seed=2)
        stages = {
            "tokenizer": run_stage("learn-tokenizer", config),
            "first start": run_stage("first-batch", config),
            "second start": run_stage("first-batch", config),
        }
        text = sum(path.stat().st_size for path in folder.glob("train.*"))
        cached = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
    result = page(pairs, stages, text, cached)
    print(result)
    write_result(pathlib.Path(to), result)


@app.command(hidden=True)
def learn_tokenizer(config: str) -> None:
    """The stage that a run passes through only once, before it encodes."""
    from keras_transformer.run_folder import RunFolder
    from train.config.run import load_config
    from train.data.prepare import load_corpus
    from train.data.vocabulary import prepare_tokenizer

    config = load_config(config)
    folder = RunFolder(config.run_folder)
    folder.path.mkdir(parents=True)
    prepare_tokenizer(config.tokenizer, load_corpus(config.data).train.shards, folder.tokenizer)
    report({})


@app.command(hidden=True)
def first_batch(config: str) -> None:
    """Everything that a run does before its first step, up to the first batch in TensorFlow."""
    from keras_transformer.run_folder import RunFolder
    from train.config.run import load_config
    from train.cost.preflight import corpus_lines, length_lines
    from train.data.batches import training_dataset
    from train.data.prepare import load_corpus, prepare_data
    from train.data.vocabulary import prepare_tokenizer

    config = load_config(config)
    corpus, path = load_corpus(config.data), RunFolder(config.run_folder).tokenizer
    tokenizer = prepare_tokenizer(config.tokenizer, corpus.train.shards, path)
    data = prepare_data(corpus, tokenizer, config.training, config.cache_path)
    started = time.perf_counter()
    for line in (*corpus_lines(data), *length_lines(data)):
        print(line, file=sys.stderr)
    preflight = time.perf_counter() - started
    next(iter(training_dataset(data.batches, 0, 1)))
    arrived, started = time.time(), time.perf_counter()
    for step in range(1, 1 + BATCHES):
        data.batches.batch(step)
    report({
        "arrived": arrived,
        "preflight": preflight,
        "batch": (time.perf_counter() - started) / BATCHES,
        "padding": data.batches.padding.total,
        "pairs": len(data.train),
        "tokens": [data.train.source_tokens, data.train.target_tokens],
    })  # fmt: skip


def report(found: dict[str, Any]) -> None:
    """Print a stage's findings and its peak memory in bytes, as JSON."""
    print(json.dumps(found | {"peak": peak_bytes(resource.getrusage(resource.RUSAGE_SELF))}))


def run_stage(command: str, config: pathlib.Path) -> dict[str, Any]:
    """The stage's report, and `seconds` from its start to its first batch, or to its end if it makes no batch."""
    started = time.time()
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.corpus_cache", command, config],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(process.stdout.splitlines()[-1])
    return found | {"seconds": found.get("arrived", time.time()) - started}


# the corpus


def write_corpus(folder: pathlib.Path, name: str, pairs: int, seed: int) -> None:
    """Write folder/name.a and folder/name.b, `pairs` lines each; the lengths of a pair correlate."""
    rng = np.random.default_rng(seed)
    words = [forms(np.random.default_rng(side)) for side in range(2)]
    ranks = np.cumsum(1 / (np.arange(FORMS) + 2.7))
    with open(folder / f"{name}.a", "w", encoding="utf-8") as a, open(folder / f"{name}.b", "w", encoding="utf-8") as b:
        for start in range(0, pairs, CHUNK):
            lengths = np.exp(rng.normal(2.9, 0.6, min(CHUNK, pairs - start)))
            for side, file in enumerate((a, b)):
                ends = np.cumsum(
                    np.maximum(1, lengths * np.exp(rng.normal(0, 0.15, len(lengths)))).astype(int)
                ).tolist()
                drawn = words[side][np.searchsorted(ranks, rng.random(ends[-1]) * ranks[-1])].tolist()
                file.writelines(
                    " ".join(drawn[begin:end]) + "\n" for begin, end in zip([0, *ends[:-1]], ends, strict=True)
                )


def forms(rng: np.random.Generator) -> np.ndarray:
    """object (FORMS,): different words of one to three syllables; the shortest have the lowest ranks."""
    syllables = np.array([consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"], object)
    rng.shuffle(syllables)
    count = len(syllables)
    numbers = np.concatenate([
        length_start + rng.permutation(length_end - length_start)
        for length_start, length_end in ((0, count), (count, count**2), (count**2, count**3))
    ])[:FORMS]  # fmt: skip
    first, second, third = numbers // count**2, numbers // count % count, numbers % count
    words = syllables[third]
    words[numbers >= count] = syllables[second[numbers >= count]] + words[numbers >= count]
    words[numbers >= count**2] = syllables[first[numbers >= count**2]] + words[numbers >= count**2]
    return words


# the page


def page(pairs: int, stages: dict[str, dict[str, Any]], text: int, cached: int) -> str:
    """The table in Markdown. `text` and `cached`: bytes of the text and of the cache."""
    first, second = stages["first start"], stages["second start"]
    packages = versions(["numpy", "sentencepiece", "tensorflow"])
    rows = [f"| {name} | {stage['seconds']:.1f} | {stage['peak'] / 2**30:.2f} |" for name, stage in stages.items()]
    return "\n".join([
        f"# A corpus of {pairs:,} pairs",
        "",
        f"`{command_line('corpus_cache')}`, on {processor_and_cores()}, with "
        f"{', '.join(f'{name} {version}' for name, version in packages.items())}.",
        "",
        f"Synthetic text of {text / 2**30:.2f} GiB: {second['tokens'][0]:,} source and {second['tokens'][1]:,} target "
        f"tokens in {second['pairs']:,} pairs.",
        "",
        "| stage, a process of its own | seconds to the first batch, imports included | peak resident GiB |",
        "|---|---|---|",
        *rows,
        "",
        f"These seconds include the preflight (duplicates, overlap, lengths): {first['preflight']:.1f} s in the first "
        f"start, {second['preflight']:.1f} s in the second. Resident memory includes the pages of mapped files that "
        "were read.",
        f"On disk: {cached / 2**30:.2f} GiB of ids, offsets and keys, {cached / second['pairs']:.0f} bytes per pair.",
        f"Padding: {second['padding']:.2%} of rows of 256. A batch of 25,088 positions takes "
        f"{1000 * second['batch']:.1f} ms while the next epoch is packed: the mean of {BATCHES:,} batches in sequence.",
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    app()
