"""The tokenizer of a run: which text it is learned from, and what is found in a run folder."""

import pathlib

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces import tokenizer as tokenizers
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError
from keras_transformer.runs.run_folder import RunFolder
from tests.support.segmentation import drawn_by
from tests.support.wire import Wire
from train.config.tokenizer import TokenizerConfig
from train.data.corpus import Corpus, Split
from train.data.vocabulary import evenly_spaced, learn_tokenizer, prepare_tokenizer, share_tokenizer, tokenizer_on_trial
from train.workers.tf_config import Worker
from train.workers.workers import Workers

TRAINED = {}  # from text and options to the content of a tokenizer


def train_once(texts, path, *how, **named):
    """`train_tokenizer`, which takes most of the time here; the same one is trained once."""
    texts = list(texts)
    key = repr((texts, how, sorted(named.items())))
    if key not in TRAINED:
        tokenizers.train_tokenizer(texts, path, *how, **named)
        TRAINED[key] = pathlib.Path(path).read_bytes()
    pathlib.Path(path).write_bytes(TRAINED[key])


@pytest.fixture(autouse=True)
def trained_once(monkeypatch):
    monkeypatch.setattr("train.data.vocabulary.train_tokenizer", train_once)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17, 1_000])
def test_a_sample_has_equal_distances_from_beginning_to_end(count):
    kept, distance = evenly_spaced(iter(range(count)), limit=8)
    assert kept == list(range(0, count, distance))
    assert len(kept) == count if distance == 1 else 4 < len(kept) <= 8


def one_split():
    return [Split("data.train", lambda: iter([("source word", "Zielwort")] * 9))]


def test_a_tokenizer_is_learned_from_both_sides_of_all_splits(tmp_path):
    second = Split("data.train", lambda: iter([("third", "vierter")] * 9))
    learn_tokenizer(TokenizerConfig(vocab_size=290), [*one_split(), second], tmp_path / "model")
    tokenizer = Tokenizer(tmp_path / "model")
    characters = set("".join(tokenizer.decode([piece]) for piece in range(260, tokenizer.vocab_size)))
    assert set("sourceword" + "Zielwort" + "third" + "vierter") <= characters


def test_the_configured_model_is_copied_and_needs_no_text(tmp_path):
    train_once(["some other words"], tmp_path / "given.model", 275)
    config = TokenizerConfig(model=str(tmp_path / "given.model"))
    tokenizer = prepare_tokenizer(config, [], tmp_path / "tokenizer.model")
    assert (tmp_path / "tokenizer.model").read_bytes() == (tmp_path / "given.model").read_bytes()
    assert tokenizer.vocab_size == 275


@pytest.mark.parametrize("is_there", [False, True])
def test_a_number_of_pieces_that_the_configured_model_does_not_have_is_refused(tmp_path, is_there):
    train_once(["some other words"], tmp_path / "given.model", 275)
    path, given = tmp_path / "tokenizer.model", str(tmp_path / "given.model")
    if is_there:
        prepare_tokenizer(TokenizerConfig(model=given, vocab_size=275), [], path)
    with pytest.raises(ConfigError, match="vocab_size is 280, and .*given.model, has 275 pieces: leave .* out"):
        prepare_tokenizer(TokenizerConfig(model=given, vocab_size=280), [], path)
    assert path.exists() == is_there


@pytest.mark.parametrize("key", ["lowercase", "dummy_prefix"])
def test_a_given_tokenizer_cannot_be_asked_to_be_trained_otherwise(tmp_path, key):
    train_once(["some other words"], tmp_path / "given.model", 275)
    config = TokenizerConfig(model=str(tmp_path / "given.model"), **{key: True})
    with pytest.raises(ConfigError, match=f"tokenizer.{key} is for a tokenizer that is trained, .*given.model: leave"):
        prepare_tokenizer(config, [], tmp_path / "tokenizer.model")
    assert not (tmp_path / "tokenizer.model").exists()


def test_a_tokenizer_is_trained_as_the_configuration_asks(tmp_path):
    config = TokenizerConfig(vocab_size=290, lowercase=True, dummy_prefix=True)
    tokenizer = prepare_tokenizer(config, one_split(), tmp_path / "tokenizer.model")
    assert tokenizer.decode(tokenizer.encode("Zielwort WORT")) == "zielwort wort"
    (word,) = tokenizer.encode("Word")
    assert tokenizer.encode("source word")[-1] == word


