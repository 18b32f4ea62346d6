"""`keras-transformer shortlist RUN`: build the lexical shortlist of a run, with which it translates faster."""

import collections
import itertools
import logging
import pathlib
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.options import RunName
from keras_transformer.commands.runs import opened
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.files import unpacked_lines
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import ON
from keras_transformer.translation.outputs import outputs_of

if TYPE_CHECKING:  # they import NumPy and SentencePiece
    from keras_transformer.pieces.tokenizer import Tokenizer
    from keras_transformer.shortlist.lexicon import Lexicon

log = logging.getLogger("keras_transformer")
app = command_app()

MOST_PAIRS = 200_000  # of which probabilities are learned
LONGEST = 200  # pieces of a side; a pair with more is left out
BEST, FREQUENT = 100, 100  # as in Marian
Ids = list[list[int]]


@app.command()
def shortlist(
    run: RunName,
    source: Annotated[
        list[pathlib.Path],
        typer.Option(
            metavar="FILE",
            default_factory=list,
            help="Sentences, one per line, gzip-compressed or not; may be repeated.",
            show_default="none",
        ),
    ],
    target: Annotated[
        list[pathlib.Path],
        typer.Option(
            metavar="FILE",
            default_factory=list,
            help="Their translations, a file for each of --source.",
            show_default="none",
        ),
    ],
    lexicon: Annotated[
        pathlib.Path | None,
        typer.Option(
            metavar="FILE",
            help="In place of sentence pairs: a lex.s2t of Marian, `target source probability` per line.",
            show_default="none",
        ),
    ] = None,
    best: Annotated[int, typer.Option(min=1, help="The most probable translations of each piece.")] = BEST,
    frequent: Annotated[
        int, typer.Option(min=0, help="The most frequent target pieces, which every sentence may use.")
    ] = FREQUENT,
    default: Annotated[
        bool, typer.Option("--default", help="Let every command search with it, unless it has --shortlist off.")
    ] = False,
):
    """Build the shortlist with which a run translates faster.

    Writes RUN/shortlist.npz: for each source piece the target pieces that may translate it, by the probabilities of IBM
    Model 1, learned from sentence pairs, such as the training text. Of more than 200,000 pairs, as many at equal
    distances are read. `translate --shortlist on`, and all commands that search or export, then consider the pieces
    that it has for a sentence alone.
    """
    with exit_codes():
        check_files(source, target, lexicon)
        folder = RunFolder(opened(run))
        folder.check_has(folder.model, folder.tokenizer)
        folder.check_tokenizer()
        outputs_of(folder.path).check_text("A shortlist is for text: leave it out.")
        began = time.monotonic()
        from keras_transformer.pieces.pair_tokenizer import open_tokenizer
        from keras_transformer.shortlist.shortlist import build, sum_of

        tokenizer = open_tokenizer(folder.tokenizer)
        probabilities, pieces = translations_in(lexicon, source, target, tokenizer)
        built = build(probabilities, pieces[:frequent], best, tokenizer.vocab_size, sum_of(tokenizer))
        built.save(folder.shortlist)
        if default:
            inference = folder.inference()
            inference._replace(search={**inference.search, "shortlist": ON}).save(folder.inference_file)
        log.info("%s: written in %.1f seconds", folder.shortlist, time.monotonic() - began)
        print(folder.shortlist)


def check_files(sources: list[pathlib.Path], targets: list[pathlib.Path], lexicon: pathlib.Path | None) -> None:
    """Raises ConfigError unless there are pairs of files, or a lexicon without --source."""
    if lexicon is not None and sources:
        raise ConfigError("--lexicon has probabilities, and --source would learn them: give one of them.")
    if lexicon is None and not sources:
        raise ConfigError("There is no text: give --source FILE and --target FILE, or --lexicon FILE.")
    if lexicon is None:
        check_pairs(sources, targets)


def check_pairs(sources: list[pathlib.Path], targets: list[pathlib.Path]) -> None:
    """Raises ConfigError unless there is a file of targets for each of sources."""
    if len(sources) != len(targets):
        raise ConfigError(
            f"--source is given {len(sources)} times and --target {len(targets)} times: give a pair of files each time."
        )


def translations_in(
    lexicon: pathlib.Path | None, sources: list[pathlib.Path], targets: list[pathlib.Path], tokenizer: "Tokenizer"
) -> tuple["Lexicon", list[int]]:
    """Return how pieces are translated, and the pieces of the target side, the most frequent first.

    Without target text they are in the order of the vocabulary, in which frequent pieces come first.
    """
    from keras_transformer.ground.tokens import OWN_PIECE
    from keras_transformer.shortlist.lexicon import learned_lexicon, read_lexicon

    if lexicon is None:
        source_ids, target_ids = encoded_pairs(sources, targets, tokenizer)
        log.info("learning from %d pairs of sentences", len(source_ids))
        return learned_lexicon(source_ids, target_ids, tokenizer.vocab_size), by_frequency(target_ids)
    ids = {piece: number for number, piece in enumerate(tokenizer.pieces())}
    read, unknown = read_lexicon(lexicon, ids)
    if unknown:
        log.warning("%s has %d lines with a word that is no piece of this run; they are left out", lexicon, unknown)
    if targets:
        lines = itertools.chain.from_iterable(map(unpacked_lines, targets))
        return read, by_frequency(tokenizer.encode_target_batch(lines))
    return read, [number for piece, number in ids.items() if not OWN_PIECE.fullmatch(piece)]


def by_frequency(sentences: Iterable[list[int]]) -> list[int]:
    """Return the pieces of sentences, the most frequent first; of equally frequent ones, the first by number."""
    counts = collections.Counter(itertools.chain.from_iterable(sentences))
    return sorted(counts, key=lambda piece: (-counts[piece], piece))


def texts_of(sources: list[pathlib.Path], targets: list[pathlib.Path]) -> tuple[list[str], list[str]]:
    """Return the lines of both sides. Raises InputError if two files have not as many."""
    texts: tuple[list[str], list[str]] = [], []
    for files in zip(sources, targets, strict=True):
        sides = [list(unpacked_lines(file)) for file in files]
        if len(sides[0]) != len(sides[1]):
            raise InputError(
                f"{files[0]} has {len(sides[0]):,} lines and {files[1]} has {len(sides[1]):,}: a pair is one line of "
                "each."
            )
        for text, side in zip(texts, sides, strict=True):
            text += side
    return texts


def encoded_pairs(sources: list[pathlib.Path], targets: list[pathlib.Path], tokenizer: "Tokenizer") -> tuple[Ids, Ids]:
    """Return the ids of both sides of at most MOST_PAIRS pairs, at equal distances.

    Raises InputError if two files have not as many lines, or if there is no pair with text on both sides.
    """
    texts = texts_of(sources, targets)
    step = -(-len(texts[0]) // MOST_PAIRS) or 1
    source_ids, target_ids = tokenizer.encode_batch(texts[0][::step]), tokenizer.encode_target_batch(texts[1][::step])
    pairs = [
        pair for pair in zip(source_ids, target_ids, strict=True) if all(0 < len(side) <= LONGEST for side in pair)
    ]
    if not pairs:
        raise InputError(f"{sources[0]} and {targets[0]} have no pair of sentences: give files with one per line.")
    return [source for source, _ in pairs], [target for _, target in pairs]


main = program(app, is_long=True)
