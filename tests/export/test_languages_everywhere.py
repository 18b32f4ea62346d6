"""A run of many languages, exported: every engine translates into the one that is asked, and refuses others alike."""

import base64
import functools
import json
import shutil
import urllib.parse

import pytest
import requests
from sacrebleu import sentence_chrf

from cluster.engines import GraphEngine
from cluster.works import Nearest, Score, Translate
from export import translate as translate_command
from export.__main__ import app
from export.client.client import ServingClient
from export.versions import ExportError
from keras_transformer.ground.errors import UserError
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.tokenizer import train_tokenizer
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.versions import LANGUAGES, LITERT, languages_in
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.asks import Ask
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.runs import RUN_MODEL, SENTENCES, random_run
from tests.support.servers import serving

PIECES = {"en": "__en__", "de": "__de__", "fra": "__fr__"}
M2M = Languages(PIECES, PIECES, source_first="source", target_first="target")
LINES = [*SENTENCES[:9], "", "12"]  # as many as LiteRT searches together, and some alone
ENGINES = ("ExportedTranslator", "ServingClient", "Spark", "LiteTranslator")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graphs_as_written")]


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """The export of a run, with English to German by default, and the run."""
    folder = tmp_path_factory.mktemp("languages")
    run = random_run(folder / "run")
    train_tokenizer(SENTENCES * 5, run / "tokenizer.model", RUN_MODEL.vocab_size, list(PIECES.values()))
    Inference(search={"beam_size": 2, "extra_length": 8}, languages=M2M).save(run / "inference.json")
    how = ["--to", folder / "model", "--source-language", "eng", "--target-language", "de", "--litert"]
    names = ["--signature", "serving_default", "--signature", "translate", "--signature", "tokenize"]
    names += ["--signature", "score"]
    result = invoke(app, run, *how, *names, "--max-source-tokens", "16")
    assert result.exit_code == 0 and "9 of 9 translations the same" in result.stdout, result.stderr
    return folder / "model" / "1", run


@pytest.fixture(scope="module")
def opened():
    """Opens each export once for all tests: what TensorFlow makes of a SavedModel takes 300 MB."""
    return functools.cache(translate_command.translator_of)


@pytest.fixture
def translate_export(opened, monkeypatch):
    """The command, which finds exports opened."""
    monkeypatch.setattr(translate_command, "translator_of", opened)
    return functools.partial(invoke, translate_command.app)


@pytest.fixture(scope="module")
def engines(export, opened):
    version, run = export
    with serving(version.parent) as server:
        made = (
            opened(version, BATCH_SIZE),
            ServingClient(server.url),
            GraphEngine(str(version), 1),
            LiteTranslator(version / LITERT),
        )
        yield dict(zip(ENGINES, made, strict=True)) | {"Translator": Translator.load(run, max_source_tokens=16)}


def told(translations):
    return [(each.text, pytest.approx(each.score, abs=1e-3)) for each in translations]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("target", ["de", "fr"])
def test_every_engine_writes_the_language_that_is_asked(engines, name, target):
    expected = engines["Translator"].translate(LINES, source_language="en", target_language=target)
    assert told(engines[name].translate(LINES, source_language="en", target_language=target)) == told(expected)
    if target == "de":
        assert told(engines[name].translate(LINES)) == told(expected)
        assert told(engines[name].translate(LINES, target_language="deu")) == told(expected)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(("how", "verb"), [({"target_language": "xx"}, "writes"), ({"source_language": "xx"}, "reads")])
def test_every_engine_refuses_a_language_that_the_model_lacks_and_names_those_it_has(engines, name, how, verb):
    with pytest.raises(Exception, match=f"This model {verb} en, de, fra|this model {verb} en, de, fra") as error:
        engines[name].translate(LINES[:1], **how)
    assert isinstance(error.value, UserError) or name == "Spark"


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["de", "fr"])
def test_every_work_on_a_cluster_is_in_the_languages_that_are_asked(engines, export, target):
    rows, ask = [(line, SENTENCES[-1]) for line in SENTENCES[:5]], Ask(source_language="en", target_language=target)
    texts, references = map(list, zip(*rows, strict=True))
    languages = {"source_language": "en", "target_language": target}
    translator = Translator.load(export[1], SearchOptions(beam_size=2, n_best=2, extra_length=8), max_source_tokens=16)
    beams = translator.translate_n_best(texts, **languages)
    back = Translate((), "<bt>", ask).on(engines["Spark"])([(text,) for text in texts])
    assert [row["translation"] for row in back] == [f"<bt> {best.text}" for best, *_ in beams]
    nearest = [max(beam, key=lambda each: sentence_chrf(each.text, [SENTENCES[-1]]).score).text for beam in beams]
    assert [row["translation"] for row in Nearest((), ask).on(engines["Spark"])(rows)] == nearest
    scores = Scorer.load(export[1], max_source_tokens=16).score(texts, references, **languages)
    found = [row["log_probability"] for row in Score(ask).on(engines["Spark"])(rows)]
    assert found == pytest.approx([each.log_probability for each in scores], abs=2e-3)


