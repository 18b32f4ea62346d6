"""report.md: what was trained, on what, for how long, and how good it is, in one page that can be cited."""

import platform

from keras_transformer.decoding import SearchOptions
from keras_transformer.translator import Translator, load_run
from train.data.corpus import skipped_sentence
from train.evaluation.bleu import score
from train.evaluation.cost import corpus_flops
from train.evaluation.machine import processor_and_cores, versions
from train.evaluation.validation import Sample
from train.loop.markdown import samples_table, table
from train.loop.progress import duration

SAMPLES = 10
PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece", "sacrebleu")


def write_report(config, folder, data, transformer, progress, selection, devices):
    """Translate the test set (validation, where there is none) with what was kept, score it, write it all down."""
    split = data.corpus.test or data.corpus.validation
    pairs = list(split)
    options = SearchOptions(config.translation.beam_size, config.translation.length_penalty)
    translator = Translator(*load_run(folder.path), options, config.translation.batch_size, xla=config.training.xla)
    texts = [translation.text for translation in translator.translate([source for source, _ in pairs])]
    scores = score(texts, [target for _, target in pairs])
    samples = [Sample(*pair, text) for pair, text in zip(pairs, texts, strict=True)][:: max(1, len(pairs) // SAMPLES)]
    sections = [
        f"# {folder.path.name}",
        f"{data.corpus.source_language} to {data.corpus.target_language}.",
        "## Scores\n\n" + score_lines(split.name, scores, options, selection),
        "## Training\n\n" + training_table(config, data, transformer, progress, devices),
        "## Corpus\n\n" + corpus_table(data),
        f"## Sample translations ({split.name})\n\n" + samples_table(samples[:SAMPLES]),
        "## Configuration\n\n```toml\n" + config.to_toml() + "```",
    ]
    folder.report.write_text("\n\n".join(sections) + "\n", encoding="utf-8")


def score_lines(name, scores, options, selection):
    lines = [f"{name}, beam {options.beam_size}, length penalty {options.length_penalty}, raw text:", ""]
    lines += [f"- {line}" for line in scores.lines()]
    return "\n".join(
        [*lines, f"- validation perplexity {selection.kept.validation.perplexity:.3f} per token; {selection}"]
    )


def training_table(config, data, transformer, progress, devices):
    batches = data.batches
    flops = corpus_flops(transformer.transformer_config, data.train, progress.target_tokens)
    packages = versions(PACKAGES)
    python = packages.pop("python")
    numbers = ", ".join(map(str, progress.skipped))
    return table(
        ("parameters", f"{transformer.count_params():,}"),
        ("updates", f"{progress.step:,}, of {batches.rows_per_batch} rows of {batches.row_length} positions"),
        ("epochs", f"{progress.step / batches.steps_per_epoch:.1f}"),
        ("left out after divergence", f"{len(progress.skipped)} batches" + (f": {numbers}" if numbers else "")),
        ("target tokens", f"{progress.target_tokens:,.0f}"),
        ("time", f"{duration(progress.seconds)}, validation included"),
        ("training FLOPs", f"{flops:.2e}, estimated from the shapes of the matrix products at mean sentence length"),
        ("devices", f"{devices}, {config.training.precision}, XLA {'on' if config.training.xla else 'off'}"),
        ("machine", f"{platform.machine()}, {processor_and_cores()}, Python {python}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in packages.items())),
    )


def corpus_table(data):
    return table(
        ("vocabulary", f"{data.tokenizer.vocab_size:,} pieces, joint"),
        ("training pairs", counts(data.train)),
        ("validation pairs", counts(data.validation)),
        ("padding", f"{100 * data.batches.padding:.2f} per cent of the positions of packed rows"),
    )


def counts(pairs):
    return (
        f"{len(pairs):,}; {pairs.source_tokens:,} source and {pairs.target_tokens:,} target tokens; "
        f"skipped: {skipped_sentence(pairs.skipped)}"
    )
