"""The results of the translation benchmark: medians, ratios, limits and qualities, as JSON, tables and a plot."""

import json
import pathlib
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.result_files import write_result
from benchmarks.speed.translators import CONTESTANTS, OURS
from export.certificate.certificate import percentile
from keras_transformer.ground.machine import package_versions, processor, processor_cores
from train.cost.cost import forward_flops

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = "tensorflow", "keras", "ai-edge-litert", "ctranslate2", "torch", "transformers", "numpy"
PARTS = (
    "ratios",
    "sentences_per_second",
    "tokens_per_second",
    "latency",
    "bleu",
    "same",
    "settings",
    "tried",
    "peak_bytes",
    "product_flops",
    "limit_tokens_per_second",
)
NOTES = """\
Every contestant has the same weights, translates text to text, and has a process of its own. They take turns, round
after round; a number is the median of the rounds, except in the last two tables. A contestant whose turn takes more
than a minute has one turn. Each gets the fastest of its settings (batch size; CTranslate2 and Marian also their
threads), tried in this run before the rounds on 128 lines, or on all that there are if they are fewer, for each row of
a table anew. They sort lines by length themselves. Nothing may use a GPU. "From the start of the process" serves a
SavedModel with one signature (`--signature serving_default`), which loads in a quarter of the time of all five.

"all": one call with all lines. "batch32": a call per 32 lines, in the order of the file. "batch1": a call per line.

`multi30k` is the run of `configs/multi30k.toml` on test_2016, where outputs end by themselves. The other sizes
have random weights, 24 source tokens, EOS included, and outputs of 25 tokens, none of which can end earlier: the last
one is EOS of ours and a word of the peers', so that their texts cannot be compared, and their "same" is left out.

CTranslate2 and Marian divide by length^0.6, ours by ((5 + length) / 6)^0.6, and each stops as it does by default: so a
beam finds somewhat different translations, and "same" is the share of lines with the Translator's. The README.md of a
CTranslate2 export has settings that find more of them.

`gemm_limit` is the speed of a program that did only the matrix products of encoder and search, counted for the
Translator's own output lengths, at the rate of this machine's 2048^3 product in TensorFlow without XLA, float32. Its
column of ratios is our share of it; `/bfloat16` compares with the product in bfloat16.

keras-hub has no contestant here: its `BeamSampler` needs a function for the next token and a cache in the layout of its
own models, and `keras_hub` has no encoder-decoder whose layers are the paper's."""

FIRST_NOTE = "Each number was measured once, with one setting."
LENGTHS_NOTE = (
    "Beam 4, 8 sentences together, 256 wide, 3+3 layers, random weights. Each setting was measured once, after an "
    "untimed translation; a number is that of the fastest."
)


OWN = ("ours", "saved_model", "litert")  # contestants that are this project's, by the beginning of their names


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """All results, ready for JSON.

    `ratios`: our sentences per second over theirs, by "work/beam/mode/contestant"; other versions of ours append what
    `OURS` says. `results` is what `measure_all` returns, with the command and the rounds.
    """
    result: dict[str, Any] = {part: {} for part in PARTS}
    for name, work in results.pop("works").items():
        add_work(result, name, work)
    return (
        results
        | result
        | {"versions": package_versions(PACKAGES), "processor": processor(), "cores": processor_cores()}
    )


def add_work(result: dict[str, Any], name: str, work: dict[str, Any]) -> None:
    """Add one piece of work, as `measure` found it."""
    result["product_flops"][name] = work["product"]
    result["peak_bytes"] |= {f"{name}/{contestant}": peak for contestant, peak in work["peak"].items()}
    for part in ("settings", "tried"):
        result[part] |= {f"{name}/{key}": value for key, value in work[part].items()}
    for beam_and_mode in dict.fromkeys(key.rpartition("/")[0] for key in work["seconds"]):
        keys = [key for key in work["seconds"] if key.rpartition("/")[0] == beam_and_mode]
        is_latency = beam_and_mode.endswith("batch1")
        speed = {}
        for key in keys:
            contestant, texts = key.rpartition("/")[2], work["texts"][key]
            if is_latency:
                every = [one for turn in work["seconds"][key] for one in turn]
                result["latency"][f"{name}/{key}"] = percentiles(every)
                speed[contestant] = 1 / median(every)
            else:
                speed[contestant] = len(texts) / median(work["seconds"][key])
            result["sentences_per_second"][f"{name}/{key}"] = speed[contestant]
            add_quality(result, f"{name}/{key}", texts, work["texts"].get(f"{beam_and_mode}/ours"), work["references"])
        add_ratios(result["ratios"], f"{name}/{beam_and_mode}", speed)
        ours = work["texts"].get(f"{beam_and_mode}/ours")
        if ours and not is_latency:
            add_limit(result, name, beam_and_mode, work, ours, speed)


