"""A language that is added to an imported model begins as a related one, and changes nothing else."""

import itertools
import string

import numpy as np
import pytest

import train.__main__
from export import __main__ as export
from export.client.client import ServingClient
from keras_transformer.commands.import_model import app
from keras_transformer.ground.errors import ConfigError
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.grown import with_language, with_languages
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.versions import LITERT
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.m2m import KINDS, M2M, NLLB, m2m_folder
from tests.support.marian import marian_folder
from tests.support.runs import SENTENCES
from tests.support.servers import serving
from tests.train.test_told_languages import CONFIG, entries_in

NEW = {M2M: ("gsw", "de")}
OF_NLLB = ("gsw_Latn", "deu_Latn")
PIECES = {M2M: ("__gsw__", "__de__")}
PAIRS = [("two dogs run", "zwoi hünd renned"), ("a man sits", "en maa hocket"), ("a dog", "en hund")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_language_is_the_last_piece_and_a_copy_of_another(kind, tmp_path):
    before = import_folder(m2m_folder(tmp_path / "m2m", kind))
    (code, like), (piece, of_like) = NEW.get(kind, OF_NLLB), PIECES.get(kind, OF_NLLB)
    after, rows = with_language(before, code, like), before.config.vocab_size
    assert after.config == before.config.replace(vocab_size=rows + 1)
    assert after.tokenizer.pieces() == [*before.tokenizer.pieces(), piece]
    assert after.tokenizer.silent == {*before.tokenizer.silent, rows}
    assert after.tokenizer.encode(f"{piece} two") == before.tokenizer.encode(f"{piece} two")
    assert after.languages.source == after.languages.target == {**before.languages.target, code: piece}
    source = before.tokenizer.pieces().index(of_like)
    assert after.values.keys() == before.values.keys()
    for path, value in before.values.items():
        expected = np.concatenate([value, value[source][None]]) if path.startswith("embedding") else value
        np.testing.assert_array_equal(after.values[path], expected)


def test_before_training_it_is_translated_as_the_language_that_it_is_like(tmp_path):
    folder = m2m_folder(tmp_path / "m2m", NLLB)
    assert invoke(app, folder, tmp_path / "run", "--add-language", "gsw_Latn=de").exit_code == 0
    translator = Translator.load(tmp_path / "run")
    found, expected = (
        translator.translate(SENTENCES[:3], source_language="en", target_language=code) for code in ("gsw", "de")
    )
    assert [each.text for each in found] == [each.text for each in expected]


@pytest.mark.parametrize(
    ("code", "like", "sentence"),
    [
        ("de", "en", "The language de is one that this model has already."),
        ("deu", "en", "The language deu is one that this model has already, as de."),
        ("", "de", "The language is '', but the codes of this model are as af"),
        ("gsw ", "de", "The language is 'gsw ', but the codes"),
        ("gs\u0175", "de", "but the codes of this model are as af"),
        ("gsw", "", "say which is the target language"),
        ("gsw", "xx", "The target language is 'xx'; this model writes af"),
        ("gsw_Latn", "de", "the codes of this model are as af, am, ar: give"),
        ("Swiss German", "de", "The language is 'Swiss German', but"),
    ],
)
def test_a_language_that_cannot_be_added_is_one_sentence(code, like, sentence, tmp_path):
    with pytest.raises(ConfigError) as error:
        with_language(import_folder(m2m_folder(tmp_path / "m2m")), code, like)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_other_models_and_other_words_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="can be added to M2M-100, NLLB-200 and mBART-50, and this is Marian"):
        with_language(import_folder(marian_folder(tmp_path / "marian")), "gsw", "de")
    folder = m2m_folder(tmp_path / "m2m")
    assert_one_sentence(invoke(app, folder, tmp_path / "run", "--add-language", "gsw"), "give CODE=LIKE")


