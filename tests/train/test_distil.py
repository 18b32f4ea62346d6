"""`keras-transformer distil`: the translation nearest to the reference, of each sentence, and a user's mistakes."""

import contextlib
import functools
import itertools
import re
import signal
import types

import pytest
import sacrebleu

import train.distil
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.inference import Inference
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.minimum_bayes_risk import MinimumBayesRisk
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import random_run, write_config
from tests.support.variants import VARIANTS
from train.distil import distil, nearest
from train.scoring.unfinished import Unfinished

distil_command = functools.partial(invoke, train.distil.app)

REFERENCE = "Ein Hund läuft über die Wiese ."
CANDIDATES = [
    "Eine Katze schläft .",
    "Der Hund läuft über die Wiese .",
    "Ein Hund läuft über das Feld .",
    "Ein Hund rennt über die Wiese .",
]


@pytest.mark.parametrize("candidates", list(itertools.permutations(CANDIDATES)))
def test_no_candidate_has_a_higher_sentence_bleu(candidates):
    scores = [sacrebleu.sentence_bleu(text, [REFERENCE]).score for text in candidates]
    assert nearest(candidates, REFERENCE) == candidates[scores.index(max(scores))]


def test_the_reference_is_nearest_to_itself_and_of_equals_the_most_probable_is_taken():
    assert nearest([*CANDIDATES, REFERENCE], REFERENCE) == REFERENCE
    assert nearest(["x y", "y z"], "a b") == "x y"
    assert nearest(["", ""], "") == ""


def test_in_a_language_without_spaces_characters_are_compared():
    """As one word each, no candidate would be nearer than another."""
    candidates, reference = ["他在家里睡觉。", "我喜欢黑猫。"], "我很喜欢黑猫。"
    assert nearest(candidates, reference, "zh") == candidates[1]
    assert nearest(candidates, reference) == candidates[0]


@pytest.mark.parametrize(("language", "is_warned"), [("", True), ("zh", False)])
def test_references_without_spaces_are_warned_of_if_the_language_does_not_tell(tmp_path, caplog, language, is_warned):
    references = ["我很喜欢黑猫。"] * 3
    with contextlib.closing(Unfinished(tmp_path / "output", {})) as work:
        distil([("a", text) for text in references], lambda lines, _: candidates_for(lines), 3, work, language)
    assert ("script without spaces" in caplog.text) is is_warned


def candidates_for(lines, is_cut=False):
    texts = [["four five", f"one two three {line.split()[-1]}"] for line in lines]
    return [[Translation(far, -1.0), Translation(near, -2.0, is_cut=is_cut)] for far, near in texts]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_sentences_stay_in_their_order_however_many_are_translated_at_once(at_once, tmp_path, caplog):
    caplog.set_level("INFO", "train")
    pairs = [(f"source {n}", f"one two three {n}") for n in range(5)]
    asked = []

    def candidates_of(lines, first_line):
        asked.extend(enumerate(lines, first_line))
        return candidates_for(lines)

    found = distil(pairs, candidates_of, at_once, Unfinished(tmp_path / "output", {}))
    assert found == [reference for _, reference in pairs]
    assert asked == [(n + 1, f"source {n}") for n in range(5)]
    assert re.match("the most probable translations: BLEU 0.00.*, 0 of them the reference; ", caplog.messages[-2])
    assert re.match("the nearest translations: BLEU 100.00.*, 5 of them the reference; ", caplog.messages[-1])


def test_chosen_translations_that_were_cut_are_counted_those_before_a_stop_too(tmp_path, caplog):
    pairs, path = [(f"source {n}", f"one two three {n}") for n in range(4)], tmp_path / "output"
    work = Unfinished(path, {})
    work.add([["four five", "one two three 0"], ["four five", "one two three 1", True]])  # the first of another version
    distil(pairs, lambda lines, first_line: candidates_for(lines, first_line == 3), 1, work)
    assert "may lack their end: 2 (line numbers: 2, 3)" in caplog.text


