"""`import keras_transformer as kt`: every public name, and nothing imported before it is used."""

import ast
import importlib
import json

import pytest

import keras_transformer as kt
from tests.support.places import ROOT
from tests.support.processes import python


def in_a_process_of_its_own(script):
    """What `script` prints, read as JSON."""
    run = python("-c", script)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.slow
def test_importing_the_package_imports_neither_keras_nor_tensorflow():
    script = "import json, sys, keras_transformer; print(json.dumps(sorted(sys.modules)))"
    modules = set(in_a_process_of_its_own(script))
    assert "keras_transformer" in modules
    assert not modules & {"keras", "tensorflow", "sentencepiece", "numpy", "typer"}
    assert not any(name.startswith("keras_transformer.") for name in modules)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "imports",
    [
        "import keras, keras_transformer",
        "from keras_transformer import LabelSmoothedCrossentropy",
        "import keras_transformer.metrics as m, keras_transformer as kt; kt.Dropout",
    ],
)
def test_once_keras_is_imported_it_finds_every_class_of_the_package(imports):
    script = f"""
{imports}
import json, keras
print(json.dumps(sorted(keras.saving.get_custom_objects())))
"""
    registered = set(in_a_process_of_its_own(script))
    classes = [value for value in map(kt.__getattr__, kt.__all__) if hasattr(value, "from_config")]
    assert len(classes) > 15
    assert registered >= {f"keras_transformer>{kind.__name__}" for kind in classes}


@pytest.mark.slow
def test_configurations_and_the_tokenizer_need_neither_keras_nor_tensorflow():
    script = (
        "import json, sys, keras_transformer as kt; kt.preset, kt.SearchOptions, kt.Tokenizer, kt.dataset_from_pairs;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert not set(in_a_process_of_its_own(script)) & {"keras", "tensorflow"}


def in_its_module(name):
    return getattr(importlib.import_module(f"keras_transformer.{kt.MODULE_OF[name]}"), name)


def test_every_public_name_is_that_of_its_module():
    assert [name for name in kt.__all__ if getattr(kt, name) is not in_its_module(name)] == []


def test_what_a_script_needs_is_public():
    assert set(kt.__all__) >= {
        "Transformer",
        "TransformerConfig",
        "preset",
        "with_attention",
        "MultiHeadAttention",
        "EncoderBlock",
        "DecoderBlock",
        "FeedForward",
        "TokenEmbedding",
        "SinusoidalPositions",
        "LearnedPositions",
        "Dropout",
        "scaled_dot_product_attention",
        "Translator",
        "SearchOptions",
        "Tokenizer",
        "train_tokenizer",
        "WarmupInverseSquareRoot",
        "LabelSmoothedCrossentropy",
        "TokenAccuracy",
        "Perplexity",
        "paper_optimizer",
        "dataset_from_pairs",
    }


def test_editors_see_the_same_names_as_programs():
    tree = ast.parse((ROOT / "keras_transformer" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == {name: f"keras_transformer.{module}" for name, module in kt.MODULE_OF.items()}


@pytest.mark.slow
def test_dir_and_star_list_the_public_names():
    assert set(kt.__all__) <= set(dir(kt))
    script = "from keras_transformer import *; import json; print(json.dumps(sorted(globals())))"
    assert set(kt.__all__) <= set(in_a_process_of_its_own(script))


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="Transfomer"):
        kt.Transfomer  # noqa: B018
    with pytest.raises(ImportError, match="Transfomer"):
        exec("from keras_transformer import Transfomer")
