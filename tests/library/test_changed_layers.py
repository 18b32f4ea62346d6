"""What happens to the layers of a model after a Translator was made of it: LoRA, quantization, other precisions."""

import keras
import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.models import as_numpy, assert_close, normal, randomise
from tests.support.runs import SENTENCES

OPTIONS = SearchOptions(beam_size=2, extra_length=5)
LINES = SENTENCES[:3]


def model_of(pair, kind="transformer", dtype=None):
    """A model of random weights, which a test may change, over the pieces of `pair`."""
    recurrent = RecurrentConfig(vocab_size=pair[1].vocab_size, d_model=8)
    config = {"transformer": pair[0].model_config, "recurrent": recurrent}[kind]
    return randomise(build_model(config, dtype=dtype))


def dense_layers(model):
    return [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dense)]


def with_lora(model):
    """Enable LoRA in each Dense of a model, with values that change what it computes."""
    for layer in dense_layers(model):
        layer.enable_lora(2)
        layer.lora_kernel_a.assign(normal(*layer.lora_kernel_a.shape))
        layer.lora_kernel_b.assign(normal(*layer.lora_kernel_b.shape))
    return model


def engines_of(model, tokenizer):
    engines = Translator, Scorer, Explainer
    return [engine(model, tokenizer, **({} if engine is Scorer else {"options": OPTIONS})) for engine in engines]


def answers_of(translator, scorer, explainer):
    """Numbers that a Translator, its Aligner, a Scorer and an Explainer compute for the same lines."""
    found = [*translator.translate(LINES), *translator.translate(LINES, prefixes=["the"] * len(LINES))]
    explanation = explainer.explain(LINES[0])
    return [
        *(translation.score for translation in found),
        *(scored.score for scored in scorer.score(LINES, LINES)),
        explanation.translations[0].score,
        *np.ravel(explanation.attention["memory"]),
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_layers_that_change_are_searched_as_they_are(pair, kind):
    model = model_of(pair, kind)
    engines = engines_of(model, pair[1])
    before = answers_of(*engines)
    changes = [lambda: with_lora(model), lambda: randomise(model, seed=5)]
    for change in changes if kind == "transformer" else changes[1:]:
        change()
        after = answers_of(*engines)
        np.testing.assert_allclose(after, answers_of(*engines_of(model, pair[1])), atol=1e-5)
        assert not np.allclose(before[:6], after[:6], atol=1e-3)
        before = after


def test_words_are_aligned_by_the_layers_as_they_are(pair):
    model = model_of(pair)
    aligner = Translator(model, pair[1], OPTIONS)._aligner
    pieces = [*range(5, 15), 3]

    def weights(aligner):
        return aligner._attention_of_model(np.int32([pieces]), np.int32([pieces])).numpy()

    before = weights(aligner)
    with_lora(model)
    assert not np.allclose(before, weights(aligner), atol=1e-3)
    assert_close(weights(aligner), weights(Translator(model, pair[1], OPTIONS)._aligner))


def test_a_layer_that_computes_in_another_precision_is_searched_so(pair):
    model = model_of(pair)
    translator = Translator(model, pair[1], OPTIONS)
    exact = [translation.score for translation in translator.translate(LINES)]
    for layer in model._flatten_layers(include_self=False):
        layer.dtype_policy = keras.DTypePolicy("mixed_bfloat16")
    assert [translation.score for translation in translator.translate(LINES)] != exact


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Layer")  # Keras warns of each layer that it cannot quantize
@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_quantized_meanwhile_is_one_sentence_and_no_nonsense(pair, kind):
    model = model_of(pair, kind)
    translator, scorer, explainer = engines_of(model, pair[1])
    answers_of(translator, scorer, explainer)
    model.quantize("int8")
    for answer in (
        lambda: translator.translate(LINES),
        lambda: translator.translate(LINES, prefixes=["the"] * len(LINES)),
        lambda: scorer.score(LINES, LINES),
        lambda: explainer.explain(LINES[0]),
        lambda: translator._aligner.align([[5, 6, 3]], [[5, 6, 3]]),
    ):
        with pytest.raises(ConfigError, match="is int8, as after `quantize`"):
            answer()


# LoRA in another precision, and in a file


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_lora_is_merged_into_a_copy(pair, dtype, precision):
    model = model_of(pair, dtype=dtype)
    if precision != dtype:
        without = [weight.numpy() for weight in in_precision(model, precision).weights]
    kernels = [as_numpy(layer.kernel) for layer in dense_layers(with_lora(model))]
    copy = in_precision(model, precision)
    assert copy.precision == precision
    for layer, kernel in zip(dense_layers(copy), kernels, strict=True):
        assert_close(layer.kernel, kernel, rtol=0 if precision == "float32" else 2**-8)
    if precision != dtype:
        same = [np.array_equal(*values) for values in zip(without, copy.get_weights(), strict=True)]
        assert same.count(False) == len(kernels)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_run_has_the_merged_weights_and_translates_alike(pair, dtype, tmp_path):
    model = with_lora(model_of(pair, dtype=dtype))
    save_run(model, pair[1], tmp_path / "run")
    assert_close(answers_of(*engines_of(model, pair[1])), answers_of(*engines_of(*load_run(tmp_path / "run"))), 1e-4)