def percentiles(times: list[float]) -> dict[str, float]:
    return {f"p{percent}": percentile(times, percent) for percent in (50, 95)}


def add_quality(result: dict, key: str, texts: list[str], ours: list[str] | None, references: list[str] | None) -> None:
    """BLEU if there are references for all lines, and the share of lines that are the Translator's.

    Work without references has outputs of a forced length, whose last token is EOS of ours and a word of the peers':
    then the peers' texts are not compared.
    """
    if references and len(references) == len(texts):
        import sacrebleu

        result["bleu"][key] = sacrebleu.corpus_bleu(texts, [references]).score
    if ours and (references or key.rpartition("/")[2].startswith(OWN)):
        result["same"][key] = sum(one == other for one, other in zip(texts, ours, strict=True)) / len(texts)


def add_ratios(ratios: dict[str, float], prefix: str, speed: dict[str, float]) -> None:
    for version, suffix in OURS.items():
        peers = [name for name in speed if name not in OURS] if version in speed else []
        ratios |= {f"{prefix}/{peer}{suffix}": speed[version] / speed[peer] for peer in peers}
    for version in OURS:
        if version != "ours" and version in speed and "ours" in speed:
            ratios[f"{prefix}/{version}"] = speed["ours"] / speed[version]


def add_limit(result: dict, name: str, place: str, work: dict, ours: list[str], speed: dict[str, float]) -> None:
    """The limit that matrix products set, and our share of it."""
    import sentencepiece

    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=work["tokenizer"])
    sources = [len(ids) + 1 for ids in tokenizer.encode(work["source"])]
    targets = [work["forced"] or len(ids) + 1 for ids in tokenizer.encode(ours)]
    beam_size = 4 if place.startswith("beam4") else 1
    flops = sum(search_flops(work["config"], *pair, beam_size) for pair in zip(sources, targets, strict=True))
    for contestant, sentences in speed.items():
        result["tokens_per_second"][f"{name}/{place}/{contestant}"] = sentences * sum(targets) / len(targets)
    for precision, rate in work["product"].items():
        limit = rate / (flops / len(targets))  # sentences per second
        result["limit_tokens_per_second"][f"{name}/{place}/{precision}"] = limit * sum(targets) / len(targets)
        for version, suffix in OURS.items():
            if version in speed and suffix.endswith("/bfloat16") == (precision == "bfloat16"):
                result["ratios"][f"{name}/{place}/gemm_limit{suffix}"] = speed[version] / limit


def search_flops(config, source: int, target: int, beam_size: int) -> float:
    """FLOPs of the matrix products of one sentence: the encoder once, the decoder for every hypothesis."""
    once = forward_flops(config, source, 0)
    return once + beam_size * (forward_flops(config, source, target) - once)


def as_markdown(results: dict[str, Any]) -> str:
    return "\n".join(["# Translation speed", "", *heading(results), *tables(results), *lengths(results), NOTES, ""])


def heading(results: dict[str, Any]) -> Iterator[str]:
    machine = f"{results['processor']}, {results['cores']} cores"
    yield f"`{results['command'].strip()}` on {machine}; rounds: {results['rounds']}."
    yield ", ".join(f"{package} {version}" for package, version in results["versions"].items()) + "."
    if results["load_before"] is not None:
        yield f"Load of the machine in the minute before: {results['load_before']:.2f}."
    for name, rates in results["product_flops"].items():
        yield f"Matrix product beside {name}: " + ", ".join(
            f"{rate / 1e9:.0f} GFLOP/s {kind}" for kind, rate in rates.items()
        )
    yield ""
    yield from (f"- Not measured: {name}: {reason}" for name, reason in results["missing"].items())
    yield ""


