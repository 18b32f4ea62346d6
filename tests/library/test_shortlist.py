"""shortlist.npz: which pieces a sentence may use, its file, and the command that builds it."""

import functools
import hashlib
import shutil
import types

import numpy as np
import pytest

from keras_transformer.commands import shortlist as command
from keras_transformer.commands.translate import app as translate
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.parsing.balanced import check_rules
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.shortlist.lexicon import Lexicon
from keras_transformer.shortlist.shortlist import Shortlist, build, shortlist_of
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
    yield "pieces is int64 with 1 axes", good._replace(pieces=good.pieces.astype(np.int64))
    yield "always is int32 with 2 axes", good._replace(always=good.always[None])
    yield "rise from 0", good._replace(offsets=good.offsets + 1, pieces=np.append(good.pieces, good.pieces[:1]))
    yield "rise", good._replace(offsets=good.offsets[::-1].copy())
    yield "rise", good._replace(offsets=good.offsets[:0])
    entries = len(good.pieces)
    yield f"end at {entries}, and there are {entries - 1} ", good._replace(pieces=good.pieces[1:])
    yield "pieces has .* from 0 to 29", good._replace(pieces=np.where(good.pieces == 29, PIECES, good.pieces))
    yield "always has", good._replace(always=good.always - 1)
    for special in SPECIAL:
        yield "lacks a special piece", good._replace(always=good.always[good.always != special])


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


def test_a_piece_may_have_an_empty_list_and_so_may_all():
    empty = Shortlist(np.zeros(PIECES + 1, np.int32), np.zeros(0, np.int32), np.arange(4, dtype=np.int32), "")
    empty.check()
    assert empty.of([5]) == SPECIAL and empty.table().shape == (PIECES, 1) and not empty.table().any()


# the command


class Letters:
    """A tokenizer whose pieces are letters; on the target side they are of other numbers."""

    vocab_size = PIECES

    def encode_batch(self, lines):
        return [[ord(letter) - ord("a") + 4 for letter in line] for line in lines]

    def encode_target_batch(self, lines):
        return [[piece + 10 for piece in ids] for ids in self.encode_batch(lines)]

    def pieces(self):
        return ["<pad>", "<unk>", "<s>", "</s>", "<0x0A>", "b", "a"]


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_pairs_are_read_at_equal_distances_up_to_their_longest_and_each_side_by_its_own_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "MOST_PAIRS", 3)
    monkeypatch.setattr(command, "LONGEST", 2)
    source, target = written(tmp_path / "s", "a\nb\nc\nd\n"), written(tmp_path / "t", "ab\nb\nac\nd\n")
    assert command.encoded_pairs([source], [target], Letters()) == ([[4], [6]], [[14, 15], [14, 16]])
    monkeypatch.setattr(command, "MOST_PAIRS", 4)
    long, short = written(tmp_path / "l", "abc\n\na\nb\n"), written(tmp_path / "o", "a\nb\nab\nabc\n")
    assert command.encoded_pairs([long], [short], Letters()) == ([[4]], [[14, 15]])
    both = command.encoded_pairs([source, long], [target, short], Letters())
    assert both == ([[4], [6], [4]], [[14, 15], [14, 16], [14, 15]])  # of 8 pairs, every second


def test_the_frequent_pieces_are_those_of_the_target_or_in_the_order_of_the_vocabulary(tmp_path, caplog):
    source, target = written(tmp_path / "s", "aa\nab\n"), written(tmp_path / "t", "cb\nbcd\n")
    lexicon, frequent = command.translations_in(None, [source], [target], Letters())
    assert frequent == [15, 16, 17] and set(lexicon.targets) == {15, 16, 17} and set(lexicon.sources) == {4, 5}
    table = written(tmp_path / "lex", "a b 0.5\nx a 0.5\na y 0.5\n")
    assert command.translations_in(table, [], [], Letters())[1] == [5, 6]
    assert caplog.messages == [f"{table} has 2 lines with a word that is no piece of this run; they are left out"]
    lexicon, frequent = command.translations_in(table, [], [target], Letters())
    assert frequent == [15, 16, 17] and (lexicon.sources.tolist(), lexicon.targets.tolist()) == ([5], [6])


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
    from keras_transformer.pieces.tokenizer import Tokenizer

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


def test_a_run_that_writes_trees_or_lacks_its_tokenizer_or_has_another_gets_no_shortlist(run, tmp_path):
    lines = written(tmp_path / "lines.txt", "a\n")
    build_it = functools.partial(invoke, command.app, "--source", lines, "--target", lines)
    other = RunFolder(shutil.copytree(run, tmp_path / "other"))
    Inference("trees").save(other.inference_file)
    assert_one_sentence(build_it(other.path), "writes trees, not text. A shortlist is for text")
    Inference().save(other.inference_file)
    other.keep_tokenizer_sum()
    other.tokenizer.write_bytes(other.tokenizer.read_bytes() + b"\n")
    assert_one_sentence(build_it(other.path), "is not the tokenizer that the weights were trained with")
    other.tokenizer.unlink()
    assert_one_sentence(build_it(other.path), "has no tokenizer.model")
    assert build_it(run, "--best", 0).exit_code == 2


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


def test_a_file_that_is_not_there_and_one_of_another_tokenizer_are_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.npz cannot be read: No such file or directory\.$"):
        Shortlist.load(tmp_path / "none.npz")
    tokenizer = types.SimpleNamespace(vocab_size=PIECES, model_bytes=b"pieces")
    shortlist = build(random_lexicon(), [7], 3, PIECES, hashlib.sha256(b"pieces").hexdigest())
    shortlist.check_tokenizer(tokenizer)
    for other, why in (
        ({"vocab_size": 40}, f"it is over {PIECES} pieces, and the tokenizer has 40"),
        ({"model_bytes": b"other"}, "its pieces are those of another tokenizer"),
    ):
        with pytest.raises(ConfigError, match=f"not of this run: {why}"):
            shortlist.check_tokenizer(types.SimpleNamespace(**vars(tokenizer) | other))


@pytest.mark.parametrize("options", ["x", 4, None, {}])
def test_options_that_are_none_are_refused_before_a_shortlist_is_looked_for(tmp_path, options):
    with pytest.raises(TypeError, match="options must be SearchOptions"):
        shortlist_of(RunFolder(tmp_path), options)
