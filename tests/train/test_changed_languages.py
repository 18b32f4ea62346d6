"""A run with steps left whose text is of other languages now: it goes on, unless its tokenizer lacks a tag."""

import num2words
import pytest

from keras_transformer.ground.errors import UserError
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.m2m import m2m_folder
from tests.support.runs import CONFIG
from tests.train import test_told_languages as told_languages
from train.__main__ import app

REST = CONFIG[CONFIG.index("[tokenizer]") :]
TAGS = Languages({"en": ""}, {"de": "<2de>", "fr": "<2fr>"}, source_first="target")


@pytest.mark.parametrize(
    ("now", "together"),
    [
        (Languages({"en": ""}, {"de": "<2de>"}, "target"), TAGS),
        (
            Languages({"es": ""}, {"es": "<2es>"}, "target"),
            Languages({"en": "", "es": ""}, {**TAGS.target, "es": "<2es>"}, "target"),
        ),
        (
            Languages({"en": ""}, {"de-AT": "<2de>"}, "target"),
            TAGS._replace(target={"fr": "<2fr>", "de-AT": "<2de>"}),
        ),
        (TAGS, TAGS),
    ],
)
def test_languages_that_were_learned_stay_unless_their_tag_is_of_another_now(now, together):
    assert now.with_earlier(TAGS) == together


@pytest.fixture
def train(tmp_path):
    """A function that trains a run on entries for so many steps, and returns its folder and what the command said."""

    def run(entries, steps, section=""):
        for language in ("de", "fr"):
            pairs = [(num2words.num2words(n), num2words.num2words(n, lang=language)) for n in range(20)]
            text = "".join(f"{source}\t{target}\n" for source, target in pairs * 20)
            (tmp_path / f"{language}.tsv").write_text(text, encoding="utf-8")
        written = ", ".join(f'{{files = "{tmp_path}/{file}.tsv", {more}}}' for file, more in entries.items())
        head = f'run_folder = "{tmp_path}/run"\n[data]\nsource = "files"\n{section}'
        (tmp_path / "run.toml").write_text(
            f"{head}train = [{written}]\nvalidation = [{written}]\n{REST.replace('steps = 5', f'steps = {steps}', 1)}"
        )
        return RunFolder(tmp_path / "run"), invoke(app, tmp_path / "run.toml")

    return run


def into(**targets):
    return {file: f'source_language = "en", target_language = "{code}"' for file, code in targets.items()}


def assert_refused(result, reason):
    last = result.stderr.splitlines()[-1]
    assert result.exit_code == 1 and last.startswith("Error: ") and reason in last and "in another run_folder" in last
    assert "Traceback" not in result.stderr


@pytest.mark.nightly
def test_a_run_with_tags_keeps_the_languages_that_its_text_has_no_longer(train):
    folder, result = train(into(de="de", fr="fr"), 2)
    assert result.exit_code == 0 and folder.inference().languages == TAGS, result.stderr
    _, result = train(into(de="de", fr="es"), 4)
    assert_refused(result, "has the symbol <2es>, which the tokenizer")
    assert folder.inference().languages == TAGS
    _, result = train(into(de="de"), 4)
    assert result.exit_code == 0, result.stderr
    assert folder.inference().languages == TAGS
    translator = Translator.load(folder.path)
    told = [each.text for each in translator.translate(["two"], target_language="fr")]
    assert told == [each.text for each in translator.translate(["<2fr>two"])]
    with pytest.raises(UserError, match="this model writes de, fr"):
        translator.translate(["two"], target_language="es")


@pytest.mark.nightly
def test_the_codes_of_one_pair_may_be_corrected_and_another_tag_is_refused(train):
    plain, section = {"de": 'tag = ""'}, 'source_language = "en"\ntarget_language = "{}"\n'
    folder, result = train(plain, 2, section.format("ed"))
    assert result.exit_code == 0 and folder.inference().languages.target == {"ed": ""}, result.stderr
    _, result = train(plain, 4, section.format("de"))
    assert result.exit_code == 0 and folder.inference().languages == Languages({"en": ""}, {"de": ""})
    _, result = train(into(de="de"), 6)
    assert_refused(result, "has the symbol <2de>, which the tokenizer")


@pytest.mark.nightly
def test_a_run_of_an_imported_model_goes_on_with_other_languages_that_the_model_has(tmp_path):
    """It learns the pair that its configuration names now; one that the model lacks, or none, changes nothing."""
    start, path, pairs = tmp_path / "start", tmp_path / "tuned.toml", told_languages.PAIRS["en", "fr"]
    write_run(import_folder(m2m_folder(tmp_path / "imported")), start, [])
    folder, languages = RunFolder(tmp_path / "tuned"), RunFolder(start).inference().languages
    few = ["training.checkpoint_every=30", "training.validate_every=30", "training.tokens_per_batch=64"]

    def resumed(target, steps, without=""):
        entries = told_languages.entries_in(tmp_path, {("en", target): pairs}).replace(without, "")
        path.write_text(told_languages.CONFIG.format(folder=tmp_path, start=start, entries=entries), encoding="utf-8")
        return invoke(app, path, *(word for key in (*few, f"training.steps={steps}") for word in ("--set", key)))

    assert resumed("de", 2).exit_code == 0
    start.rename(tmp_path / "gone")  # the run remembers its languages itself
    before = {file: file.read_bytes() for file in (folder.config, folder.inference_file)}
    assert_one_sentence(resumed("xx", 4), "The target language is 'xx'; this model writes", "Set data.source_language")
    assert_one_sentence(resumed("de", 4, ', target_language = "de"'), "say which is the target language. Set data.")
    assert {file: file.read_bytes() for file in before} == before
    result = resumed("fr", 60)
    assert result.exit_code == 0, result.output
    assert folder.inference().languages == languages
    found = Translator.load(folder.path).translate(
        [source for source, _ in pairs], source_language="en", target_language="fr"
    )
    assert [each.text for each in found] == [target for _, target in pairs]
