"""Fine-tuning of imported models that are told languages by pieces: M2M-100, NLLB-200, mBART, OPUS-MT with tags."""

import dataclasses
import json

import numpy as np
import pytest

import train.__main__
import train.calibrate
import train.distil
import train.evaluate
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import BOS, EOS
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.runs.kinds import load_model_config
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.m2m import KINDS, LEGACY, M2M, NLLB, m2m_folder
from tests.support.mbart import FIFTY, mbart_folder
from train.config.run import load_config
from train.data.prepare import load_corpus, prepare_data
from train.loop.checkpoints import read_weights
from train.loop.progress import Progress
from train.record.changes import check_unchanged, write_configuration

PAIRS = {
    ("en", "de"): [("two dogs run", "zwei hunde rennen"), ("a man sits", "ein mann sitzt"), ("a dog", "ein hund")],
    ("de", "fr"): [("ein hund", "un chien"), ("zwei hunde rennen", "deux chiens courent")],
    ("en", "fr"): [("a dog", "un chien"), ("a man sits", "un homme est assis")],
}
ENDS = {
    M2M: ("__en__", "", "__de__"),
    NLLB: ("eng_Latn", "", "deu_Latn"),
    LEGACY: ("", "eng_Latn", "deu_Latn"),
    FIFTY: ("en_XX", "", "de_DE"),
}
CONFIG = """
run_folder = "{folder}/tuned"

[data]
source = "files"
train = [{entries}]
validation = [{entries}]

[training]
start_from = "{start}"
schedule = "constant"
learning_rate = 3e-3
dropout = 0.0
label_smoothing = 0.0
steps = 60
tokens_per_batch = 128
row_length = 64
validate_every = 30
checkpoint_every = 30
average_checkpoints = 1
histograms_every = 0
picture_sentences = 2
xla = false

[translation]
validation_sentences = 7
"""


def entries_in(folder, pairs):
    """Write the pairs to files. Returns the entries of data.train."""
    entries = []
    for (source, target), texts in pairs.items():
        path = folder / f"{source}-{target}.tsv"
        path.write_text("".join(f"{one}\t{other}\n" for one, other in texts), encoding="utf-8")
        languages = f'source_language = "{source}", target_language = "{target}"'
        entries.append(f'{{files = "{path}", {languages}}}')
    return ", ".join(entries)


@pytest.fixture
def begun(tmp_path):
    """From a kind of model to the path of a configuration that starts from one."""

    def write(kind, pairs=PAIRS):
        folder = tmp_path / kind
        write_imported = m2m_folder if kind in KINDS else mbart_folder
        write_run(import_folder(write_imported(tmp_path / f"{kind}_imported", kind)), folder, [])
        path = tmp_path / "tuned.toml"
        text = CONFIG.format(folder=tmp_path, start=folder, entries=entries_in(tmp_path, pairs))
        path.write_text(text, encoding="utf-8")
        return path

    return write


def data_of(path, *overrides):
    """What a run of a configuration trains on."""
    config = load_config(path, ["training.tokens_per_batch=64", *overrides])
    tokenizer = open_tokenizer(RunFolder(config.training.start_from).tokenizer)
    settings = {"data": config.data, "languages": config.told}
    return prepare_data(load_corpus(config.data), tokenizer, config.training, config.cache_path, **settings)


def piece_ids(data, pieces):
    """The ids of pieces; () for an empty one."""
    every = data.tokenizer.pieces()
    return [(every.index(piece),) if piece else () for piece in pieces]


@pytest.mark.parametrize("kind", ENDS)
def test_pieces_of_languages_stand_at_the_ends_of_every_pair(begun, kind):
    data = data_of(begun(kind), "training.tokens_per_batch=128")
    tokenizer, (train,) = data.tokenizer, data.train.shards
    first, last, opening = piece_ids(data, ENDS[kind])
    for pairs in (train, data.validation):
        assert len(pairs) == 7
        for number, (source, target) in enumerate(PAIRS["en", "de"]):
            assert pairs.source[number].tolist() == [*first, *tokenizer.encode(source), EOS, *last]
            assert pairs.target[number].tolist() == [*opening, *tokenizer.encode_target(target), EOS]
    of_german = [data.languages.chosen("de", "fr"), data.languages.chosen("en", "fr")]
    german, english = (piece_ids(data, [data.languages.source[source]])[0][0] for source, _ in of_german)
    french = piece_ids(data, [data.languages.target[of_german[0][1]]])[0][0]
    place = -1 if kind == LEGACY else 0
    assert [train.source[number][place] for number in range(7)] == 3 * [english] + 2 * [german] + 2 * [english]
    assert all(train.target[number][0] == french for number in range(3, 7))
    batch = data.batches.batch(0)
    starts = batch["target_ids"] == BOS
    assert starts.sum() == 7 and set(batch["labels"][starts]) == {*opening, french}  # the first label is the language