def test_a_tokenizer_of_another_case_than_the_configuration_asks_is_refused(tmp_path):
    train_once(["some other words"], tmp_path / "tokenizer.model", 275)
    config = TokenizerConfig(vocab_size=275, lowercase=True)
    with pytest.raises(ConfigError, match="tokenizer.lowercase is true, but .*tokenizer.model was not trained so"):
        prepare_tokenizer(config, [], tmp_path / "tokenizer.model")


def test_a_tokenizer_keeps_its_normalization_and_another_one_that_is_asked_for_is_refused(tmp_path):
    plain, given = tmp_path / "plain.model", str(tmp_path / "plain.model")
    train_once(["some other words"], plain, 275, normalization="identity")
    for config in (TokenizerConfig(vocab_size=275), TokenizerConfig(model=given)):
        assert prepare_tokenizer(config, [], plain).normalization == "identity"
    for config, path in (
        (TokenizerConfig(vocab_size=275, normalization="nfc"), plain),
        (TokenizerConfig(model=given, normalization="nfc"), tmp_path / "copied.model"),
    ):
        with pytest.raises(ConfigError, match='normalization is "nfc", and .*plain.model, has "identity"'):
            prepare_tokenizer(config, [], path)
    assert not (tmp_path / "copied.model").exists()
    for name in ("nfc", "nfkc", "identity"):
        config = TokenizerConfig(vocab_size=280, normalization=name)
        assert prepare_tokenizer(config, one_split(), tmp_path / name).normalization == name


def test_a_model_that_cannot_be_used_is_not_copied(tmp_path):
    (tmp_path / "given.model").write_bytes(b"no model")
    with pytest.raises(TokenizerError, match="given.model"):
        prepare_tokenizer(TokenizerConfig(model=str(tmp_path / "given.model")), [], tmp_path / "tokenizer.model")
    assert not (tmp_path / "tokenizer.model").exists()


def test_the_tokenizer_that_is_there_is_used_and_one_of_another_size_is_refused(tmp_path):
    path = tmp_path / "tokenizer.model"
    learned = prepare_tokenizer(TokenizerConfig(vocab_size=280), one_split(), path)
    found = prepare_tokenizer(TokenizerConfig(vocab_size=280), [], path)
    assert found.model_bytes == learned.model_bytes
    with pytest.raises(ConfigError, match="280 pieces .*tokenizer.vocab_size is 281"):
        prepare_tokenizer(TokenizerConfig(vocab_size=281), one_split(), path)


def test_tags_are_pieces_of_a_learned_tokenizer_and_a_tokenizer_that_divides_one_is_refused_and_not_copied(tmp_path):
    tags = ("<2de>", "<BT>")
    tokenizer = prepare_tokenizer(TokenizerConfig(vocab_size=290), one_split(), tmp_path / "tagged.model", tags)
    assert tokenizer.vocab_size == 290
    for tag in tags:
        (piece,) = tokenizer.encode(tag)
        assert tokenizer.encode(f"{tag}source word") == [piece, *tokenizer.encode("source word")]
        assert tokenizer.decode([piece]) == tag
        assert drawn_by(tokenizer, [f"{tag}source word"], 1.0)[0][0] == piece  # BPE-dropout leaves it whole
    learn_tokenizer(TokenizerConfig(vocab_size=290), one_split(), tmp_path / "given.model")
    for config, path in (
        (TokenizerConfig(model=str(tmp_path / "given.model")), tmp_path / "copied.model"),
        (TokenizerConfig(vocab_size=290), tmp_path / "given.model"),
    ):
        with pytest.raises(ConfigError, match=r"symbol <2de>, .*given.model divides into [2-9] pieces"):
            prepare_tokenizer(config, [], path, tags)
    assert not (tmp_path / "copied.model").exists()


def test_the_tokenizer_of_an_attempt_without_a_checkpoint_is_made_anew(tmp_path):
    train_once(["some other words"], tmp_path / "given.model", 275)
    train = Split("data.train", one_split()[0].__iter__, fingerprint=dict)
    corpus, alone = Corpus(train, None, None, "en", "de"), Workers(None)
    given, folder = TokenizerConfig(model=str(tmp_path / "given.model")), RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    assert share_tokenizer(TokenizerConfig(vocab_size=280), corpus, folder, alone).vocab_size == 280
    assert share_tokenizer(given, corpus, folder, alone).vocab_size == 275
    (folder.checkpoints / "step-00000010.npz").touch()
    assert share_tokenizer(TokenizerConfig(vocab_size=275), corpus, folder, alone).vocab_size == 275


