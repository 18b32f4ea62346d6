"""Files through the local server: what `POST /translate_file` returns is what the command writes with `--format`."""

import functools

import pytest
import requests

from export import translate as translate_command
from export.server.libretranslate import file_endings
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.formats import FORMATS, WITH_FIELDS, WITH_LANGUAGE, WITH_STATES
from keras_transformer.text.formats.endings import STRINGS_OF_ANDROID, USUAL, format_of_name
from tests.support.commands import invoke
from tests.support.docx_files import docx, members_of, p, r
from tests.support.exports import write_version
from tests.support.languages import many, pair, tell, write_models
from tests.support.runs import random_run
from tests.support.servers import serving

OPENED = functools.cache(translate_command.translator_of)
XML = '<?xml version="1.0" encoding="utf-8"?>\n'
FILES = {  # of each format, by the name of a file: what has plurals, marks, escapes, bytes that are no UTF-8
    "a.txt": "A dog.  Two cats.\r\n\r\n - The end.\n",
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nA <i>dog</i>.\n\n2\n00:00:03,000 --> 00:00:04,000\nTwo.\n",
    "a.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000 line:0\nA dog.\n",
    "a.html": '<html lang="en"><p title="A cat">A <b>dog</b> &amp; cat.<br>Two.</p><code>x = 1</code>',
    "a.xlf": '<xliff version="2.0" srcLang="en"><file id="1"><unit id="1"><segment><source>A <pc id="1">dog</pc>.'
    "</source></segment></unit></file></xliff>",
    "b.xlf": '<xliff version="1.2"><file source-language="en" datatype="x" original="y"><body><trans-unit id="1">'
    "<source>A dog.</source></trans-unit></body></file></xliff>",
    "a.po": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n\n#, c-format\nmsgid "_Open %s"\nmsgstr ""\n\n'
    'msgid "A cat"\nmsgstr "Katze"\n\nmsgid "%d dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n',
    "a.arb": '{"@@locale": "en", "title": "A dog.", "n": {"x": "Two {name}.", "y": 3}}\n',
    STRINGS_OF_ANDROID: f'{XML}<resources><string name="a">A <b>dog</b>, don\\\'t.</string><plurals name="n">'
    '<item quantity="one">%d dog</item><item quantity="other">%d dogs</item></plurals></resources>\n',
    "a.strings": '/* A note. */\n"key" = "A \\"dog\\".\\n";\n',
    "u.strings": '"key" = "A dog.";\n'.encode("utf-16"),
    "a.properties": "# note\nkey = A dog, \\\n  two cats\nother=It''s {0}\n",
    "b.properties": "key=caf\u00e9 \u00fcber\n".encode("latin-1"),
    "a.ts": f'{XML}<!DOCTYPE TS>\n<TS version="2.1"><context><name>C</name><message><source>&amp;Open %1</source>'
    '<translation type="unfinished"></translation></message><message numerus="yes"><source>%n dog(s)</source>'
    '<translation type="unfinished"><numerusform></numerusform></translation></message></context></TS>\n',
    "a.docx": docx(p(r("A "), r("dog", "<w:b/>"), r(" & cats. Two.".replace("&", "&amp;"))), footer=p(r("The end"))),
    "a.md": "# A dog\n\nTwo *cats* and `code`.\n\n- [The end](x.md)\n",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """English to Polish by a real model, whose weights are random; the others write what they are asked."""

    def write(folder):
        names = ("serving_default", "translate", "tokenize")
        write_version(random_run(folder.parents[1] / "run"), folder, SearchOptions(extra_length=8), 64, names)
        tell(folder, source={"en": ""}, target={"pl": ""})

    written = {"en-pl": write, "fi-sv": pair("fi", "sv"), "nllb": many(["eng_Latn"], ["fin_Latn"])}
    return write_models(tmp_path_factory.mktemp("models"), **written)


@pytest.fixture
def command(models, monkeypatch):
    """`keras-transformer translate-export` of the model, which is opened once for all tests."""
    monkeypatch.setattr(translate_command, "translator_of", OPENED)
    return functools.partial(invoke, translate_command.app, str(models.parent / "en-pl" / "1"))


@pytest.fixture(scope="module")
def server(models):
    with serving(models) as address:
        yield f"http://{address.host}:{address.port}"


def sent(server, name, content, target="pl"):
    fields = {"source": "en", "target": target}
    return requests.post(f"{server}/translate_file", fields, files={"file": (name, content)}, timeout=120)


def test_the_files_have_every_format_that_the_server_takes():
    formats = {format_of_name(name) or "text" for name in FILES}
    assert formats == set(FORMATS) - set(WITH_FIELDS)
    assert set(file_endings()) == {"txt", *(ending for ending, format in USUAL.items() if format not in WITH_FIELDS)}


@pytest.mark.nightly
@pytest.mark.parametrize("name", FILES)
def test_the_server_returns_what_the_command_writes(server, command, tmp_path, name):
    content, format = FILES[name], format_of_name(name) or "text"
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(content)
    asked = ["--language", "en", *(["--target-language", "pl"] if format in WITH_LANGUAGE else [])]
    output = tmp_path / f"out_{name}" if name != STRINGS_OF_ANDROID else tmp_path / "out" / name
    output.parent.mkdir(exist_ok=True)
    result = command("--format", format, *asked, "--input", str(tmp_path / name), "--output", str(output))
    assert result.exit_code == 0, result.output
    found = sent(server, name, content)
    assert found.status_code == 200, found.text
    fetched = requests.get(found.json()["translatedFileUrl"], timeout=60)
    assert fetched.content == output.read_bytes() != content


def test_the_language_of_the_answer_decides_the_plurals_and_what_a_file_tells(server):
    def answer(name, target):
        return requests.get(sent(server, name, FILES[name], target).json()["translatedFileUrl"], timeout=60).text

    assert all(f'quantity="{form}"' in answer(STRINGS_OF_ANDROID, "pl") for form in ("one", "few", "many", "other"))
    assert 'quantity="few"' not in answer(STRINGS_OF_ANDROID, "fi")
    assert 'trgLang="pl"' in answer("a.xlf", "pl") and 'trgLang="fi"' in answer("a.xlf", "fi")
    assert answer("a.ts", "pl").count("<numerusform>") == 3


@pytest.mark.parametrize("name", FILES)
def test_two_models_in_turn_translate_files_of_one_language_and_refuse_those_of_two(server, name):
    found = sent(server, name, FILES[name], "sv")
    if format_of_name(name) in WITH_STATES:
        assert found.status_code == 400 and "ask for fi, or send a format of one language" in found.json()["error"]
    else:
        fetched = requests.get(found.json()["translatedFileUrl"], timeout=60).content
        if name == "a.docx":
            fetched = members_of(fetched)["word/document.xml"]
        assert "To sv: " in fetched.decode("utf-16" if name == "u.strings" else "latin-1")