@pytest.fixture
def loaded(monkeypatch):
    """What Translator.load is called with; its Translator has two translations of each line: the line, and "x"."""
    calls = []

    class Repeating:
        tokenizer = types.SimpleNamespace(restored=list)

        def translate_n_best(self, lines, first_line):
            return [[Translation("x", -1.0), Translation(f"{line}\nagain", -2.0)] for line in lines]

    def load(*arguments, **named):
        calls.append((arguments, named))
        return Repeating()

    monkeypatch.setattr(Translator, "load", load)
    return calls


@pytest.fixture
def files(tmp_path):
    """A mapping from name to path: `source` and `reference` of two sentences, and `output`, which is not there."""
    (tmp_path / "model.weights.h5").write_bytes(b"weights")
    (tmp_path / "source").write_text("eins zwei\ndrei vier\n", encoding="utf-8")
    (tmp_path / "reference").write_text("eins zwei again\nx\n", encoding="utf-8")
    return {name: tmp_path / name for name in ("source", "reference", "output")}


def options_of(files):
    return [part for name, path in files.items() for part in (f"--{name}", path)]


def test_a_line_is_written_for_each_sentence(files, loaded, tmp_path):
    assert distil_command(tmp_path, *options_of(files)).exit_code == 0
    assert files["output"].read_text(encoding="utf-8") == "eins zwei again\nx\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.weights.h5", "output", "reference", "source"]


def test_what_is_near_is_measured_in_the_language_of_the_run(files, loaded, tmp_path):
    config = write_config(tmp_path).read_text("utf-8").replace('"numbers"', '"numbers"\ntarget_language = "zh"')
    (tmp_path / "config.toml").write_text(config, encoding="utf-8")
    files["source"].write_text("我喜欢黑猫。\n", encoding="utf-8")
    files["reference"].write_text("我很喜欢黑猫。\n", encoding="utf-8")
    (other := tmp_path / "other").mkdir()
    (other / "model.weights.h5").touch()  # of an ensemble, the first run has the language
    assert distil_command(tmp_path, *options_of(files), "--ensemble", other).exit_code == 0
    assert files["output"].read_text(encoding="utf-8") == "我喜欢黑猫。 again\n"  # else "x", which is more probable


OTHERS = {"--length-penalty": 0.2, "--coverage-penalty": 0.2, "--precision": "bfloat16", "--ensemble": "{tmp_path}"}


@pytest.mark.parametrize("changed", [None, "model.weights.h5", "reference", "target_language", *OTHERS])
def test_a_command_that_was_stopped_goes_on_but_not_with_another_model_text_or_search(
    files, tmp_path, monkeypatch, changed
):
    calls = []

    def translate_n_best(lines, first_line):
        calls.append(first_line)
        if calls == [1, 2]:
            signal.raise_signal(signal.SIGTERM)
        return [[Translation(line, -1.0)] for line in lines]

    tokenizer = types.SimpleNamespace(restored=list)
    translator = types.SimpleNamespace(translate_n_best=translate_n_best, tokenizer=tokenizer)
    monkeypatch.setattr(Translator, "load", lambda *arguments, **named: translator)
    monkeypatch.setattr(train.distil, "BATCHES_AT_ONCE", 1)
    arguments = tmp_path, *options_of(files), "--batch-size", 1
    stopped = distil_command(*arguments)
    assert stopped.exit_code == 75 and "output.unfinished" in stopped.output
    assert not files["output"].exists()
    what = "output.unfinished has 1 results of another text, model or search"
    if changed and changed.startswith("--"):
        assert_one_sentence(distil_command(*arguments, changed, str(OTHERS[changed]).format(tmp_path=tmp_path)), what)
    elif changed == "target_language":
        config = write_config(tmp_path).read_text(encoding="utf-8")
        (tmp_path / "config.toml").write_text(config, encoding="utf-8")
        assert_one_sentence(distil_command(*arguments), what)
        (tmp_path / "config.toml").unlink()
    elif changed:
        before = (tmp_path / changed).read_bytes()
        (tmp_path / changed).write_text("other\nthings\n", encoding="utf-8")
        assert_one_sentence(distil_command(*arguments), what)
        (tmp_path / changed).write_bytes(before)
    assert distil_command(*arguments).exit_code == 0
    assert calls == [1, 2, 2] and files["output"].read_text(encoding="utf-8") == "eins zwei\ndrei vier\n"