def test_one_pair_of_languages_may_be_named_for_all_files(begun):
    path = begun(NLLB, {("en", "de"): PAIRS["en", "de"]})
    text = path.read_text(encoding="utf-8").replace('source_language = "en", target_language = "de"', 'tag = ""')
    path.write_text(text, encoding="utf-8")
    named = ["data.source_language=eng", "data.target_language=de-AT"]
    pairs = data_of(path, *named).train.shards[0]
    assert (pairs.source[0][0], pairs.target[0][0]) == tuple(
        number for (number,) in piece_ids(data_of(path, *named), ["eng_Latn", "deu_Latn"])
    )


def test_text_of_other_languages_is_encoded_anew(begun):
    path = begun(M2M, {("en", "de"): PAIRS["en", "de"]})
    text = path.read_text(encoding="utf-8").replace('source_language = "en", target_language = "de"', 'tag = ""')
    found = []
    for target in ("de", "fr", "de"):
        path.write_text(text.replace("[data]", f'[data]\nsource_language = "en"\ntarget_language = "{target}"'))
        data = data_of(path)
        assert data.train.shards[0].target[0][0] == piece_ids(data, [f"__{target}__"])[0][0]
        found.append(len(list(load_config(path).cache_path.glob("*/meta.json"))))
    assert found == [1, 2, 2]


@pytest.mark.parametrize("kind", [M2M, LEGACY])
def test_pairs_that_augmentation_changes_keep_their_pieces(begun, kind):
    data = data_of(begun(kind), "training.augment={joined=0.9}")
    (pairs,) = data.train.shards
    redraw = data.batches.shards[0]._epochs.redraw
    changed, joined = redraw(pairs, np.random.default_rng(1), lambda: False), 0
    for number in range(len(pairs)):
        source, target = changed.source[number].tolist(), changed.target[number].tolist()
        before = pairs.source[number].tolist()
        place = -1 if kind == LEGACY else 0
        assert (source[place], target[0]) == (before[place], pairs.target[number][0])
        joined += len(source) > len(before) + 2
        silent = data.tokenizer.silent
        assert sum(token in silent for token in source) == 2 and sum(token in silent for token in target) == 2
    assert joined


def test_a_pair_whose_target_is_its_source_is_counted(begun):
    same = {("en", "de"): [("a dog", "a dog"), ("a dog", "ein hund")], ("de", "en"): [("hund", "hund")]}
    for kind in KINDS:
        data = data_of(begun(kind, same))
        assert data.train.shards[0].identical(data.languages) == 2


MISTAKES = {
    "unknown": ({("en", "xx"): [("a", "b")]}, "The target language is 'xx'; this model writes ace_Arab"),
    "no source": ({("", "de"): [("a", "b")]}, "This model reads ace_Arab, .* say which is the source language."),
    "no target": ({("en", ""): [("a", "b")]}, "say which is the target language. Set data.source_language and data."),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_text_without_a_language_of_the_model_is_refused_before_it_is_read(begun, mistake, tmp_path):
    pairs, sentence = MISTAKES[mistake]
    path = begun(NLLB, pairs)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('source_language = "", ', "").replace(', target_language = ""', ""), encoding="utf-8")
    result = invoke(train.__main__.app, path)
    assert_one_sentence(result, *sentence.split(" .* "))
    assert not (tmp_path / "tuned" / "model.json").exists()


def test_what_a_run_is_told_stays_as_its_config_says(begun, tmp_path):
    config = load_config(begun(M2M))
    entry = config.data.entries("train")[0]
    assert entry.tag == "" and entry.target_language == "de" and config.data.tags == ()
    (tmp_path / "again.toml").write_text(config.to_toml(), encoding="utf-8")
    assert load_config(tmp_path / "again.toml") == config
    assert config.languages == RunFolder(tmp_path / M2M).inference().languages


@pytest.fixture
def done(begun, tmp_path):
    """From changes of the text of a configuration, pairs of texts, to what a run in its folder says that has no steps
    left."""
    path = begun(M2M)
    text = path.read_text(encoding="utf-8")
    config = load_config(path)
    folder = RunFolder(config.run_folder)
    folder.checkpoints.mkdir(parents=True)
    steps = np.array(json.dumps(dataclasses.asdict(Progress(config.training.steps))))
    np.savez(folder.checkpoints / f"step-{config.training.steps:08d}.npz", progress=steps)
    write_configuration(folder, config, load_model_config(RunFolder(config.training.start_from).model))

    def check(*changes):
        changed = text
        for before, now in changes:
            assert before in changed
            changed = changed.replace(before, now)
        path.write_text(changed, encoding="utf-8")
        return check_unchanged(folder, load_config(path))

    return check


FROM_GERMAN = 'source_language = "de"'
SECTION = 'source = "files"\n'


