"""An export of a run with a shortlist searches over it, as the Translator of the run does."""

import json
from unittest import mock

import numpy as np
import pytest

from export import __main__ as command
from export.ctranslate2.convert import write_vocabulary_map
from export.graph.operations import refuse_xla
from export.litert import convert
from export.litert.write import write_model
from keras_transformer.ground.files import sha256_of
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import RUN_OPTIONS, SearchOptions
from keras_transformer.shortlist.lexicon import Lexicon
from keras_transformer.shortlist.shortlist import build, shortlist_of, sum_of
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.exports import write_version
from tests.support.runs import FIRST_PIECE, RUN_MODEL, SENTENCES, random_run

OPTIONS = SearchOptions(beam_size=3, extra_length=9, shortlist="on")
LINES = [*SENTENCES, "", "a cat", "Küche , Männer"]
LONGEST = 14  # tokens of a source
BEST = 4
ALONE = ("--signature", "serving_default")  # the others take most of the time


def with_shortlist(folder):
    """A random run with a random shortlist, which is the default of its searches."""
    random_run(folder)
    generator, pieces = np.random.default_rng(3), RUN_MODEL.vocab_size
    targets = np.concatenate([generator.choice(np.arange(FIRST_PIECE, pieces), BEST, False) for _ in range(pieces)])
    lexicon = Lexicon(np.repeat(np.arange(pieces), BEST), targets, np.ones(len(targets)))
    tokenizer = open_tokenizer(folder / "tokenizer.model")
    build(lexicon, np.arange(262, 270), BEST, pieces, sum_of(tokenizer)).save(folder / "shortlist.npz")
    Inference(search={"shortlist": "on", "extra_length": 9}).save(folder / "inference.json")
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return with_shortlist(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run, OPTIONS, max_source_tokens=LONGEST)


@pytest.fixture(scope="module")
def expected(translator):
    return translator.translate(LINES)


def assert_same(found, expected):
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)


@pytest.mark.nightly
def test_the_translator_writes_pieces_of_the_shortlist_alone_in_any_batch(run, translator, expected):
    shortlist, tokenizer = shortlist_of(RunFolder(run), OPTIONS), translator.tokenizer
    for line, translation in zip(LINES, expected, strict=True):
        assert set(translation.ids) <= shortlist.of([*tokenizer.encode(line), 3])
    assert_same([translator.translate([line])[0] for line in LINES], expected)
    without = Translator.load(run, SearchOptions(beam_size=3, extra_length=9), max_source_tokens=LONGEST)
    assert sum(some.ids != one.ids for some, one in zip(expected, without.translate(LINES), strict=True)) > 5


@pytest.mark.nightly
def test_a_prefix_is_written_whatever_the_shortlist_has(translator):
    found = translator.translate(LINES[:3], prefixes=["forty-one dogs", "Küche", ""])
    assert found[0].text.startswith("forty-one dogs") and found[1].text.startswith("Küche")


@pytest.mark.nightly
def test_a_saved_model_translates_as_the_run_does(run, expected, tmp_path):
    write_version(run, tmp_path / "1", OPTIONS, LONGEST)
    refuse_xla(tmp_path / "1")
    for size in (1, 32):
        assert_same(ExportedTranslator(tmp_path / "1", size).translate(LINES), expected)


@pytest.mark.nightly
def test_a_litert_model_translates_as_the_run_does(run, translator, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "CHOSEN", {None: (2, 0.1)})  # columns of one sentence, all pieces of several
    write_model(load_run(run)[0], translator, tmp_path / "model", "model", None)
    assert_same(LiteTranslator(tmp_path / "model").translate(LINES), expected)
    assert LiteTranslator(tmp_path / "model").options.shortlist == "on"


@pytest.mark.release
@pytest.mark.usefixtures("brief_latencies")
def test_the_default_of_a_run_is_exported_and_the_certificate_says_so(run, tmp_path):
    result = invoke(command.app, run, "--to", tmp_path / "export", "--max-source-tokens", LONGEST, *ALONE)
    assert result.exit_code == 0, result.output
    certificate = json.loads((tmp_path / "export" / "1" / "certificate.json").read_text(encoding="utf-8"))
    assert set(certificate["search"]) == set(RUN_OPTIONS) and certificate["search"]["shortlist"] == "on"
    assert certificate["sha256"]["shortlist.npz"] == sha256_of(run / "shortlist.npz")


@pytest.mark.release
def test_the_vocabulary_map_of_ctranslate2_has_the_lists_and_it_translates_with_them(run, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    folder = tmp_path / "model"
    result = invoke(command.app, run, "--to", folder, "--format", "ctranslate2")
    assert result.exit_code == 0, result.output
    shortlist, tokenizer = shortlist_of(RunFolder(run), OPTIONS), open_tokenizer(run / "tokenizer.model")
    pieces = tokenizer.pieces()
    lines = (folder / "vmap.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    lists = {source: targets.split(" ") for source, targets in (line.split("\t") for line in lines)}
    assert lists[""] == [pieces[number] for number in shortlist.always]
    assert lists[pieces[280]] == [pieces[number] for number in shortlist.list_of(280)]
    assert "use_vmap=True" in (folder / "README.md").read_text(encoding="utf-8")
    opened = ctranslate2.Translator(str(folder))
    for line in SENTENCES:
        [result] = opened.translate_batch(
            [[pieces[number] for number in tokenizer.encode(line)]], use_vmap=True, max_decoding_length=20
        )
        assert set(result.hypotheses[0]) <= {pieces[number] for number in shortlist.of(tokenizer.encode(line))}


def test_the_vocabulary_map_has_each_piece_that_a_text_can_have_once(tmp_path):
    pieces = ["<pad>", "<unk>", "<s>", "</s>", "a", "b"]
    shortlist = mock.Mock(always=np.array([3, 4]), list_of=lambda number: [number])
    write_vocabulary_map(shortlist, mock.Mock(pieces=lambda: pieces), tmp_path)
    assert (tmp_path / "vmap.txt").read_text(encoding="utf-8") == "\t</s> a\na\ta\nb\tb\n"
    assert shortlist.check_tokenizer.called
