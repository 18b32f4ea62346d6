"""`python -m benchmarks.speed.shortlist WORK`: translating with a lexical shortlist and without one.

WORK is multi30k, a trained run on test_2016 with the shortlist of its training text: the table of speed, the share of
translations that stay the same, and BLEU. Or it is a size, with random weights and a random shortlist: 6000, 10000, or
opus_mt, the shape of OPUS-MT's models with 58,101 pieces, which takes 8 GB.

The table has milliseconds of processor time per sentence, beam 4, beside CTranslate2 without and with the same lists,
as its vmap. All engines, without and with the shortlist, take turns, and a cell is the median of them.
"""

import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import typer

from benchmarks.multi30k import lines_of, text_of
from benchmarks.speed.decoder_layers import random_lines, take_turns
from benchmarks.speed.translate_work import SOURCE_TOKENS, TARGET_TOKENS, python, test_lines, write_random_run
from keras_transformer.config import TransformerConfig, base, tiny
from keras_transformer.ground.machine import processor_and_cores
from keras_transformer.search.options import OFF, ON, SearchOptions

SIZES = {
    "6000": tiny.replace(vocab_size=6_000, d_model=256, d_ff=512, encoder_layers=3, decoder_layers=3),
    "10000": tiny.replace(vocab_size=10_000, d_model=256, d_ff=512),
    "opus_mt": base.replace(vocab_size=58_101, activation="swish", attention_bias=True, logits_bias=True),
}
BEST, FREQUENT = 100, 100  # of the random shortlist, as the command has them
ZIPF = 1.4, 10  # exponent and shift of the chances of its pieces, so that lists overlap as those of real text do
BATCHES = {"one a call": 1, "many a call": 32}  # sentences of a batch
FORMATS = {
    "saved_model": ["--signature", "serving_default"],
    "litert": ["--format", "litert"],
    "litert_int8": ["--format", "litert", "--quantization", "int8"],
    "ctranslate2": ["--format", "ctranslate2"],
    "ctranslate2_int8": ["--format", "ctranslate2", "--quantization", "int8"],
}
ENGINES = ("translator", *FORMATS)
PEERS = {True: "ctranslate2_int8", False: "ctranslate2"}  # by whether an engine has weights of 8 bits
Translate = Callable[[list[str]], list[Any]]


class Task(NamedTuple):
    """What is translated: lines, by folder / "run". longest: tokens of a source that an export takes."""

    folder: pathlib.Path
    lines: list[str]
    extra_length: int
    longest: int