@pytest.mark.nightly
def test_endpoints_write_the_language_of_their_field_whatever_a_text_begins_with(engines):
    """A tag that the model has not is text, its own source tag is read once, another one is refused.

    The texts are as short as the export reads: a longer one is divided by an endpoint, and cut by `translate`.
    """
    server = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(engines["ServingClient"].transport.url))

    def answer(path, text, **names):
        return requests.post(f"{server}/{path}", json={names.pop("field"): text, **names}, timeout=60)

    def libretranslate(text, target="de"):
        return answer("translate", text, field="q", source="en", target=target)

    def translations(text, target="de", **more):
        return answer("v1/translations", text, field="input", source_language="en", target_language=target, **more)

    for text in ("the cat", "<2xx> the cat", ">>xx<< the cat", "__xx__ the cat", "__en__ the cat", "the __fr__ cat"):
        for target in ("de", "fr"):
            [expected] = engines["Translator"].translate([text], source_language="en", target_language=target)
            assert libretranslate(text, target).json() == {"translatedText": expected.text}
            assert translations(text, target).json()["text"] == expected.text
    assert libretranslate("__en__the cat").json() == libretranslate("the cat").json()
    for text in ("__fr__ the cat", "The cat. __fr__ The cat."):
        refused = libretranslate(text)
        assert refused.status_code == 400 and "begins with the tag of another language" in refused.json()["error"]
        refused = translations(text)
        assert refused.status_code == 400 and "begins with the tag of another" in refused.json()["error"]["message"]
    assert "begins with the tag of another" in translations("__fr__ the cat", stream=True).json()["error"]["message"]


@pytest.mark.nightly
@pytest.mark.parametrize("code", [b"xx", b"\xff\xfe", b"x" * 10_000])
def test_a_code_that_is_no_language_is_refused_by_a_request_whatever_its_bytes_are(engines, code):
    """JSON has bytes that are no text as base64."""
    one = {"text": "the cat", "target_language": {"b64": base64.b64encode(code).decode()}}
    body = {"signature_name": "translate", "instances": [one]}
    refused = requests.post(f"{engines['ServingClient'].transport.url}:predict", json=body, timeout=60)
    sentence = "This model writes en, de, fra; the target_language is another. ["
    assert refused.status_code == 400 and refused.json()["error"].startswith(sentence), refused.text
    assert len(refused.json()["error"]) < 200


@pytest.mark.nightly
def test_a_version_says_its_languages_and_damage_is_one_sentence(export, tmp_path):
    version, _ = export
    assert languages_in(version) == M2M.by_default("en", "de")
    assert languages_in(tmp_path) == Languages()
    (tmp_path / LANGUAGES).parent.mkdir()
    for content in ("[]", "{", json.dumps({"source": 3})):
        (tmp_path / LANGUAGES).write_text(content)
        with pytest.raises(ExportError, match="languages.json cannot be read: .*Export the run again"):
            languages_in(tmp_path)


@pytest.mark.nightly
def test_commands_take_languages(export, translate_export):
    version, run = export
    for folder in (version, version / LITERT):
        result = translate_export(folder, "--from", "en", "--to", "fr", stdin=f"{LINES[0]}\n".encode())
        [expected] = Translator.load(run, max_source_tokens=16).translate(
            LINES[:1], source_language="en", target_language="fra"
        )
        assert result.stdout == f"{expected.text}\n"


@pytest.mark.nightly
@pytest.mark.parametrize("asked", [("--to", "xx"), ("--from", "xx"), ("--to", "de", "--n-best", "99")])
def test_what_the_graph_refuses_ends_the_command_with_its_sentence(export, translate_export, asked):
    version, _ = export
    result = translate_export(version, *asked, stdin=f"{LINES[0]}\n".encode())
    assert result.exit_code == 1 and result.stderr.splitlines()[-1].startswith("Error: "), result.stderr
    assert "Traceback" not in result.stderr and "node" not in result.stderr and "assertion" not in result.stderr


@pytest.mark.nightly
def test_an_export_whose_requests_need_a_language_wants_a_default(export, tmp_path):
    _, run = export
    result = invoke(app, run, "--to", tmp_path / "model", "--target-language", "de")
    assert result.exit_code == 1 and "This model reads en, de, fra: say which is the source language" in result.stderr
    result = invoke(app, run, "--to", tmp_path / "model", "--source-language", "en", "--target-language", "xx")
    assert result.exit_code == 1 and "this model writes en, de, fra" in result.stderr
    how = ["--source-language", "en", "--target-language", "de", "--format", "ctranslate2"]
    result = invoke(app, run, "--to", tmp_path / "model", *how)
    assert result.exit_code == 1 and "export it as saved_model or litert" in result.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.nightly
def test_a_run_whose_own_text_has_tags_is_exported_with_a_default(export, tmp_path):
    """The validation text has a tag for each line, of another language too."""
    _, of_m2m = export
    run = shutil.copytree(of_m2m, tmp_path / "run")
    tags = Languages(dict.fromkeys(PIECES, ""), PIECES, source_first="target")
    Inference(search={"beam_size": 2, "extra_length": 8}, languages=tags).save(run / "inference.json")
    tagged = [f"{piece} {line}" for line in SENTENCES[:3] for piece in PIECES.values()]
    (run / "validation.src.txt").write_text("\n".join(tagged))
    for name, format in (("lite", "litert"), ("ct2", "ctranslate2")):
        result = invoke(app, run, "--to", tmp_path / name, "--target-language", "fr", "--format", format)
        assert result.exit_code == 0, result.stderr
    expected = Translator.load(run).translate(LINES[:3], target_language="fr")
    assert told(LiteTranslator(tmp_path / "lite").translate(LINES[:3])) == told(expected)


@pytest.mark.nightly
def test_a_run_of_one_pair_refuses_others(export, tmp_path):
    _, run = export
    pair = Languages({"en": ""}, {"de": ""})
    translator = Translator.load(run, languages=pair)
    free = Translator.load(run, languages=Languages())
    assert translator.translate(LINES[:1], target_language="de-AT") == free.translate(LINES[:1])
    with pytest.raises(UserError, match="The target language is 'fr'; this model writes de"):
        translator.translate(LINES[:1], target_language="fr")
