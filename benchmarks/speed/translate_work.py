"""What the translation benchmark works on: a run folder, its exports for all contestants, and lines to translate.

`python -m benchmarks.speed.translate_work FOLDER SIZE` writes `FOLDER/run` with random weights: a model that never ends
an output by itself. `python -m benchmarks.speed.translate_work FOLDER` only writes `FOLDER/weights.npz` of
`FOLDER/run`.
"""

import dataclasses
import io
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.multi30k import lines_of, text_of
from keras_transformer.config import TransformerConfig, base
from keras_transformer.ground.machine import processor_cores
from keras_transformer.ground.tokens import EOS
from keras_transformer.search.options import SearchOptions

NEVER_ENDS = -30.0  # what EOS's logit is changed by: it is then never among the best of 32,000
SIZES = {
    "base": base.replace(vocab_size=32_000),
    "small": base.replace(vocab_size=6_000, d_model=256, d_ff=1_024, num_heads=4, encoder_layers=3, decoder_layers=3),
}
SOURCE_TOKENS, TARGET_TOKENS = 24, 25  # EOS included, so 24 tokens and EOS come out
SENTENCES = 128
EXPORTS = {  # folder -> arguments of `keras-transformer export`, without RUN and --to
    **{
        f"saved_model_{precision}_beam{beam}": ["--signature", "serving_default", "--beam-size", str(beam), *extra]
        for precision, extra in (("float32", []), ("bfloat16", ["--precision", "bfloat16"]))
        for beam in (4, 1)
    },
    **{
        f"litert_{precision}_beam{beam}": [
            *("--format", "litert", "--max-source-tokens", "64", "--beam-size", str(beam)),
            *extra,
        ]
        for precision, extra in (("float32", []), ("int8", ["--quantization", "int8"]))
        for beam in (4, 1)
    },
    "ctranslate2_float32": ["--format", "ctranslate2"],
    "ctranslate2_int8": ["--format", "ctranslate2", "--quantization", "int8"],
}


@dataclasses.dataclass(frozen=True)
class Work:
    """Lines to translate with `folder / "run"`. `forced`: tokens of every output, EOS included, or None."""

    name: str
    folder: pathlib.Path
    lines: list[str]
    references: list[str] | None = None
    forced: int | None = None

    @property
    def config(self) -> TransformerConfig:
        return TransformerConfig.load(self.folder / "run" / "model.json")


def multi30k(folder: pathlib.Path, run: pathlib.Path, data: pathlib.Path, limit: int) -> Work:
    """The first `limit` lines of test_2016, text to text, with a trained run."""
    if not (run / "model.weights.h5").is_file():
        raise BenchmarkError(f"There is no trained run in {run}: name one with --run.")
    (folder / "run").symlink_to(run.absolute())
    python("-m", "benchmarks.speed.translate_work", folder)
    return Work("multi30k", folder, *(test_lines(data, language)[:limit] for language in ("en", "de")))


def test_lines(data: pathlib.Path, language: str) -> list[str]:
    return lines_of(text_of(data, f"test_2016_flickr.{language}"))


def random_work(folder: pathlib.Path, size: str, sentences: int = SENTENCES) -> Work:
    """Random weights and random words; every output has TARGET_TOKENS."""
    python("-m", "benchmarks.speed.translate_work", folder, size)
    words, rng = SIZES[size].vocab_size - 4, np.random.default_rng(1)
    numbers = rng.integers(words, size=(sentences, SOURCE_TOKENS - 1))
    lines = [" ".join(f"w{number}" for number in row) for row in numbers]
    return Work(size, folder, lines, forced=TARGET_TOKENS)


def export(work: Work, names: list[str]) -> dict[str, str]:
    """Run `keras-transformer export` for each of EXPORTS in `names`. Returns the messages of the failures, by name."""
    extra_length = (work.forced - SOURCE_TOKENS) if work.forced else SearchOptions.extra_length

    def failure(name: str) -> str | None:
        arguments = ["--no-check", "--extra-length", extra_length, *EXPORTS[name]]
        try:
            python("-m", "export", work.folder / "run", "--to", work.folder / name, *arguments)
        except BenchmarkError as error:
            return str(error)

    with ThreadPoolExecutor(processor_cores()) as pool:
        failures = dict(zip(names, pool.map(failure, names), strict=True))
    return {name: message for name, message in failures.items() if message}


def python(*arguments) -> None:
    """Run Python to its end. Raises BenchmarkError with its last line of text if it fails."""
    process = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True)
    if process.returncode:
        last = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise BenchmarkError(f"`python {' '.join(map(str, arguments[:2]))}` failed: {last}")


def write_random_run(folder: pathlib.Path, config: TransformerConfig) -> None:
    """Write a run folder with random weights, and a tokenizer whose pieces are the words w0, w1, w2 and so on."""
    import keras
    import sentencepiece

    from keras_transformer.model import Transformer
    from keras_transformer.pieces.tokenizer import SPECIAL_IDS

    keras.utils.set_random_seed(1)  # other weights may prefer PAD or BOS, which our search never writes and others do
    folder.mkdir(parents=True)
    tokenizer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(f"w{number}" for number in range(config.vocab_size - 4)),
        model_writer=tokenizer,
        model_type="word",
        vocab_size=config.vocab_size,
        minloglevel=2,
        normalization_rule_name="identity",
        **{f"{name}_id": number for name, number in SPECIAL_IDS.items()},
    )
    (folder / "tokenizer.model").write_bytes(tokenizer.getvalue())
    config.save(folder / "model.json")
    transformer = Transformer(config)
    forbid_the_end(transformer)
    transformer.save_weights(folder / "model.weights.h5")


def forbid_the_end(transformer) -> None:
    """Add NEVER_ENDS to the logit of EOS and nothing to any other, without a weight that the layers do not have.

    The last LayerNorm gives its first output the constant 1, by which only EOS's row of the embedding is not 0.
    """
    last = transformer.get_layer(f"decoder_block_{transformer.transformer_config.decoder_layers}")
    norm, embedding = last.feed_forward_residual.norm, transformer.get_layer("embedding")
    matrix, gamma, beta = (np.array(weight) for weight in (embedding.matrix, norm.gamma, norm.beta))
    matrix[:, 0], gamma[0], beta[0] = 0.0, 0.0, 1.0
    matrix[EOS, 0] = NEVER_ENDS
    embedding.matrix.assign(matrix)
    norm.gamma.assign(gamma)
    norm.beta.assign(beta)


def write_arrays(folder: pathlib.Path) -> None:
    """Write the weights of `folder / "run"` as arrays by path, for contestants without Keras."""
    from keras_transformer.runs.saved_run import load_run

    transformer, _ = load_run(folder / "run")
    np.savez(folder / "weights.npz", **{weight.path: np.array(weight) for weight in transformer.weights})


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    if sys.argv[2:]:
        write_random_run(place / "run", SIZES[sys.argv[2]])
    write_arrays(place)