@pytest.mark.nightly
@pytest.mark.parametrize("variant", [None, "modern", "alibi"])
def test_a_run_writes_one_of_its_own_translations_of_each_sentence(files, tmp_path, variant):
    folder = random_run(tmp_path / "run", **VARIANTS.get(variant, {}))
    result = distil_command(folder, *options_of(files), "--beam-size", 2)
    assert result.exit_code == 0, result.output
    translator = Translator.load(folder, SearchOptions(beam_size=2, n_best=2))
    n_best = translator.translate_n_best(["eins zwei", "drei vier"])
    written = files["output"].read_text(encoding="utf-8").split("\n")
    assert written.pop() == "" and len(written) == 2
    for text, translations in zip(written, n_best, strict=True):
        assert text in [one.text for one in translations]


# mistakes


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"source": "none"}, ["none", "No such file"]),
        ({"reference": "empty"}, ["2 lines", "0", "a pair is one line of each"]),
        ({"source": "empty", "reference": "void"}, ["empty", "void", "are empty"]),
        ({"reference": "source"}, ["--source and --reference are both", "name the file of each side"]),
        ({"output": "source"}, ["--output ", "is one of the files that are read"]),
        ({"output": "distilled.de.gz"}, ["--output ", "leave the .gz out"]),
        ({"output": "none/output"}, ["--output ", "there is no folder"]),
        ({"output": "folder"}, ["--output ", "it is a folder"]),
        ({"output": "model.weights.h5"}, ["--output", "model.weights.h5 is a file of the run"]),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_translated(files, loaded, tmp_path, changed, parts):
    (tmp_path / "empty").touch()
    (tmp_path / "void").touch()
    (tmp_path / "folder").mkdir()
    files |= {option: tmp_path / name for option, name in changed.items()}
    assert_one_sentence(distil_command(tmp_path, *options_of(files)), *parts)
    assert loaded == []


def test_a_run_that_writes_trees_is_refused(files, loaded, tmp_path):
    Inference("trees").save(tmp_path / "inference.json")
    assert_one_sentence(distil_command(tmp_path, *options_of(files)), f"{tmp_path} writes trees")
    assert loaded == []


@pytest.mark.nightly
def test_a_folder_that_is_no_run_is_one_sentence(files, tmp_path):
    assert_one_sentence(distil_command(tmp_path, *options_of(files)), tmp_path, "not a run folder")


@pytest.mark.nightly
@pytest.mark.parametrize("ensemble", [False, True])
def test_with_mbr_it_writes_what_minimum_bayes_risk_chooses_whatever_the_reference_is(tmp_path, caplog, ensemble):
    caplog.set_level("INFO", "train")
    run, lines = random_run(tmp_path / "run"), ["one two", "three", "seven"]
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    texts = []
    for reference in ("a", "b"):
        path, output = tmp_path / reference, tmp_path / f"distilled.{reference}"
        path.write_text(f"{reference}\n" * 3, encoding="utf-8")
        several = ("--ensemble", run) if ensemble else ()
        options = ("--source", tmp_path / "source", "--reference", path, "--output", output, "--beam-size", 2, *several)
        assert distil_command(run, *options, "--mbr", 3).exit_code == 0
        texts.append(output.read_text(encoding="utf-8").splitlines())
    translator = Translator.load([run, run] if ensemble else run, SearchOptions(beam_size=2))
    expected = [each.text for each in MinimumBayesRisk(translator, samples=3).translate(lines)]
    assert texts == [expected, expected]
    assert "the chosen translations: BLEU" in caplog.text and "most probable" not in caplog.text
