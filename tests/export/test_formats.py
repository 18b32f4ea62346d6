"""The table of formats: the command has the options of each, and refuses those of another one."""

import inspect

import pytest

from export.__main__ import app, export
from export.formats import FORMATS, FormatArguments, flag_of, options_of
from export.job import ExportJob
from export.versions import ExportError
from keras_transformer.search.options import SearchOptions
from tests.support.commands import assert_one_sentence, invoke
from tests.support.peers import needs
from tests.support.runs import random_run
from tests.support.variants import VARIANTS, every_variant

OPTIONS = options_of(*FORMATS.values())
DEFAULTS = {name: option.default for name, option in OPTIONS.items()}


def test_the_command_has_the_options_of_every_format():
    assert set(OPTIONS) <= set(inspect.signature(export).parameters)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_gets_its_own_options_and_no_other(name):
    own = {option: "typed" for option in options_of(FORMATS[name])}
    assert vars(FormatArguments(name, DEFAULTS | own).chosen()) == own
    assert vars(FormatArguments(name, DEFAULTS).chosen()) == {option: DEFAULTS[option] for option in own}
    for option in set(OPTIONS) - set(own):
        with pytest.raises(ExportError, match=f"{flag_of(OPTIONS[option])} typed is for --format"):
            FormatArguments(name, DEFAULTS | {option: "typed"}).chosen()


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_refuses_a_place_that_it_would_have_to_replace_before_it_opens_the_run(name, tmp_path):
    (tmp_path / "saved_model.pb").touch()
    job = ExportJob(tmp_path / "none", tmp_path, SearchOptions(), 99, None)
    with pytest.raises(ExportError, match=f"^{tmp_path} (is a version itself|exists already)"):
        FORMATS[name]().export(job)


def test_a_format_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    printed = invoke(app, tmp_path, "--to", tmp_path / "new", "--format", "onnx")
    assert printed.exit_code == 2 and all(f"'{name}'" in " ".join(printed.stderr.split()) for name in FORMATS)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("ctranslate2", {"coverage_penalty": 0.2}, "The coverage penalty is 0.2, .*--format saved"),
        ("huggingface", {"coverage_penalty": 0.2}, "The coverage penalty is 0.2, .*--format saved"),
        ("litert", {}, "--quantization int4 does not exist; LiteRT models have int8"),
    ],
)
def test_what_a_format_lacks_is_refused(kind, options, sentence, tmp_path):
    job = ExportJob(tmp_path / "run", tmp_path / "to", SearchOptions(**options), 19, None)
    with pytest.raises(ExportError, match=sentence):
        FORMATS[kind](*["int4"] * (kind == "litert")).export(job)


def test_an_option_that_several_formats_have_is_the_same_in_each():
    for kind in FORMATS.values():
        assert options_of(kind).items() <= OPTIONS.items()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--quantization", "int8"], ["--quantization int8 is for --format ctranslate2 and litert.", "--precision"]),
        (["--format", "ctranslate2", "--precision", "bfloat16"], ["--precision bfloat16", "--format saved_model"]),
        (["--format", "ctranslate2", "--alignment-layer", 1], ["--alignment-layer 1", "--format saved_model"]),
        (["--format", "ctranslate2", "--signature", "score"], ["--signature score", "--format saved_model"]),
    ],
)
def test_an_option_of_another_format_is_one_sentence(tmp_path, arguments, words):
    assert_one_sentence(invoke(app, "no run", "--to", tmp_path / "to", *arguments), *words)
    assert not (tmp_path / "to").exists()


TAKEN = {"saved_model": [*VARIANTS], "litert": [*VARIANTS], "ctranslate2": ["modern", "t5"], "huggingface": []}


@pytest.mark.nightly
@needs("ctranslate2")
@every_variant
@pytest.mark.parametrize("name", FORMATS)
def test_a_format_has_a_variant_or_refuses_it_in_one_sentence_that_names_those_that_have_it(name, variant, tmp_path):
    """Whoever has it publishes it only if it translates, or scores, as the run does."""
    run, to = random_run(tmp_path / "run", **VARIANTS[variant]), tmp_path / "to"
    how = "--max-source-tokens", 24, "--extra-length", 6, "--beam-size", 2
    result = invoke(app, run, "--to", to, "--format", name, *how)
    if variant in TAKEN[name]:
        assert result.exit_code == 0 and to.exists(), result.output
    else:
        assert_one_sentence(result, "--format saved_model or litert")
        assert not to.exists()
