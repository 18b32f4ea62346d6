"""A model exported for CTranslate2 computes what ours computes, and the command refuses what cannot be exported."""

import importlib.util
import json
import pathlib
import re

import pytest

from export import __main__ as command
from export.certificate.agreement import ScoreComparison
from export.ctranslate2 import convert as export
from export.versions import ExportError, refuse_existing
from keras_transformer.config import TransformerConfig
from keras_transformer.model import Transformer
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.ctranslate2_models import exported, pieces_of
from tests.support.peers import Peer, needs
from tests.support.runs import SENTENCES, decisive, random_run, tokenizer_bytes

pytestmark = [pytest.mark.release, needs("ctranslate2")]

ctranslate2 = Peer("ctranslate2")
LIKE_OURS = {"min_decoding_length": 0, "disable_unk": True, "suppress_sequences": [["<pad>"], ["<s>"]]}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    path.write_bytes(tokenizer_bytes())
    return Tokenizer(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def brief_run(tmp_path):
    """A run whose outputs mostly end before their limit."""
    run = random_run(tmp_path / "run")
    translator_model(run).save_weights(str(run / "model.weights.h5"))
    return run


def translator_model(run):
    return decisive(Transformer(TransformerConfig.load(run / "model.json")), end=9.0)


def run_export(run, folder, *arguments):
    return invoke(command.app, run, "--to", folder, "--format", "ctranslate2", "--extra-length", 12, *arguments)


def test_greedy_search_finds_the_same_tokens(brief_run, tokenizer):
    translator = Translator.load(brief_run, SearchOptions(beam_size=1, extra_length=12))
    model = exported(translator_model(brief_run), tokenizer, brief_run / "model")
    results = model.translate_batch(
        pieces_of(tokenizer, SENTENCES),
        beam_size=1,
        return_end_token=True,
        max_decoding_length=13,
        **LIKE_OURS,
    )
    lengths = set()
    for result, right in zip(results, translator.translate(SENTENCES), strict=True):
        found = [tokenizer.pieces().index(piece) for piece in result.hypotheses[0]]
        assert found[:12] == list(right.ids[:12])  # the 13th may be the run's last
        lengths.add(len(found))
    assert len(lengths) > 3


def test_the_readme_translates_as_the_run_does(brief_run, tmp_path, monkeypatch, capsys):
    result = run_export(brief_run, tmp_path / "model", "--no-check", "--beam-size", 3, "--length-penalty", 1.5)
    assert result.exit_code == 0, result.output
    readme = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.+?)```", readme, re.DOTALL)
    code = code.replace('["A dog runs across the field."]', repr(SENTENCES))
    monkeypatch.chdir(tmp_path)
    exec(code.replace("min_decoding_length=0", f"**{LIKE_OURS!r}"), {})
    found = eval(capsys.readouterr().out)
    expected = Translator.load(brief_run, SearchOptions(3, 1.5, 12)).translate(SENTENCES)
    ended = [index for index, right in enumerate(expected) if len(right.ids) < 13]
    same = [found[index] == expected[index].text for index in ended]
    assert len(ended) > 4 and sum(same) >= 0.75 * len(same)  # the searches keep different hypotheses


# the command


def test_the_folder_is_a_model_with_tokenizer_and_readme_after_a_comparison(run, tmp_path):
    folder = tmp_path / "made" / "for it"
    result = run_export(run, folder, "--beam-size", 1)
    assert result.exit_code == 0, result.output
    comparison, path = result.stdout.splitlines()
    assert re.fullmatch(rf"compared {len(SENTENCES)} lines: .* at most 0\.0000\d\d, of -\d+\.\d\d", comparison)
    assert path == str(folder)
    expected = ["README.md", "config.json", "model.bin", "shared_vocabulary.json", "tokenizer.model"]
    assert sorted(file.name for file in folder.iterdir()) == expected
    assert [file.name for file in folder.parent.iterdir()] == ["for it"]
    assert (folder / "tokenizer.model").read_bytes() == tokenizer_bytes()
    assert json.loads((folder / "config.json").read_text())["add_source_eos"] is True


def test_sources_alone_are_cut_for_the_comparison(run, tmp_path):
    """The translations are longer than sources may be, and all their tokens are scored."""
    (tmp_path / "lines").write_text("".join(f"{line} {line}\n" for line in SENTENCES[:4]), encoding="utf-8")
    options = "--max-source-tokens", 6, "--check", tmp_path / "lines"
    result = run_export(run, tmp_path / "model", *options)
    assert result.exit_code == 0 and "compared 4 lines" in result.stdout, result.output


def test_int8_weights_are_smaller_and_may_score_otherwise(run, tmp_path):
    (tmp_path / "float32").mkdir()  # an empty folder may be there already
    assert run_export(run, tmp_path / "float32", "--no-check").exit_code == 0
    (tmp_path / "lines.txt").write_text("forty-one dogs\n")
    check = ["--check", tmp_path / "lines.txt", "--beam-size", 1]
    result = run_export(run, tmp_path / "int8", "--quantization", "int8", *check)
    assert result.exit_code == 0 and "compared" in result.stdout, result.output
    sizes = {name: (tmp_path / name / "model.bin").stat().st_size for name in ("float32", "int8")}
    assert sizes["int8"] < 0.95 * sizes["float32"]
    assert "int8" in ctranslate2.Translator(str(tmp_path / "int8")).compute_type


def test_a_model_with_other_scores_is_not_published(run, tmp_path, monkeypatch):
    fill = export_spec().fill_embeddings

    def wrong(spec, transformer):
        fill(spec, transformer)
        spec.encoder.position_encodings.encodings[0] += 1.0

    monkeypatch.setattr(export_spec(), "fill_embeddings", wrong)
    (tmp_path / "lines.txt").write_text("forty-one dogs\n")
    result = run_export(run, tmp_path / "model", "--check", tmp_path / "lines.txt", "--beam-size", 1)
    assert result.exit_code == 1 and "does not score translations as the run does" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["lines.txt"]


def export_spec():
    from export.ctranslate2 import spec as ctranslate2_spec

    return ctranslate2_spec


def test_an_empty_folder_may_be_named_by_a_link(run, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    options = ["--to", tmp_path / "link", "--format", "ctranslate2", "--no-check"]
    result = invoke(command.app, run, *options)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "real/model.bin").exists() and (tmp_path / "link").is_symlink()
    assert_one_sentence(invoke(command.app, run, *options), f"{tmp_path / 'real'} exists already")


def test_where_a_file_system_is_mounted_nothing_is_exported_to():
    with pytest.raises(ExportError, match="is where a file system is mounted"):
        refuse_existing(pathlib.Path("/"))


def test_what_exists_is_not_replaced(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    for path in (tmp_path / "mine", tmp_path / "mine" / "file"):
        assert_one_sentence(run_export(run, path), path, "exists already")
    assert (tmp_path / "mine" / "file").read_text() == "mine"
    assert_one_sentence(run_export(run, tmp_path / "mine" / "file" / "model", "--no-check"), "not a folder")


def test_quantizations_are_checked(run, tmp_path):
    assert_one_sentence(run_export(run, tmp_path / "model", "--quantization", "int7"), "int7", "int8_float32")
    result = invoke(command.app, run, "--to", tmp_path / "model", "--quantization", "int8")
    assert_one_sentence(result, "--format ctranslate2")
    assert not (tmp_path / "model").exists()


def test_without_the_package_one_sentence_names_it(run, tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *_: None if name == "ctranslate2" else found(name, *_)
    )
    assert_one_sentence(run_export(run, tmp_path / "model"), "not installed", f"pip install {export.PACKAGE}")


def test_nan_is_a_difference():
    with pytest.raises(ExportError):
        ScoreComparison(1, float("nan"), "a line", -1.0).refuse_beyond()