@pytest.mark.parametrize(
    "change", [(FROM_GERMAN, 'source_language = "en"'), ('target_language = "fr"', 'target_language = "de"')]
)
def test_languages_that_a_model_was_told_are_settled_once_the_run_is_done(done, change):
    with pytest.raises(ConfigError, match=r"been trained for 60 steps, and .* has changed: data.train was "):
        done(change)
    with pytest.raises(ConfigError, match="data.target_language was 'target' and is 'de'"):
        done((SECTION, f'{SECTION}target_language = "de"\n'))
    assert {"data.train", "data.validation"} <= done((".tsv", ".moved.tsv")).keys()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [LEGACY, FIFTY])
def test_a_run_learns_pairs_of_several_languages_by_heart(begun, kind, tmp_path):
    config = begun(kind)
    result = invoke(train.__main__.app, config)
    assert result.exit_code == 0, result.output
    start, tuned = RunFolder(tmp_path / kind), RunFolder(tmp_path / "tuned")
    assert tuned.inference().languages == start.inference().languages
    translator = Translator.load(tuned.path)
    for (source, target), texts in PAIRS.items():
        found = translator.translate([one for one, _ in texts], source_language=source, target_language=target)
        assert [each.text for each in found] == [other for _, other in texts]
    validations = [json.loads(line) for line in tuned.metrics.read_text().splitlines() if "validation/bleu" in line]
    # of "a dog" nobody can tell which language comes
    assert validations[-1]["validation/token_accuracy"] > 0.95 and validations[-1]["validation/bleu"] > 99
    assert "100.00" in tuned.report.read_text(encoding="utf-8")
    result = invoke(train.evaluate.app, tuned.path, "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["scores"][0]["value"] > 99, result.output
    biases = [np.asarray(load_run(run.path)[0].get_layer("embedding").bias) for run in (start, tuned)]
    np.testing.assert_array_equal(*biases)  # fairseq's models have none that train, transformers' mBART has a constant


@pytest.mark.nightly
def test_a_run_that_is_stopped_goes_on_bit_for_bit_without_the_run_that_it_started_from(begun, tmp_path):
    config = begun(FIFTY)
    few = ["training.checkpoint_every=2", "training.validate_every=4", "training.dropout=0.1"]

    def trained(name, steps):
        changes = [f"run_folder={tmp_path / name}", f"training.steps={steps}", *few]
        result = invoke(train.__main__.app, config, *(word for change in changes for word in ("--set", change)))
        assert result.exit_code == 0, result.output
        return read_weights(tmp_path / name / f"checkpoints/step-{steps:08}.npz")

    expected = trained("calm", 4)
    trained("stopped", 2)
    (tmp_path / FIFTY).rename(tmp_path / "gone")
    found = trained("stopped", 4)
    assert found.keys() == expected.keys()
    for path, weight in found.items():
        np.testing.assert_array_equal(weight, expected[path])
    assert RunFolder(tmp_path / "stopped").inference() == RunFolder(tmp_path / "calm").inference()


@pytest.fixture
def imported(begun, tmp_path):
    """An imported model of many languages, and the options with a text for distil and calibrate."""
    start = load_config(begun(M2M)).training.start_from
    for name, lines in (("source", ["two dogs run", "a man sits"]), ("reference", ["zwei hunde rennen", "ein mann"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return start, ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]


@pytest.mark.nightly
def test_distil_writes_translations_between_the_languages_that_it_is_told(imported, tmp_path):
    start, files = imported
    output = tmp_path / "output"
    told = ["--output", output, "--beam-size", "3", "--from", "en"]
    result = invoke(train.distil.app, start, *files, *told, "--to", "de")
    assert result.exit_code == 0, result.output
    options = SearchOptions(beam_size=3, n_best=3)
    lines = (tmp_path / "source").read_text("utf-8").splitlines()
    found = {}
    for code in ("de", "fr"):
        beams = Translator.load(start, options).translate_n_best(lines, source_language="en", target_language=code)
        found[code] = [{each.text for each in candidates} for candidates in beams]
    written = output.read_text("utf-8").split("\n")[:-1]
    assert all(text in candidates for text, candidates in zip(written, found["de"], strict=True))
    assert found["de"] != found["fr"]
    assert_one_sentence(invoke(train.distil.app, start, *files, *told, "--to", "xx"), "xx")
    assert_one_sentence(invoke(train.distil.app, start, *files, *told), "target")


@pytest.mark.nightly
def test_calibrate_is_told_the_languages_of_its_files(imported):
    start, files = imported
    result = invoke(train.calibrate.app, start, *files, "--from", "en", "--to", "de")
    assert result.exit_code == 0 and RunFolder(start).calibration.exists(), result.output
    assert_one_sentence(invoke(train.calibrate.app, start, *files), "source")
