"""data.clean, from the configuration to what is left of the training text, its counts and its examples."""

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.text.cleaning import RULES
from tests.train.test_corpus import files
from train.config.cleaning import CleaningConfig
from train.data.cleaning import cleaning_settings, proposal_lines, proposals, scripts_of
from train.data.prepare import load_corpus

SOURCE = b"A dog runs.\nHotel\nIn 1996\nA dog runs.\n"
TARGET = b"Ein Hund rennt.\nHotel\nIm Jahr 1969\nEin Hund rennt.\n"


def test_the_keys_are_the_rules():
    assert set(CleaningConfig.model_fields) == {*RULES, "duplicates"}
    assert CleaningConfig().settings() == {}


def test_a_rule_drops_training_pairs_alone_and_counts_them(tmp_path):
    data = files(tmp_path, SOURCE, TARGET, clean={"identical": True, "numbers": True, "duplicates": True})
    corpus = load_corpus(data)
    for _ in range(2):  # each iteration begins anew
        assert list(corpus.train) == [("A dog runs.", "Ein Hund rennt.")]
        assert corpus.train.skipped == {"identical": 1, "with different numbers": 1, "repeated": 1}
        assert corpus.train.examples["identical"] == [("Hotel", "Hotel")]
        assert corpus.train.examples["with different numbers"] == [("In 1996", "Im Jahr 1969")]
    assert len(list(corpus.validation)) == 4


def test_every_pair_that_a_rule_drops_is_counted(tmp_path):
    train = load_corpus(files(tmp_path, b"a\nb\nc\nd\n", b"a\nb\nc\ne\n", clean={"identical": True})).train
    assert list(train) == [("d", "e")] and train.skipped == {"identical": 3}


def test_shards_and_weighted_entries_are_cleaned_too(tmp_path):
    files(tmp_path, SOURCE, TARGET)
    pair = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    entries = {"train": [pair, pair], "clean": {"identical": True}}
    for shard in load_corpus(files(tmp_path, SOURCE, TARGET, shards=2, **entries)).train.shards:
        assert len(list(shard)) == 3
    entries["train"] = [{"files": pair, "weight": 2.0}, pair]
    for part, _ in load_corpus(files(tmp_path, SOURCE, TARGET, **entries)).train.mixed:
        assert len(list(part)) == 3


def test_a_tag_is_no_part_of_a_source_that_is_its_target(tmp_path):
    files(tmp_path, SOURCE, TARGET)
    entry = {"files": [str(tmp_path / "train.en"), str(tmp_path / "train.de")], "tag": "<2de>"}
    rules = {"clean": {"identical": True}}
    for entries, of_split in (
        ({"train": [entry]}, lambda train: [train]),
        ({"train": [entry, entry], "shards": 2}, lambda train: train.shards),
        ({"train": [entry, entry | {"weight": 2.0}]}, lambda train: [part for part, _ in train.mixed]),
    ):
        for split in of_split(load_corpus(files(tmp_path, SOURCE, TARGET, **entries, **rules)).train):
            assert not any("Hotel" in source for source, _ in split)


def test_the_fingerprint_changes_with_the_rules_and_only_with_them(tmp_path):
    data = files(tmp_path, b"a\n", b"b\n")
    off, empty, on, other = (
        load_corpus(data.model_copy(update={"clean": clean})).train.fingerprint()
        for clean in (None, CleaningConfig(), CleaningConfig(identical=True), CleaningConfig(longest_word=9))
    )
    assert off == empty
    assert len({str(each) for each in (off, on, other)}) == 3


def test_no_pair_left_is_one_sentence_with_the_reasons(tmp_path):
    data = files(tmp_path, b"a\n", b"a\n", clean={"identical": True})
    with pytest.raises(Exception, match="data.train has no sentence pair left. Skipped: 1 identical"):
        list(load_corpus(data).train)


def test_what_is_not_set_is_proposed_with_its_count(tmp_path):
    data = files(tmp_path, SOURCE, TARGET, clean={"numbers": True})
    found, looked_at = proposals(load_corpus(data).train, cleaning_settings(data), data)
    assert looked_at == 3
    assert {proposal.line: proposal.count for proposal in found} == {"identical = true": 1, "duplicates = true": 1}


def test_the_scripts_of_the_text_are_proposed(tmp_path):
    sentence = "Это длинное предложение, в котором много букв и ни одного латинского слова.\n"
    source, target = (b"A long sentence\n" * 40, sentence.encode() * 39 + b"An English one\n")
    data = files(tmp_path, source, target)
    found, _ = proposals(load_corpus(data).train, {}, data)
    assert ('target_scripts = ["CYRILLIC"]', 1) in [(proposal.line, proposal.count) for proposal in found]


def test_languages_are_proposed_if_they_can_be_detected(tmp_path):
    pytest.importorskip("py3langid", reason="needs the extra clean")
    english = b"The children are playing in the garden behind the house.\n"
    german = b"Die Kinder spielen im Garten hinter dem Haus.\n"
    codes = {"source_language": "en", "target_language": "de"}
    data = files(tmp_path, english * 3, german * 2 + english.replace(b"house", b"barn"), **codes)
    found, _ = proposals(load_corpus(data).train, {"duplicates": True}, data)
    assert [(proposal.line, proposal.count) for proposal in found] == [("languages = true", 1)]


@pytest.mark.parametrize(("latin", "scripts"), [(90, ["LATIN", "CYRILLIC"]), (91, ["LATIN"])])
def test_a_script_belongs_to_a_language_if_it_has_a_tenth_of_the_letters(latin, scripts):
    assert scripts_of(["a" * latin + " 12.", "д" * 10]) == scripts


def test_what_is_proposed_is_logged_with_its_count_and_an_example_or_that_nothing_is(tmp_path, monkeypatch):
    source, target = b"A dog runs.\n" * 1200 + b"Hotel\n", b"Ein Hund rennt.\n" * 1200 + b"Hotel\n"
    data = files(tmp_path, source, target, clean={"numbers": True})
    assert list(proposal_lines(load_corpus(data).train, data)) == [
        "data.clean: keys that would drop some of the first 1,201 training pairs; look at what, then choose",
        "data.clean.identical = true would drop 1, such as Hotel ||| Hotel",
        "data.clean.duplicates = true would drop 1,199, such as A dog runs. ||| Ein Hund rennt.",
    ]
    monkeypatch.setattr("train.data.cleaning.MOST_TRIED", 1)
    nothing = "data.clean: no other rule would drop any of the first 1 training pairs"
    assert list(proposal_lines(load_corpus(data).train, data)) == [nothing]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"clean": {"source_scripts": ["LATIN", "Latin", "Greek"]}}, "'Greek' is no script"),
        ({"clean": {"length_ratio": 1.0}}, "greater than 1"),
        ({"clean": {"identicall": True}}, "Extra inputs"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(tmp_path, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        files(tmp_path, b"a\n", b"b\n", **wrong)


def test_languages_need_codes_and_no_tags(tmp_path):
    pytest.importorskip("py3langid", reason="needs the extra clean")
    on = {"clean": {"languages": True}}
    with pytest.raises(ConfigError, match="'source' is no language"):
        load_corpus(files(tmp_path, b"a\n", b"b\n", **on))
    codes = {"source_language": "en", "target_language": "de"}
    load_corpus(files(tmp_path, b"a\n", b"b\n", **on, **codes))
    pair = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    with pytest.raises(ConfigError, match="have tags"):
        load_corpus(files(tmp_path, b"a\n", b"b\n", train=[{"files": pair, "tag": "<2de>"}], **on, **codes))