def test_every_worker_has_the_tokenizer_that_the_chief_learns_from_its_own_shards(tmp_path):
    wire, config = Wire(), TokenizerConfig(vocab_size=266)
    shards = [Split("data.train", lambda text=text: iter([(text, text)] * 9), dict) for text in ("abcd", "efgh")]
    corpus = Corpus(Split.of_shards("data.train", shards), None, None, "en", "de")
    folders = [RunFolder(tmp_path / name) for name in ("chief", "other")]
    for folder in folders:
        folder.checkpoints.mkdir(parents=True)
    chief = share_tokenizer(config, corpus, folders[0], Workers(wire, Worker(0, 2)))
    other = share_tokenizer(config, corpus, folders[1], wire.of_the_other())
    assert other.model_bytes == chief.model_bytes == folders[1].tokenizer.read_bytes()
    pieces = "".join(chief.pieces())
    assert all(letter in pieces for letter in "abcd") and "h" not in pieces.replace("<0x", "")


def test_on_trial_a_run_has_the_tokenizer_it_goes_on_with_or_one_that_leaves_no_file(tmp_path):
    train = Split("data.train", one_split()[0].__iter__, fingerprint=dict)
    corpus, folder, config = Corpus(train, None, None, "en", "de"), RunFolder(tmp_path), TokenizerConfig(vocab_size=275)
    folder.checkpoints.mkdir()
    train_once(["some other words"], folder.tokenizer, 275)
    other = folder.tokenizer.read_bytes()
    learned = tokenizer_on_trial(config, corpus, folder, Worker(0, 1))
    assert learned.model_bytes != other and sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoints",
        "tokenizer.model",
    ]
    folder.keep_tokenizer_sum()
    (folder.checkpoints / "step-00000010.npz").touch()
    assert tokenizer_on_trial(config, corpus, folder, Worker(0, 1)).model_bytes == other
    folder.tokenizer.write_bytes(learned.model_bytes)
    with pytest.raises(ConfigError, match="is not the tokenizer that the weights were trained with"):
        tokenizer_on_trial(config, corpus, folder, Worker(0, 1))


@pytest.mark.slow
def test_what_a_killed_attempt_was_making_never_becomes_the_tokenizer(tmp_path):
    """It was killed while a tokenizer replaced another one; since then the text may have changed."""
    train = Split("data.train", one_split()[0].__iter__, fingerprint=dict)
    corpus, alone = Corpus(train, None, None, "en", "de"), Workers(None)
    config, folder = TokenizerConfig(vocab_size=275), RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    expected = share_tokenizer(config, corpus, folder, alone).model_bytes
    unfinished = folder.tokenizer.with_name("tokenizer.model.new")
    train_once(["some other words"], unfinished, 275)
    assert unfinished.read_bytes() != expected
    assert share_tokenizer(config, corpus, folder, alone).model_bytes == expected
    assert not unfinished.exists()


@pytest.mark.slow
def test_a_run_goes_on_with_the_tokenizer_that_it_was_begun_with_alone(tmp_path):
    """Another one of the same size makes other words of the same ids."""
    train = Split("data.train", one_split()[0].__iter__, fingerprint=dict)
    corpus, alone = Corpus(train, None, None, "en", "de"), Workers(None)
    config, folder = TokenizerConfig(vocab_size=275), RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    share_tokenizer(config, corpus, folder, alone)
    (folder.checkpoints / "step-00000010.npz").touch()
    share_tokenizer(config, corpus, folder, alone)
    own = folder.tokenizer.read_bytes()
    folder.tokenizer.unlink()  # it is learned again, and the same
    share_tokenizer(config, corpus, folder, alone)
    assert folder.tokenizer.read_bytes() == own
    train_once(["some other words"], folder.tokenizer, 275)
    with pytest.raises(ConfigError, match="is not the tokenizer that the weights were trained with.*SHA-256"):
        share_tokenizer(config, corpus, folder, alone)
    for checkpoint in folder.checkpoints.iterdir():
        checkpoint.unlink()
    folder.weights.touch()  # of a finished run, whose checkpoints somebody removed
    with pytest.raises(ConfigError, match="is not the tokenizer that the weights were trained with"):
        share_tokenizer(config, corpus, folder, alone)
    folder.tokenizer_sum.unlink()  # as in a run folder of before there was one
    assert share_tokenizer(config, corpus, folder, alone).vocab_size == 275 and folder.tokenizer_sum.exists()
