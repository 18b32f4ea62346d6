"""report.md: what was trained, on what, for how long, and how good it is, on one page that can be cited."""

import platform

from keras_transformer.config import SearchOptions, TransformerConfig
from keras_transformer.files import write_atomically
from keras_transformer.machine import processor_and_cores, versions
from keras_transformer.run_folder import RunFolder
from keras_transformer.translator import Translator, load_run
from train.config import Data as DataConfig
from train.config import FilesData, RunConfig, TrainingConfig
from train.data.corpus import skipped_sentence
from train.data.encoding import EncodedPairs, EncodedShards
from train.data.prepare import Data
from train.evaluation.bleu import Scores
from train.evaluation.cost import corpus_flops, parameter_count
from train.evaluation.selection import Selection
from train.evaluation.validation import Sample, translate_and_score
from train.loop.markdown import samples_table, table
from train.loop.progress import Progress, duration

SAMPLES = 10
PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece", "sacrebleu")


def write_report(
    config: RunConfig, folder: RunFolder, data: Data, progress: Progress, selection: Selection, devices: str
) -> None:
    """Translate the test set (the validation set if there is none) with the run folder's weights; write report.md."""
    split = data.corpus.test or data.corpus.validation
    options = SearchOptions(config.translation.beam_size, config.translation.length_penalty)
    transformer, tokenizer = load_run(folder.path)
    translator = Translator(transformer, tokenizer, options, config.translation.batch_size)
    scores, samples = translate_and_score(translator, list(split))
    sections = [
        f"# {folder.path.name}",
        f"{languages(config.data)}.",
        "## Scores\n\n" + score_lines(split.name, scores, options, selection),
        "## Training\n\n" + training_table(config.training, data, transformer.transformer_config, progress, devices),
        "## Corpus\n\n" + corpus_table(data),
        f"## Sample translations ({split.name})\n\n" + samples_table(evenly_spaced(samples, SAMPLES)),
        "## Configuration\n\n```toml\n" + config.to_toml() + "```",
    ]
    write_atomically(folder.report, "\n\n".join(sections) + "\n")


def languages(data: DataConfig) -> str:
    """ "en to de", or the first training files if the configuration names no languages: "train.en to train.de"."""
    if data.source != "files" or data.source_language != FilesData.model_fields["source_language"].default:
        return f"{data.source_language} to {data.target_language}"
    first, *others = data.train
    named = f"{first}, source to target" if isinstance(first, str) else " to ".join(first)
    return named + (f", and {len(others)} more" if others else "")


def score_lines(name: str, scores: Scores, options: SearchOptions, selection: Selection) -> str:
    """Scores of the split `name`, and the validation of the weights that were kept."""
    lines = [f"{name}, beam {options.beam_size}, length penalty {options.length_penalty}, raw text:", ""]
    lines += [f"- {line}" for line in scores.lines()]
    perplexity = selection.kept.validation.perplexity
    return "\n".join([*lines, f"- validation perplexity {perplexity:.3f} per token; {selection}"])


def training_table(
    training: TrainingConfig, data: Data, transformer_config: TransformerConfig, progress: Progress, devices: str
) -> str:
    """What training took. Epochs are updates over the batches of one epoch."""
    batches = data.batches
    flops = corpus_flops(transformer_config, data.train, progress.target_tokens) * training.passes
    packages = versions(PACKAGES)
    python = packages.pop("python")
    numbers = ", ".join(map(str, progress.skipped))
    return table(
        ("parameters", f"{parameter_count(transformer_config):,}"),
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


def corpus_table(data: Data) -> str:
    """What was trained on."""
    return table(
        ("vocabulary", f"{data.tokenizer.vocab_size:,} pieces, joint"),
        ("training pairs", counts(data.train)),
        ("validation pairs", counts(data.validation)),
        ("padding", f"{100 * data.batches.padding.total:.2f} per cent of the positions of packed rows"),
    )


def counts(pairs: EncodedPairs | EncodedShards) -> str:
    """Pairs, tokens of each side, and what was skipped."""
    return (
        f"{len(pairs):,}; {pairs.source_tokens:,} source and {pairs.target_tokens:,} target tokens; "
        f"skipped: {skipped_sentence(pairs.skipped)}"
    )


def evenly_spaced(samples: list[Sample], count: int) -> list[Sample]:
    """`count` of the samples from beginning to end, or all if there are fewer."""
    return samples[:: max(1, len(samples) // count)][:count]
