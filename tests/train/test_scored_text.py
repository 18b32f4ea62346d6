"""The text that is scored: of a run's own test set, or of two files, by one rule for pairs without text."""

import types

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.samples import Sample
from tests.support.runs import write_config
from train.config.sources.files import FilesData
from train.data.corpus import CorpusError
from train.data.prepare import load_test_split
from train.scoring.card import TimedTranslations
from train.scoring.scored_text import ScoredText, data_of_run


def test_a_runs_test_set_needs_no_training_text(tmp_path):
    (tmp_path / "test.tsv").write_text("a\tb\nc\td\n", encoding="utf-8")
    data = {"source": "files", "train": [["none.en", "none.de"]], "validation": [str(tmp_path / "test.tsv")]}
    assert name_and_pairs(ScoredText.of_run(FilesData(**data))) == ("data.validation", [("a", "b"), ("c", "d")])
    data |= {"validation": ["none.tsv"], "test": [str(tmp_path / "test.tsv")]}
    assert name_and_pairs(ScoredText.of_run(FilesData(**data))) == ("data.test", [("a", "b"), ("c", "d")])


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("zh", "ja")])
def test_the_language_is_that_of_the_translations_wherever_the_text_is_from(source, target, tmp_path):
    (tmp_path / "test.tsv").write_text("a\tb\n", encoding="utf-8")
    languages = {"source_language": source, "target_language": target}
    data = FilesData(source="files", train=["none"], validation=[str(tmp_path / "test.tsv")], **languages)
    split = load_test_split(data)
    own = types.SimpleNamespace(shards=[1])
    prepared = types.SimpleNamespace(train=own, corpus=types.SimpleNamespace(train=own))
    for scored in (ScoredText.of_run(data), ScoredText.of_split(split, data, prepared)):
        assert (scored.language, scored.pairs) == (target, [("a", "b")])


def test_bleu_by_length_is_of_raw_text_unless_it_is_asked_to_be_tokenised_and_a_validation_has_its_scores(tmp_path):
    for name in ("en", "de"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    files = tmp_path / "en", tmp_path / "de"
    asked = [ScoredText.of_run(None, files, *arguments).is_tokenised for arguments in ((), (False,), (True,))]
    assert asked == [False, False, True]
    scores = object()
    assert ScoredText.validation(None, 3)(scores, []) is scores


def test_each_pair_with_text_has_the_direction_of_its_entry_and_the_card_scores_each(tmp_path):
    for name, text in {"en": "a\n\nc d e f\n", "de": "b\nx\nc d e f\n", "fr": "a\nb\n \n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    directions = [("en", "de"), ("de", "fr"), ("fr", "en")]
    entries = [
        {
            "files": [str(tmp_path / source), str(tmp_path / target)],
            "source_language": source,
            "target_language": target,
        }
        for source, target in directions
    ]
    data = FilesData(source="files", train=entries, validation=entries)
    assert data.languages == "en to de, de to fr, fr to en"
    scored = ScoredText.of_run(data)
    found = [(part, source, target) for part, (source, target) in zip(scored.parts, scored.pairs, strict=True)]
    assert found == [
        ("en to de", "<2de>a", "b"),
        ("en to de", "<2de>c d e f", "c d e f"),
        ("de to fr", "<2fr>b", "a"),
        ("de to fr", "<2fr>x", "b"),
        ("fr to en", "<2en>a", "a"),
    ]
    samples = [Sample(source, target, "b") for source, target in scored.pairs]
    card = scored.score(TimedTranslations(samples, 1.0), types.SimpleNamespace(is_lowercase=False, restored=list))
    assert [(each.name, each.sentences) for each in card.breakdown.parts] == [
        ("en to de", 2),
        ("de to fr", 2),
        ("fr to en", 1),
    ]
    plain = FilesData(source="files", train=["none"], validation=[entries[0]["files"], entries[1]["files"]])
    assert sorted(set(ScoredText.of_run(plain).parts)) == sorted(" and ".join(each["files"]) for each in entries[:2])


def name_and_pairs(scored):
    return scored.name, scored.pairs


@pytest.fixture(params=["test set", "files"])
def scored(request, tmp_path):
    """The same four pairs, of which two have text, as a run's test set and as --source and --reference."""
    sides = {"en": "a\n\nc\nd\n", "de": "b\nx\nd\n \n"}
    for name, text in sides.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = tmp_path / "en", tmp_path / "de"
    if request.param == "files":
        return ScoredText.of_run(None, files)
    return ScoredText.of_run(FilesData(source="files", train=["none"], validation=[list(map(str, files))]))


def test_pairs_without_text_are_left_out_aloud(scored, caplog):
    assert scored.pairs == [("a", "b"), ("c", "d")]
    [warning] = [record.getMessage() for record in caplog.get_records("setup")]
    assert "not counted: 1 empty source, 1 empty target (lines 2, 4)" in warning


@pytest.mark.parametrize(("blank", "named"), [(10, "8, 9, 10)"), (11, "9, 10, ...)")])
def test_of_many_pairs_without_text_the_first_ten_are_named(tmp_path, caplog, blank, named):
    for name, line in (("en", ""), ("de", "x")):
        (tmp_path / name).write_text(f"{line}\n" * blank + "a\n", encoding="utf-8")
    scored = ScoredText.of_run(None, (tmp_path / "en", tmp_path / "de"))
    assert scored.blank == frozenset(range(1, blank + 1)) and scored.pairs == [("a", "a")]
    assert f"{blank} empty source (lines 1, 2, " in caplog.text and named in caplog.text


def test_files_of_translations_have_the_lines_of_the_text(scored, tmp_path):
    assert scored.written(["A", "C"]) == ["A", "", "C", ""]
    (tmp_path / "theirs").write_text("A\nwhatever\nC\n\n", encoding="utf-8")
    assert scored.read(tmp_path / "theirs") == ["A", "C"]
    (tmp_path / "theirs").write_text("A\nC\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="has 2 lines, but .* has 4, 2 of them without text on one side"):
        scored.read(tmp_path / "theirs")


def test_a_run_without_a_configuration_needs_files(tmp_path):
    with pytest.raises(ConfigError, match="run has no config.toml, which would name a test set.*give --source and"):
        data_of_run(tmp_path / "run", has_files=False)
    assert data_of_run(tmp_path / "run", has_files=True) is None
    write_config(tmp_path).rename(tmp_path / "config.toml")
    for has_files in (False, True):
        assert data_of_run(tmp_path, has_files).source == "numbers"