def test_a_thousand_languages_are_added_at_once_as_one_by_one(tmp_path):
    """The second one is like the first, which is like German; more than Python's stack would hold if they nested."""
    before = import_folder(m2m_folder(tmp_path / "m2m", NLLB))
    additions = [("aaa_Latn", "deu_Latn"), ("aab_Latn", "aaa_Latn")]
    codes = ("".join(letters) for letters in itertools.product("qxz", string.ascii_lowercase, string.ascii_lowercase))
    additions += [(f"{code}_Latn", "zul_Latn") for code in itertools.islice(codes, 1000)]
    after, single = (
        with_languages(before, additions),
        with_language(with_language(before, *additions[0]), *additions[1]),
    )
    rows, names = before.config.vocab_size, [code for code, _ in additions]
    assert after.config.vocab_size == rows + 1002 and after.tokenizer.pieces()[rows:] == names
    assert list(after.languages.target)[-1002:] == names and single.tokenizer.pieces()[rows:] == names[:2]
    like = [before.tokenizer.pieces().index(code) for code in ("deu_Latn", "zul_Latn")]
    table, path = after.values["embedding/matrix"], "embedding/matrix"
    np.testing.assert_array_equal(table[rows:], before.values[path][[like[0]] * 2 + [like[1]] * 1000])
    np.testing.assert_array_equal(single.values[path], table[: rows + 2])


def test_a_language_twice_or_without_its_two_codes_is_refused_and_nothing_is_written(tmp_path):
    folder = m2m_folder(tmp_path / "m2m")
    for value, sentence in (("gsw=de", "has already"), ("=de", "give CODE=LIKE"), ("", "give CODE=LIKE")):
        result = invoke(app, folder, tmp_path / "run", "--add-language", "gsw=de", "--add-language", value)
        assert_one_sentence(result, sentence)
    assert not (tmp_path / "run").exists()


@pytest.mark.release
@pytest.mark.slow
@pytest.mark.parametrize("kind", [M2M, NLLB])
def test_a_new_language_is_learned_and_goes_out(kind, tmp_path):
    code, like = NEW.get(kind, OF_NLLB)
    folder = m2m_folder(tmp_path / "m2m", kind)
    assert invoke(app, folder, tmp_path / "run", "--add-language", f"{code}={like}").exit_code == 0
    config = tmp_path / "tuned.toml"
    entries = entries_in(tmp_path, {("en", code): [(source, target.replace("ü", "u")) for source, target in PAIRS]})
    config.write_text(CONFIG.format(folder=tmp_path, start=tmp_path / "run", entries=entries), encoding="utf-8")
    result = invoke(train.__main__.app, config, "--set", "training.tokens_per_batch=64")
    assert result.exit_code == 0, result.output
    tuned, texts = tmp_path / "tuned", [source for source, _ in PAIRS]
    assert code in RunFolder(tuned).inference().languages.target
    translator, languages = Translator.load(tuned), {"source_language": "en", "target_language": code}
    expected = [target.replace("ü", "u") for _, target in PAIRS]
    assert [each.text for each in translator.translate(texts, **languages)] == expected
    names = "--source-language", "en", "--target-language", code
    result = invoke(export.app, tuned, "--to", tmp_path / "model", "--litert", "--no-check", *names)
    assert result.exit_code == 0, result.output
    version = tmp_path / "model" / "1"
    with serving(version.parent) as server:
        for engine in (ExportedTranslator(version), LiteTranslator(version / LITERT), ServingClient(server.url)):
            assert [each.text for each in engine.translate(texts, **languages)] == expected
            others = {"source_language": "en", "target_language": like}
            in_others = [each.text for each in translator.translate(texts, **others)]
            assert [each.text for each in engine.translate(texts, **others)] == in_others
    result = invoke(export.app, tuned, "--to", tmp_path / "out", "--format", "huggingface")
    if kind == M2M:
        assert_one_sentence(result, "has a list of languages of its own, without gsw: export this model with")
        return
    assert result.exit_code == 0, result.output
    again = import_folder(tmp_path / "out")
    assert again.languages == translator.languages and again.tokenizer.pieces() == translator.tokenizer.pieces()