def tables(results: dict[str, Any]) -> Iterator[str]:
    for place in dict.fromkeys(key.rpartition("/")[0] for key in results["sentences_per_second"]):
        yield from (
            f"## {place}",
            "",
            "| | sentences/s | tokens/s | p50, p95 (ms) | ours : theirs | BLEU | same | setting |",
        )
        yield "|---|---:|---:|---:|---:|---:|---:|---|"
        for name, contestant in CONTESTANTS.items():
            key = f"{place}/{name}"
            if key in results["sentences_per_second"]:
                cells = [
                    cell(results["sentences_per_second"], key, ",.1f"),
                    cell(results["tokens_per_second"], key, ",.0f"),
                    latency(results["latency"].get(key)),
                    cell(results["ratios"], key, ".2f"),
                    cell(results["bleu"], key, ".2f"),
                    cell(results["same"], key, ".1%"),
                    ", ".join(f"{name} {setting(value)}" for name, value in results["settings"][key].items()),
                ]
                yield f"| {contestant.title} | {' | '.join(cells)} |"
        limits = {key: value for key, value in results["ratios"].items() if key.startswith(f"{place}/gemm_limit")}
        yield from ("", *(f"- `{key.removeprefix(place + '/')}`: {value:.2f}" for key, value in limits.items()), "")
    yield from ("## From the start of the process", "")
    yield "| | first of 1 line (s) | first of 100 lines (s) | peak memory, 100 lines |"
    yield "|---|---:|---:|---:|"
    for name, one in results["first"].items():
        seconds = " | ".join(f"{value:.1f}" for value in one["seconds"].values())
        yield f"| {CONTESTANTS[name].title} | {seconds} | {one['peak'] / 2**20:,.0f} MiB |"
    yield from ("", FIRST_NOTE, "")


def setting(value: Any) -> str:
    """A setting as the page has it; JSON has turned tuples into lists."""
    return str(tuple(value) if isinstance(value, list) else value)


def cell(values: dict[str, float], key: str, form: str) -> str:
    return format(values[key], form) if key in values else ""


def latency(results: dict[str, float] | None) -> str:
    return f"{results['p50'] * 1e3:.0f}, {results['p95'] * 1e3:.0f}" if results else ""


def lengths(results: dict[str, Any]) -> Iterator[str]:
    """Microseconds per output token against the length of the outputs; translate_speed.png shows the same."""
    counts = list(dict.fromkeys(length for costs in results["lengths"].values() for length in costs))
    yield from ("## Microseconds per token, against the length of the outputs", "")
    yield "| | " + " | ".join(f"{length} tokens" for length in counts) + " |"
    yield "|---|" + "---:|" * len(counts)
    for name, costs in results["lengths"].items():
        yield f"| {CONTESTANTS[name].title} | " + " | ".join(f"{cost * 1e6:,.0f}" for cost in costs.values()) + " |"
    yield from ("", LENGTHS_NOTE, "")


def write_results(results: dict[str, Any], folder: pathlib.Path | None) -> str:
    """Write translate_speed.md and translate_speed.json into `folder`, if given. Returns the page."""
    page = as_markdown(results)
    if folder:
        write_result(folder / "translate_speed.md", page)
        write_result(folder / "translate_speed.json", json.dumps(results) + "\n")
    return page


def draw_lengths(results: dict[str, Any], folder: pathlib.Path) -> None:
    """Write translate_speed.png, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(6, 4), layout="constrained")
    draw_costs(figure, results["lengths"])
    figure.savefig(folder / "translate_speed.png", dpi=120)


def draw_costs(figure: "Figure", lengths: dict[str, dict[int, float]]) -> None:
    """Draw the seconds per token, by contestant and length of the outputs, in microseconds."""
    axes = figure.add_subplot(xlabel="tokens per output", ylabel="microseconds per token")
    for name, costs in lengths.items():
        axes.plot(list(costs), [cost * 1e6 for cost in costs.values()], marker="o", label=CONTESTANTS[name].title)
    axes.set_ylim(bottom=0)  # after the lines are drawn: before, it would fix the other end too
    axes.set_xscale("log", base=2)
    axes.legend()
