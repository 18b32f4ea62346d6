"""The same line by every engine: what it asks for comes through alike, and what an engine lacks is one sentence."""

import re

import pytest

from cluster.engines import GraphEngine
from export.client.client import ServingClient
from export.litert.write import write_model
from keras_transformer.ground.errors import ConfigError
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.pieces.tokenizer import train_tokenizer
from keras_transformer.runs.lite_folder import Description, LiteFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.asks import NOTHING
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.placeholders import symbols_of
from keras_transformer.text.road import refuse_beyond
from keras_transformer.text.spans import Protection
from keras_transformer.translation.exported import ExportedTranslator
from tests.support.exports import write_version
from tests.support.places import ROOT
from tests.support.runs import RUN_MODEL, SENTENCES, random_run
from tests.support.servers import serving

OPTIONS = SearchOptions(beam_size=3, extra_length=8)
ENGINES = ("Translator", "ExportedTranslator", "ServingClient", "Spark", "LiteTranslator")
LINES = ["the fox {a} sees {b}", "a dog at https://x.org", "{x}", "", "the cat"]
SPANS = Protection(("urls", "placeholders"))
BEGINS = ["the ca", "Zwei ", "a", "a", ""]


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """Of one run whose tokenizer has placeholders, by the names of ENGINES."""
    folder = tmp_path_factory.mktemp("engines")
    run = random_run(folder / "run")
    train_tokenizer(SENTENCES * 5, run / "tokenizer.model", RUN_MODEL.vocab_size, symbols_of(3))
    names = ("serving_default", "translate", "tokenize")
    translator = write_version(run, folder / "model" / "1", OPTIONS, max_source_tokens=24, names=names)
    write_model(load_run(run)[0], translator, folder / "lite", "lite", None, constraints=True)
    with serving(folder / "model") as server:
        made = (
            translator,
            ExportedTranslator(folder / "model"),
            ServingClient(server.url),
            GraphEngine(str(folder / "model" / "1"), 1),
            LiteTranslator(folder / "lite"),
        )
        yield dict(zip(ENGINES, made, strict=True))


def told(translations):
    return [(each.text, pytest.approx(each.score, abs=1e-3), each.unplaced) for each in translations]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"protect": SPANS}, {"protect": SPANS, "prefixes": BEGINS}], ids=len)
@pytest.mark.parametrize("name", ENGINES[1:])
def test_a_line_has_the_same_translation_by_every_engine(engines, name, asked):
    expected = engines["Translator"].translate(LINES, **asked)
    assert told(expected) == told(engines[name].translate(LINES, **asked))
    for line, best, prefix in zip(LINES, expected, asked.get("prefixes", [""] * 5), strict=True):
        assert not asked or all(part in best.text for part in re.findall(r"\{\w\}|https\S+", line))
        assert best.text.startswith(prefix) or line in ("", "{x}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES[1:])
def test_every_engine_knows_what_must_and_must_not_come_and_places_tags_and_terms_alike(engines, name):
    forbidden = Glossary([Term(engines["Translator"].translate(["the cat"])[0].text.split()[0], "-")])
    protection = Protection(("tags",), Glossary([Term("dog", "Köter")]), forbidden)
    asked = {"protect": protection, "required": [["kochen"], ["forty"], []]}
    lines = ["<b>the dog</b> runs", "a dog", "the cat"]
    expected = engines["Translator"].translate(lines, **asked)
    assert told(expected) == told(engines[name].translate(lines, **asked))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES[1:])
def test_a_text_is_translated_alike_by_every_engine(engines, name):
    text = "A dog runs. See {x}.\n\nthe cat  kochen"
    expected, found = (engines[each].translate_document(text, protect=SPANS) for each in ("Translator", name))
    assert found.text == expected.text and "{x}" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_what_every_engine_shows_while_it_writes_is_its_translation(engines, name):
    engine = engines[name]
    greedy = engine.with_options({"beam_size": 1}) if "beam_size" in engine.searches else engine
    pieces = [list(greedy.translate_live(line)) for line in LINES + SENTENCES]
    assert ["".join(of_line) for of_line in pieces] == [best.text for best in greedy.translate(LINES + SENTENCES)]
    assert (max(map(len, pieces)) > 2) == (name != "LiteTranslator")
    assert list(engine.translate_live(LINES[0])) == [engine.translate(LINES[:1])[0].text]  # with a beam


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_the_table_of_the_manual_is_what_engines_say_of_themselves_and_the_rest_is_refused(engines, name):
    page = (ROOT / "docs" / "translating.md").read_text(encoding="utf-8")
    table = re.search(r"^\| what \|.*?\n\n", page, re.MULTILINE | re.DOTALL)[0]
    head, _, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.strip().splitlines()]
    assert sum(cell == "no" for row in rows for cell in row) <= 3
    engine, cells = engines[name], {}
    for row in rows:
        cells |= dict.fromkeys(re.findall(r"`(\w+)`", row[0]), row[head.index(name)])
    assert len(cells) == 8
    for ability, cell in cells.items():
        assert (ability in engine.abilities) == (cell == "yes"), (ability, cell)
        if cell != "yes":
            with pytest.raises(ConfigError, match=rf"{engine.name} does not take {ability}; it takes .*protect"):
                refuse_beyond(engine, [ability])


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_a_litert_file_aligns_each_word_as_the_translator_does(engines, threads):
    translator, lite = engines["Translator"], LiteTranslator(engines["LiteTranslator"].folder, threads=threads)
    lines = [*SENTENCES, "", "the dog runs " * 12]  # the last one is longer than both read
    found = translator.translate(lines)
    of_texts = [translation._replace(ids=()) for translation in found]  # as a part of an output has none
    pairs = list(zip(2 * lines, found + of_texts, strict=True))
    asks = [NOTHING] * len(pairs)
    expected = translator.align(pairs, asks)
    assert lite.align(pairs, asks) == expected and len({source for each in expected for source, _ in each}) > 3


@pytest.mark.slow
def test_an_older_file_of_litert_refuses_a_prefix_by_name_and_has_no_alignment(engines, tmp_path):
    older = LiteFolder(tmp_path / "older")
    older.path.mkdir()
    for file in LiteFolder(engines["LiteTranslator"].folder).path.iterdir():
        (older.path / file.name).write_bytes(file.read_bytes())
    description = Description.load(older.description)
    rooms = tuple(room for room in description.rooms if not room.is_constrained)
    description._replace(rooms=rooms, alignment=None).save(older.description)
    translator = LiteTranslator(older.path)
    assert told(translator.translate(LINES)) == told(engines["LiteTranslator"].translate(LINES))
    with pytest.raises(ConfigError, match="This LiteRT model does not take target_prefix; it takes glossary, keep, n_"):
        translator.translate(["the cat"], prefixes=["a"])
    assert not translator.aligns and translator.align([("a", translator.translate(["a"])[0])], [NOTHING]) == [()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_lines_without_a_letter_stay_and_branches_are_translated_one_by_one(name, engines):
    lines = ["12345", "the {n, plural, one {fox #} other {hens {x}}}", "\U0001f600", "", "the cat"]
    kept, message, emoji, blank, _ = (best.text for best in engines[name].translate(lines))
    assert (kept, emoji, blank) == ("12345", "\U0001f600", "")
    assert re.fullmatch(r"\{n, plural, one \{.*#.*\} other \{.*\{x\}.*\}\}", message), message
