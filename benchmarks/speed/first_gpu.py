"""What benchmarks/speed/first_gpu.sh needs: a text to train on, the time of translations, and the table of a GPU."""

import functools
import itertools
import json
import pathlib
import statistics
import time
import tomllib
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.errors import BenchmarkError
from benchmarks.result_files import write_result
from benchmarks.speed.on_accelerator.packed_text import FIRST_PIECE, made_up_pairs
from keras_transformer.commands.console import exit_codes

SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvwz" for vowel in "aeiou"]
VALIDATION_PAIRS = 50
LONGEST = 100  # words of a sentence
ROUNDS = 3  # of translations, after one that is not timed
BEAMS = {"beam 4": 4, "greedy": 1}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def text(
    folder: Annotated[pathlib.Path, typer.Argument(help="Where train.tsv and validation.tsv go.")],
    pairs: Annotated[int, typer.Option(min=1, help="Sentence pairs to train on.")] = 100_000,
    words: Annotated[int, typer.Option(min=10, help="Different words on each side.")] = 40_000,
) -> None:
    """Write made-up sentence pairs of realistic lengths and word frequencies; a target has each word backwards."""
    lines = [f"{source}\t{target}\n" for source, target in made_up_text(pairs + VALIDATION_PAIRS, words)]
    write_result(folder / "validation.tsv", "".join(lines[:VALIDATION_PAIRS]))
    write_result(folder / "train.tsv", "".join(lines[VALIDATION_PAIRS:]))


