"""shortlist.npz: which pieces a sentence may use, its file, and the command that builds it."""

import numpy as np
import pytest

from keras_transformer.commands import shortlist as command
from keras_transformer.commands.translate import app as translate
from keras_transformer.config import ConfigError
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.inference import Inference
from keras_transformer.parsing.balanced import check_rules
from keras_transformer.run_folder import RunFolder
from keras_transformer.shortlist.lexicon import Lexicon
from keras_transformer.shortlist.shortlist import Shortlist, build, shortlist_of
from keras_transformer.tokens import BOS, EOS, PAD, UNK
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import SENTENCES, random_run

SPECIAL = {PAD, UNK, BOS, EOS}
PIECES = 30
ON = SearchOptions(shortlist="on")


def random_lexicon(seed=0, entries=200):
    """Some probabilities are the same, so that only the order of the vocabulary decides."""
    generator = np.random.default_rng(seed)
    pairs = np.array(sorted({tuple(generator.integers(4, PIECES, 2)) for _ in range(entries)}))
    pairs = generator.permutation(pairs)
    return Lexicon(pairs[:, 0], pairs[:, 1], generator.integers(1, 5, len(pairs)) / 5)


def by_brute_force(lexicon, source_ids, frequent, most):
    """The pieces of a sentence, in plain Python."""
    entries = list(zip(*(leaf.tolist() for leaf in lexicon), strict=True))
    pieces = SPECIAL | set(frequent) | set(source_ids)
    for piece in source_ids:
        best = sorted((-probability, target) for source, target, probability in entries if source == piece)
        pieces |= {target for _, target in best[:most]}
    return pieces


@pytest.mark.parametrize("most", [1, 3, 100])
def test_a_sentence_may_use_the_best_translations_of_its_pieces_the_pieces_and_the_frequent_ones(most):
    lexicon, frequent = random_lexicon(), [7, 20, 8]
    shortlist = build(lexicon, frequent, most, PIECES, "")
    shortlist.check()
    assert shortlist.vocab_size == PIECES
    for source_ids in ([], [4], [5, 6, 29, EOS], list(range(4, 30))):
        assert shortlist.of(source_ids) == by_brute_force(lexicon, source_ids, frequent, most)
    table = shortlist.table()
    assert not table[PAD].any()
    for piece in range(PAD + 1, PIECES):
        assert table[piece][table[piece] != PAD].tolist() == [one for one in shortlist.list_of(piece) if one != PAD]


def same(some, other):
    return all(np.array_equal(*pair) for pair in zip(some, other, strict=True))


def test_what_is_written_is_read(tmp_path):
    shortlist = build(random_lexicon(), [7, 20], 3, PIECES, "ab12")
    shortlist.save(tmp_path / "shortlist.npz")
    assert same(Shortlist.load(tmp_path / "shortlist.npz"), shortlist)


def damaged():
    good = build(random_lexicon(), [7, 20], 3, PIECES, "")
    yield "int64", good._replace(pieces=good.pieces.astype(np.int64))
    yield "rise", good._replace(offsets=good.offsets[::-1].copy())
    yield "rise", good._replace(offsets=good.offsets[:0])
    yield "there are", good._replace(pieces=good.pieces[1:])
    yield "from 0 to 29", good._replace(pieces=good.pieces + 29)
    yield "always has", good._replace(always=good.always - 1)
    yield "lacks a special piece", good._replace(always=good.always[1:])


