"""A model exported for LiteRT translates as the Translator does, without TensorFlow."""

import contextlib
import hashlib
import json
import re
import shutil
from unittest import mock

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from export import __main__ as command
from export import translate
from export.litert.convert import loops_of, rooms_up_to
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.lite import interpreters as lite
from keras_transformer.lite.translator import LiteTranslator, batches_in_rooms
from keras_transformer.model import Transformer
from keras_transformer.pieces.tokenizer import train_tokenizer
from keras_transformer.runs.lite_folder import Description, Room
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.placeholders import symbols_of
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.places import ROOT
from tests.support.processes import python
from tests.support.runs import RUN_MODEL, SENTENCES, decisive, random_run

LONGEST = 20  # tokens of a source
LINES = [*SENTENCES, "", "a cat", "the dog runs " * 9, "   ", "Küche , Männer", *SENTENCES[::-1]]
ROOMS = (Room(1, 4), Room(1, 9), Room(8, 4))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose outputs mostly end before their limit."""
    run = random_run(tmp_path_factory.mktemp("runs") / "run")
    model = decisive(Transformer(TransformerConfig.load(run / "model.json")), end=9.0)
    model.save_weights(str(run / "model.weights.h5"))
    (run / "validation.src.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return run


def run_export(run, folder, *arguments):
    options = ["--beam-size", 3, "--length-penalty", 1.5, "--extra-length", 9, "--max-source-tokens", LONGEST]
    return invoke(command.app, run, "--to", folder, "--format", "litert", *options, *arguments)


@pytest.fixture(scope="module")
def model(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports") / "model"
    result = run_export(run, folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"compared {len(LINES)} lines: {len(LINES)} translations with the same text")
    return folder


@pytest.fixture(scope="module")
def expected(run):
    translator = Translator.load(run, SearchOptions(3, 1.5, 9, n_best=3), max_source_tokens=LONGEST)
    return translator.translate_n_best(LINES)


# the translations


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_the_translations_are_those_of_the_translator_in_any_order(model, expected, threads):
    translator = LiteTranslator(model, n_best=3, threads=threads)
    order = np.random.default_rng(1).permutation(len(LINES))
    shuffled = translator.translate_n_best([LINES[index] for index in order])
    for index, translations in zip(order, shuffled, strict=True):
        assert [t._replace(score=0.0) for t in translations] == [t._replace(score=0.0) for t in expected[index]]
        assert [t.score for t in translations] == pytest.approx([t.score for t in expected[index]], abs=1e-4)
    assert len({len(translations) for translations in expected}) > 1 and any(t[0].is_cut for t in expected)


@pytest.mark.slow
def test_one_line_is_translated_as_among_others(model, expected):
    translator = LiteTranslator(model)
    alone = [translation for line in LINES for translation in translator.translate([line])]
    assert [translation.text for translation in alone] == [translations[0].text for translations in expected]
    assert translator.translate([]) == []


@pytest.mark.slow
def test_a_line_that_is_too_long_is_cut_and_named(model, caplog):
    LiteTranslator(model).translate(["a", "the dog runs " * 9])
    assert re.search(rf"line 2 .*only the first {LONGEST - 1} are used", caplog.text)


@pytest.mark.slow
def test_the_command_translates_without_tensorflow(model, expected):
    code = (
        "import sys; from export.translate import main; import keras_transformer.commands.console as console\n"
        "try: main(arguments=sys.argv[1:])\n"
        "finally: print(*{'tensorflow', 'keras', 'torch', 'jax'} & set(sys.modules), file=sys.stderr)"
    )
    process = python("-c", code, model, stdin="\n".join(LINES) + "\n")
    assert process.returncode == 0 and process.stdout.splitlines() == [best.text for best, *_ in expected]
    assert process.stderr.splitlines()[-1] == "" and "XNNPACK" not in process.stderr, process.stderr


@pytest.mark.slow
def test_the_readme_translates_as_the_run_does(model, expected, monkeypatch, capsys):
    [code] = re.findall(r"```python\n(.+?)```", (model / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(model.parent)
    best = expected[LINES.index("forty-one dogs")][0]
    exec(code.replace("A dog runs across the field.", "forty-one dogs"), {})
    *text, score = capsys.readouterr().out.split()
    assert (" ".join(text), float(score)) == (best.text, pytest.approx(best.score, abs=1e-4))


@pytest.mark.release
def test_weights_of_8_bits_make_a_smaller_file_and_the_difference_is_counted(run, model, tmp_path):
    result = run_export(run, tmp_path / "model", "--quantization", "int8")
    assert result.exit_code == 0, result.output
    certificate = json.loads((tmp_path / "model" / "certificate.json").read_text())
    counts = [certificate[name] for name in ("same", "ties", "same_text_with_another_score", "another_text")]
    assert sum(counts) == certificate["lines"] == len(LINES) and certificate["quantization"] == "int8"
    kinds = [kinds_of_weights(folder) for folder in (tmp_path / "model", model)]
    assert [np.int8 in kind for kind in kinds] == [True, False]
    config = TransformerConfig.load(run / "model.json")
    embeddings = [
        (np.float32, (config.vocab_size, config.d_model)) in tensors_of(folder)
        for folder in (tmp_path / "model", model)
    ]
    assert embeddings == [False, True]  # of integers, no array of floats is made
    sizes = [len(buffer.data) for buffer in buffers_of(tmp_path / "model")]
    assert sizes.count(config.vocab_size * config.d_model) == 1  # rows are read from the weights of logits


@pytest.mark.release
def test_the_file_of_the_model_in_the_box_is_little_larger_than_its_weights(tmp_path):
    run, options = ROOT / "presets/multi30k_en_de", ["--format", "litert", "--quantization", "int8"]
    result = invoke(command.app, run, "--to", tmp_path / "model", *options, "--max-source-tokens", 64)
    assert result.exit_code == 0, result.output
    weights = load_run(run)[0].count_params()  # bytes, of 8 bits each
    assert weights < (tmp_path / "model" / "search.tflite").stat().st_size < 1.5 * weights


@pytest.mark.nightly
def test_no_constant_has_an_entry_for_each_hypothesis_and_token(tmp_path):
    """Such as which tokens may come under the rule of placeholders: one row tells it of all hypotheses."""
    run = random_run(tmp_path / "run")
    train_tokenizer(SENTENCES * 5, run / "tokenizer.model", RUN_MODEL.vocab_size, symbols_of(3))
    result = run_export(run, tmp_path / "model")
    assert result.exit_code == 0, result.output
    sizes = {len(buffer.data) for buffer in buffers_of(tmp_path / "model")}
    assert sizes.isdisjoint(rows * 3 * RUN_MODEL.vocab_size for rows in range(1, 9))


def buffers_of(folder):
    model = schema.ModelT.InitFromPackedBuf((folder / "search.tflite").read_bytes(), 0)
    return [buffer for buffer in model.buffers if buffer.data is not None]


def tensors_of(folder):
    details = Interpreter(model_path=str(folder / "search.tflite")).get_tensor_details()
    return {(detail["dtype"], tuple(detail["shape"].tolist())) for detail in details}


def kinds_of_weights(folder):
    details = Interpreter(model_path=str(folder / "search.tflite")).get_tensor_details()
    return {detail["dtype"] for detail in details}


# rooms


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 50])
def test_each_sentence_is_in_one_room_that_holds_it_and_has_no_empty_row(count):
    lengths = dict(enumerate(np.random.default_rng(count).integers(1, 10, count).tolist()))
    batches = list(batches_in_rooms(lengths, ROOMS))
    assert sorted(index for _, indices in batches for index in indices) == sorted(lengths)
    for room, indices in batches:
        assert len(indices) == room.rows and max(lengths[index] for index in indices) <= room.tokens
        assert room.tokens == min(r.tokens for r in ROOMS if r.rows == room.rows and r.tokens >= lengths[indices[0]])


def test_eight_short_sentences_share_a_room():
    assert list(batches_in_rooms(dict.fromkeys(range(9), 3), ROOMS)) == [
        (Room(8, 4), list(range(8))),
        (Room(1, 4), [8]),
    ]


# what is refused


class FewSteps:
    """In place of an InterpreterPool: its outputs are the sentence itself, which rooms with a bound never finish."""

    def __init__(self, *of_file):
        self.asked = []

    def prepare(self, room):
        pass

    def run(self, room, source_ids, n_best):
        self.asked.append((room, [ids[ids != 0].tolist() for ids in source_ids]))
        is_done = np.array([room.outputs is None or np.sum(ids != 0) < room.outputs for ids in source_ids])
        scores, is_cut = np.where(is_done, -1.0, -np.inf)[:, np.newaxis], np.zeros((len(source_ids), 1), bool)
        return {"ids": source_ids[:, np.newaxis], "scores": scores, "is_cut": is_cut, "is_done": is_done}

    def map(self, translate, batches):
        for batch in batches:
            translate(batch)


def test_a_sentence_that_does_not_end_within_its_room_is_searched_again_in_one_for_any_output(
    run, tmp_path, monkeypatch
):
    rooms = (Room(1, 64), Room(1, 32, 12), Room(8, 32, 12))
    shutil.copy(run / "tokenizer.model", tmp_path)
    Description({"beam_size": 1}, rooms).save(tmp_path / "litert.json")
    monkeypatch.setattr("keras_transformer.lite.translator.InterpreterPool", FewSteps)
    translator = LiteTranslator(tmp_path)
    lines = ["a cat", *["the dog runs"] * 8, "the dog runs " * 5]
    assert [translation.text for translation in translator.translate(lines)] == [line.strip() for line in lines]
    [last], others = translator._interpreters.asked[-1:], translator._interpreters.asked[:-1]
    assert {room for room, _ in others} == set(rooms[1:]) and last[0] == rooms[0]
    assert translator.tokenizer.decode(last[1][0]) == lines[-1].strip()


def test_the_tokenizer_of_another_model_is_refused(run, tmp_path, monkeypatch):
    """Its ids would stand for other words. A folder of before its checksum was kept is opened."""
    monkeypatch.setattr("keras_transformer.lite.translator.InterpreterPool", FewSteps)
    shutil.copy(run / "tokenizer.model", tmp_path)
    own = hashlib.sha256((run / "tokenizer.model").read_bytes()).hexdigest()
    for checksum, refusal in ((own, None), (None, None), ("0" * 64, r"tokenizer\.model cannot be opened: Its SHA-256")):
        Description({"beam_size": 1}, ROOMS, tokenizer_sha256=checksum).save(tmp_path / "litert.json")
        with pytest.raises(ConfigError, match=refusal) if refusal else contextlib.nullcontext():
            LiteTranslator(tmp_path)


@pytest.fixture
def made(monkeypatch):
    """The signatures of the interpreters that pools make, in their order; they are no interpreters."""
    made = []
    monkeypatch.setattr(lite, "read_model", lambda *of_file: b"a file")
    monkeypatch.setattr(lite, "one_signature", lambda file, signature: signature.encode())
    monkeypatch.setattr(lite, "runner_of", lambda model, content, signature: made.append(signature) or mock.Mock())
    return made


def test_an_interpreter_is_made_when_it_is_needed_and_then_used_again(made):
    pool, room = lite.InterpreterPool("model", 2), ROOMS[0]
    pool.prepare(room)
    for _ in range(2):
        with pool._taken(room.signature) as first, pool._taken(room.signature) as second:
            assert first is not second
    assert made == [room.signature] * 2


def test_the_interpreters_that_were_used_last_stay(made):
    pool, rooms = lite.InterpreterPool("model", 1), [Room(1, tokens) for tokens in range(1, lite.KEPT + 2)]
    for room in (*rooms[:-1], rooms[0], rooms[-1]):  # the second one must go
        pool.prepare(room)
    assert made == [room.signature for room in rooms]
    for room in (rooms[0], *rooms[2:], rooms[1]):
        pool.prepare(room)
    assert made == [room.signature for room in (*rooms, rooms[1])]
    assert set(pool._contents) == {room.signature for room in rooms[1:]}


def test_a_room_whose_interpreter_cannot_be_made_leaves_the_pool_as_it_was(made, monkeypatch):
    pool = lite.InterpreterPool("model", 1)
    with monkeypatch.context() as patch:
        patch.setattr(lite, "one_signature", mock.Mock(side_effect=ValueError("It is damaged.")))
        with pytest.raises(ConfigError, match=r"^model cannot be opened: It is damaged\. Export the run again\.$"):
            pool.prepare(ROOMS[0])
    pool.prepare(ROOMS[0])
    assert len(made) == 1


@pytest.mark.parametrize("extra_length", [1, 50])
@pytest.mark.parametrize("longest", [16, 20, 512])
def test_every_sentence_has_a_room_for_any_output_and_one_with_a_bound(longest, extra_length):
    rooms = rooms_up_to(longest, extra_length)
    assert max(room.tokens for room in rooms if room.rows == 1 and room.outputs is None) == longest
    assert max(room.tokens for room in rooms if room.rows == 1 and room.outputs is not None) == longest
    assert len({room.signature for room in rooms}) == len(rooms)
    assert all(room.outputs is None or room.tokens < room.outputs <= room.tokens + extra_length for room in rooms)


def test_many_sentences_of_bounded_outputs_have_a_smaller_room_first_and_are_fewer_at_last():
    rooms = (Room(1, 8), Room(1, 8, 11), Room(8, 8, 11), Room(8, 2, 2))
    assert [[tuple(loop) for loop in loops_of(room)] for room in rooms] == [
        [],
        [(11, 1)],
        [(6, 8), (11, 8), (11, 4)],
        [(1, 8), (2, 8), (2, 4)],
    ]


def test_the_names_of_searches_stay_those_of_files_that_exist():
    assert [Room(1, 64).signature, Room(8, 32, 12).signature] == ["translate_1x64", "translate_8x32_to_12"]


def test_a_description_comes_back_from_its_file_and_a_damaged_one_is_named(tmp_path):
    path = tmp_path / "litert.json"
    description = Description({"beam_size": 2, "length_penalty": 0.5, "extra_length": 7, "coverage_penalty": 0}, ROOMS)
    description.save(path)
    assert Description.load(path) == description and description.max_source_tokens == 9
    bounded = description._replace(rooms=(*ROOMS, Room(1, 30, 12)))
    assert bounded.max_source_tokens == 9  # longer sentences have only a room for short translations
    text = path.read_text()
    wrong_size, bound = text.replace("9", '"9"'), text.replace("null", "12")
    wrong_search = text.replace("beam_size", "n_best")  # an option of the search, but none of a run
    for damaged in (
        wrong_search,
        "",
        "[]",
        "{}",
        '{"search": {}, "rooms": []}',
        text.replace("rooms", "room"),
        wrong_size,
        bound,
    ):
        path.write_text(damaged)
        with pytest.raises(ConfigError, match=r"litert\.json is damaged"):
            Description.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["search.tflite", "tokenizer.model"])
def test_a_damaged_model_is_one_sentence(model, tmp_path, file):
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / file).write_bytes(b"no model")
    assert_one_sentence(invoke(translate.app, tmp_path / "model"), file)