def main(
    work: Annotated[Literal["multi30k", *SIZES], typer.Argument(help="What is translated.")],
    run: Annotated[pathlib.Path, typer.Option(help="Of multi30k: a trained run.")] = pathlib.Path(
        "runs/multi30k_en_de"
    ),
    data: Annotated[pathlib.Path, typer.Option(help="Of multi30k: the text.")] = pathlib.Path("data/multi30k"),
    engine: Annotated[list[str] | None, typer.Option(help="One of ENGINES; all if left out.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 5,
    sentences: Annotated[int, typer.Option(min=1, help="Per turn.")] = 64,
) -> None:
    from keras_transformer.translation.parallel import tune_for_translation

    tune_for_translation()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        if work == "multi30k":
            texts = prepare_multi30k(folder, run, data)
            print(quality(folder / "run", *texts), flush=True)
            task = Task(folder, texts[0][:sentences], SearchOptions.extra_length, 40)
        else:
            lines = prepare_random(folder, SIZES[work], sentences)
            task = Task(folder, lines, TARGET_TOKENS - SOURCE_TOKENS, SOURCE_TOKENS)
        print(f"{processor_and_cores()}; {work}\n\n{HEAD}", flush=True)
        for batch_size in BATCHES:
            for row in rows(engine or ENGINES, task, batch_size, rounds):
                print(row, flush=True)


def prepare_multi30k(folder: pathlib.Path, run: pathlib.Path, data: pathlib.Path) -> tuple[list[str], list[str]]:
    """Copy the run, build its shortlist from its training text, and return both sides of test_2016."""
    shutil.copytree(run, folder / "run", ignore=shutil.ignore_patterns("checkpoints", "tensorboard", "shortlist.npz"))
    for side in ("en", "de"):
        text = "".join(f"{line}\n" for line in lines_of(text_of(data, f"train.{side}")))
        (folder / f"train.{side}").write_text(text, encoding="utf-8")
    files = ["--source", folder / "train.en", "--target", folder / "train.de"]
    python("-m", "keras_transformer", "shortlist", folder / "run", *files)
    return test_lines(data, "en"), test_lines(data, "de")


def prepare_random(folder: pathlib.Path, config: TransformerConfig, count: int) -> list[str]:
    """Write a run of random weights with a random shortlist, and return random lines."""
    write_random_run(folder / "run", config)
    write_random_shortlist(folder / "run")
    return random_lines(config, count)


def write_random_shortlist(folder: pathlib.Path) -> None:
    """Write into a run folder a shortlist in which every piece has BEST random ones, some of them often."""
    from keras_transformer.pieces.pair_tokenizer import open_tokenizer
    from keras_transformer.runs.run_folder import RunFolder
    from keras_transformer.shortlist.lexicon import Lexicon
    from keras_transformer.shortlist.shortlist import build, sum_of

    run = RunFolder(folder)
    tokenizer = open_tokenizer(run.tokenizer)
    pieces, (exponent, shift) = len(tokenizer.pieces()), ZIPF
    chances = np.cumsum((np.arange(pieces - 4) + shift) ** -exponent)
    targets = 4 + np.searchsorted(chances[:-1] / chances[-1], np.random.default_rng(2).random((pieces, BEST)))
    keys = np.unique(np.arange(pieces)[:, np.newaxis] * pieces + targets)
    lexicon = Lexicon(*np.divmod(keys, pieces), np.ones(len(keys)))
    build(lexicon, np.arange(4, 4 + FREQUENT), BEST, pieces, sum_of(tokenizer)).save(run.shortlist)


def quality(run: pathlib.Path, sources: list[str], references: list[str]) -> str:
    """Return how many translations of a text are the same with the shortlist, and BLEU."""
    import sacrebleu

    from keras_transformer.translation.translator import Translator

    texts = {
        shortlist: [one.text for one in Translator.load(run, SearchOptions(shortlist=shortlist)).translate(sources)]
        for shortlist in (OFF, ON)
    }
    bleu = {name: sacrebleu.corpus_bleu(text, [references]).score for name, text in texts.items()}
    same = np.mean([some == other for some, other in zip(*texts.values(), strict=True)])
    return f"the same translation: {same:.1%}; BLEU {bleu[OFF]:.2f} without, {bleu[ON]:.2f} with the shortlist"


HEAD = (
    "| engine | sentences | without, ms | with, ms | without : with | CTranslate2 : with | its vmap : with |\n"
    "|---|---|---:|---:|---:|---:|---:|"
)


def rows(engines: Sequence[str], task: Task, batch: str, rounds: int) -> Iterator[str]:
    """Let engines take turns without and with the shortlist, and yield their rows of the table."""
    works = {}
    for engine in engines:
        for shortlist in (OFF, ON):
            translate = opened(engine, task, shortlist, BATCHES[batch])
            works[engine, shortlist] = translated(translate, task.lines, BATCHES[batch]), len(task.lines)
    seconds = {key: used for key, (_, used) in take_turns(works, rounds).items()}
    for engine in engines:
        yield row(engine, batch, seconds)


def translated(translate: Translate, lines: list[str], batch_size: int) -> Callable[[], None]:
    """Return a function that translates the lines, one a call if the batches are of one."""

    def work() -> None:
        for start in range(0, len(lines), 1 if batch_size == 1 else len(lines)):
            translate(lines[start : start + 1] if batch_size == 1 else lines)

    return work


def opened(engine: str, task: Task, shortlist: str, batch_size: int) -> Translate:
    """Return the function `translate` of an engine; an export is written if it is not there yet."""
    if engine == "translator":
        from keras_transformer.translation.translator import Translator

        options = SearchOptions(extra_length=task.extra_length, shortlist=shortlist)
        return Translator.load(task.folder / "run", options, batch_size=batch_size).translate
    place = task.folder / f"{engine}_{shortlist}"
    if not place.exists():
        search = ["--extra-length", task.extra_length, "--shortlist", shortlist, "--max-source-tokens", task.longest]
        python("-m", "export", task.folder / "run", "--to", place, "--no-check", *search, *FORMATS[engine])
    if engine.startswith("ctranslate2"):
        return opened_ctranslate2(place, task.longest + task.extra_length, shortlist, batch_size)
    if engine == "saved_model":
        from keras_transformer.translation.exported import ExportedTranslator

        return ExportedTranslator(place, batch_size).translate
    from keras_transformer.lite.translator import LiteTranslator

    return LiteTranslator(place, threads=1).translate


def opened_ctranslate2(place: pathlib.Path, longest: int, shortlist: str, batch_size: int) -> Translate:
    """Return the function `translate` of CTranslate2, with its vmap if the shortlist is on; longest: of outputs."""
    import ctranslate2
    import sentencepiece

    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(place / "tokenizer.model"))
    translator = ctranslate2.Translator(str(place), inter_threads=1, intra_threads=1)

    def translate(lines: list[str]) -> list[Any]:
        return translator.translate_batch(
            tokenizer.encode(lines, out_type=str),
            max_batch_size=batch_size,
            beam_size=SearchOptions.beam_size,
            length_penalty=SearchOptions.length_penalty,
            max_decoding_length=longest,
            use_vmap=shortlist == ON,
        )

    return translate


def row(engine: str, batch: str, seconds: Mapping[tuple[str, str], float]) -> str:
    """Return a row of the table: how many times faster an engine with the shortlist is than what else was measured."""
    with_it, peer = seconds[engine, ON], PEERS[engine.endswith("int8")]
    others = [seconds.get(key) for key in ((engine, OFF), (peer, OFF), (peer, ON))]
    ratios = " | ".join("" if other is None else f"{other / with_it:.2f}" for other in others)
    return f"| {engine} | {batch} | {1e3 * seconds[engine, OFF]:.2f} | {1e3 * with_it:.2f} | {ratios} |"


if __name__ == "__main__":
    typer.run(main)