@pytest.mark.parametrize(
    ("part", "shortlist"), list(damaged()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_arrays_that_are_no_shortlist_are_one_sentence(part, shortlist, tmp_path):
    shortlist.save(tmp_path / "shortlist.npz")
    with pytest.raises(ConfigError, match=rf"shortlist.npz is damaged: .*{part}.*\. Build it again"):
        Shortlist.load(tmp_path / "shortlist.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", "half"])
def test_a_damaged_file_is_one_sentence(content, tmp_path):
    path = tmp_path / "shortlist.npz"
    build(random_lexicon(), [7], 3, PIECES, "").save(path)
    path.write_bytes(path.read_bytes()[:200] if content == "half" else content)
    with pytest.raises(ConfigError, match="shortlist.npz is damaged: "):
        Shortlist.load(path)


# a run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a shortlist of its own check lines."""
    folder = random_run(tmp_path_factory.mktemp("runs") / "run")
    lines = folder.parent / "lines.txt"
    lines.write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    result = invoke(command.app, folder, "--source", lines, "--target", lines, "--best", 3, "--frequent", 5)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{folder / 'shortlist.npz'}\n"
    return folder


def test_a_piece_that_is_always_copied_is_in_its_list_and_the_frequent_pieces_are_in_every_one(run):
    from keras_transformer.tokenizer import Tokenizer

    shortlist = shortlist_of(RunFolder(run), ON)
    tokenizer = Tokenizer(run / "tokenizer.model")
    ids = [tokenizer.encode(line) for line in SENTENCES]
    assert len(shortlist.always) == len(SPECIAL) + 5 and np.diff(shortlist.offsets).max() <= 4
    counts = np.bincount(np.concatenate(ids), minlength=tokenizer.vocab_size)
    assert sorted(counts[shortlist.always[4:]], reverse=True) == sorted(counts, reverse=True)[:5]
    assert all(set(line) <= shortlist.of(line) for line in ids)


def test_a_run_without_a_shortlist_and_one_of_another_vocabulary_are_one_sentence(run, tmp_path):
    other = random_run(tmp_path / "other")
    assert shortlist_of(RunFolder(other), SearchOptions()) is None
    assert_one_sentence(invoke(translate, other, "--shortlist", "on", stdin="a\n"), "other has no shortlist.npz")
    build(random_lexicon(), [7], 3, PIECES, "").save(other / "shortlist.npz")
    assert_one_sentence(invoke(translate, other, "--shortlist", "on", stdin="a\n"), "over 30 pieces", "has 330")
    shortlist_of(RunFolder(run), ON)._replace(tokenizer="00").save(other / "shortlist.npz")
    assert_one_sentence(invoke(translate, other, "--shortlist", "on", stdin="a\n"), "those of another tokenizer")


def test_the_default_of_a_run_is_written_only_if_asked_for(run, tmp_path):
    other = random_run(tmp_path / "other")
    Inference(search={"beam_size": 3}, longest_source=9).save(other / "inference.json")
    lexicon = tmp_path / "lex.s2t"
    lexicon.write_text("a a 0.5\n", encoding="utf-8")
    assert invoke(command.app, other, "--lexicon", lexicon).exit_code == 0
    assert RunFolder(other).inference().search == {"beam_size": 3}
    assert invoke(command.app, other, "--lexicon", lexicon, "--default").exit_code == 0
    assert RunFolder(other).inference() == Inference(search={"beam_size": 3, "shortlist": "on"}, longest_source=9)


def test_files_that_do_not_fit_are_one_sentence(run, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("a\n")
    two.write_text("a\nb\n")
    assert_one_sentence(invoke(command.app, run), "--source FILE", "--lexicon FILE")
    assert_one_sentence(invoke(command.app, run, "--source", one), "--source is given 1 times and --target 0 times")
    assert_one_sentence(invoke(command.app, run, "--source", one, "--target", two), "has 1 lines", "has 2:")
    assert_one_sentence(invoke(command.app, run, "--source", one, "--lexicon", two), "give one of them")
    one.write_text("\n\n")
    assert_one_sentence(invoke(command.app, run, "--source", one, "--target", one), "no pair of sentences")
    assert_one_sentence(invoke(command.app, run, "--lexicon", tmp_path / "none"), "none")


def test_a_search_for_trees_refuses_a_shortlist():
    with pytest.raises(ConfigError, match="shortlist is on .* contradicts a search that writes only trees"):
        check_rules(ON)