@app.command()
def translate(
    to: Annotated[pathlib.Path, typer.Argument(help="A file for the result, JSON.")],
    run: Annotated[str, typer.Argument(help="A run folder or a preset.")],
    lines: Annotated[int, typer.Option(min=1, help="Lines at once: the run's validation lines, repeated.")] = 1024,
) -> None:
    """Time the translation of many lines at once, on the GPU if TensorFlow sees one."""
    import tensorflow as tf

    from keras_transformer import SearchOptions, Translator

    with exit_codes():
        sources = (pathlib.Path(run) / "validation.src.txt").read_text(encoding="utf-8").splitlines()
        sources = (sources * (lines // len(sources) + 1))[:lines]
        gpus = tf.config.list_physical_devices("GPU")
        device = tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU") if gpus else "CPU"
        result: dict[str, Any] = {"run": run, "device": device, "lines": lines, "per_second": {}}
        for name, beam_size in BEAMS.items():
            translator = Translator.load(run, SearchOptions(beam_size=beam_size))
            seconds = [seconds_of(lambda: translator.translate(sources)) for _ in range(1 + ROUNDS)]  # noqa: B023
            result["per_second"][name] = lines / statistics.median(seconds[1:])
        write_result(to, json.dumps(result) + "\n")


@app.command()
def table(folder: Annotated[pathlib.Path, typer.Argument(help="What first_gpu.sh has filled.")]) -> None:
    """Write first_gpu.md: what each part measured. Exits with 1 if a part is missing."""
    with exit_codes():
        page, missing = as_page(folder)
        write_result(folder / "first_gpu.md", page)
        typer.echo(page)
        if missing:
            raise BenchmarkError(f"Not measured: {', '.join(missing)}. What went wrong is printed above.")


def made_up_text(count: int, words: int) -> list[tuple[str, str]]:
    """Return pairs of lines, always the same ones. Words follow Zipf's law, and lengths are log-normal."""
    source = made_up_pairs(np.random.default_rng(0), count, words + FIRST_PIECE, LONGEST).source
    pairs = []
    for begin, end in itertools.pairwise(source.offsets):
        written = [word_of(number) for number in source.ids[begin:end]]
        pairs.append((" ".join(written), " ".join(word[::-1] for word in written)))
    return pairs


@functools.cache
def word_of(number: int) -> str:
    """Return a word of syllables, another one for each number."""
    word = ""
    while number or not word:
        number, syllable = divmod(number, len(SYLLABLES))
        word = SYLLABLES[syllable] + word
    return word + "x"


def seconds_of(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def as_page(folder: pathlib.Path) -> tuple[str, list[str]]:
    """Return the page in Markdown, and the names of the parts that are missing."""
    parts = {
        "fit on JAX": fit_rows(read_json(folder / "jax/accelerator.json")),
        "translation on JAX": search_rows(read_json(folder / "jax/accelerator_translate.json")),
        "training on TensorFlow": training_rows(folder / "run/metrics.jsonl", folder / "train.toml"),
        "translation": translation_rows(
            read_json(folder / "translate_gpu.json"), read_json(folder / "translate_cpu.json")
        ),
    }
    missing = [name for name, rows in parts.items() if not rows]
    rows = [row for name, part in parts.items() for row in part or [(name, "not measured")]]
    device = (read_json(folder / "jax/accelerator.json") or {}).get("chip", {}).get("name", "unknown device")
    lines = [f"| {what} | {number} |" for what, number in [("what", "measured"), ("---", "---"), *rows]]
    whole = "; ".join(f"{what}: {number}" for what, number in rows)
    head = [f"# {device}, measured by benchmarks/speed/first_gpu.sh", ""]
    return "\n".join([*head, *lines, "", "The row of README.md:", "", f"    | **{device}** | {whole} |", ""]), missing


def fit_rows(result: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the rows of contestants that have rounds; those of torch beside ours."""
    measured = {row["name"]: row for row in (result or {}).get("measurements", ()) if row["rounds"]}
    rows = []
    for name, row in measured.items():
        beside = measured.get(name.replace("keras", "torch")) if name.startswith("keras") else None
        times = f", {row['tokens_per_second'] / beside['tokens_per_second']:.2f} times torch" if beside else ""
        what = f"{row['contestant']['label']}, {row['size']}, {row['contestant']['products']}"
        rows.append((what, f"{row['tokens_per_second']:,.0f} target tokens/s{times}"))
    return rows


def search_rows(result: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the rows of the cases that have rounds."""
    rows = []
    for row in (result or {}).get("results", ()):
        if row["rounds"]:
            beam_size, count = row["case"]["beam_size"], row["case"]["rows"]
            what = f"{row['contestant']['label']}, {row['size']}, {row['rounds'][0]['precision']}, beam {beam_size}"
            rows.append((f"{what}, {count:,} rows", f"{row['tokens_per_second']:,.0f} target tokens/s"))
    return rows


def training_rows(metrics: pathlib.Path, config: pathlib.Path) -> list[tuple[str, str]]:
    """Return the median speed of the later half of the updates: the first ones compile."""
    if not metrics.exists():
        return []
    records = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    speeds = [record["train/tokens_per_second"] for record in records if "train/tokens_per_second" in record]
    if not speeds:
        return []
    later = statistics.median(speeds[len(speeds) // 2 :])
    settings = tomllib.loads(config.read_text(encoding="utf-8"))
    what = f"keras-transformer train, TensorFlow, {settings['model']['preset']}, {settings['training']['precision']}"
    return [(what, f"{later:,.0f} target tokens/s")]


def translation_rows(on_gpu: dict[str, Any] | None, on_cpu: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return a row per beam: lines per second, and how many times those of the processor alone."""
    if on_gpu is None:
        return []
    rates = on_cpu["per_second"] if on_cpu and on_cpu["device"] != on_gpu["device"] else {}
    rows = []
    for name, rate in on_gpu["per_second"].items():
        beside = f", {rate / rates[name]:.1f} times the processor" if name in rates else ""
        what = f"translation, {pathlib.Path(on_gpu['run']).name}, {name}, {on_gpu['lines']:,} lines at once"
        rows.append((f"{what}, {on_gpu['device']}", f"{rate:,.0f} lines/s{beside}"))
    return rows


def read_json(path: pathlib.Path) -> Any:
    """Return what a file holds, None if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


if __name__ == "__main__":
    app()
