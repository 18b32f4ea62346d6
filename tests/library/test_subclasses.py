"""Subclasses of a model: what they take beside a configuration is in their files, as in those of Keras."""

import keras
import pytest

from keras_transformer.model import Transformer
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.recurrent.model import RecurrentModel
from tests.support.models import SMALL, assert_close, batch_of, randomise

ONE = SMALL.replace(encoder_layers=1, decoder_layers=1)
RECURRENT = RecurrentConfig(vocab_size=SMALL.vocab_size, d_model=8)
BATCH = batch_of([[([5, 6, 7, 3], [2, 8, 9])], [([4, 3], [2])]], 5, 4)


@keras.saving.register_keras_serializable("tests")
class Tempered(Transformer):
    """With an argument of its own, which comes first."""

    def __init__(self, temperature, config, dtype=None, **kwargs):
        super().__init__(config, dtype, **kwargs)
        self.temperature = temperature

    def get_config(self):
        return super().get_config() | {"temperature": self.temperature}


@keras.saving.register_keras_serializable("tests")
class Sized(RecurrentModel):
    """Makes its configuration itself."""

    def __init__(self, size, **kwargs):
        super().__init__(RECURRENT.replace(d_model=size), **kwargs)
        self.size = size

    def get_config(self):
        return {name: value for name, value in super().get_config().items() if name != "config"} | {"size": self.size}


@keras.saving.register_keras_serializable("tests")
class Plain(Transformer):
    """Without anything of its own."""


class Forgetful(Transformer):
    def __init__(self, config, dtype=None, name="forgetful", temperature=1.0, **kwargs):
        super().__init__(config, dtype, name, **kwargs)


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (lambda: Tempered(0.5, ONE, name="mine"), {"temperature": 0.5, "name": "mine"}),
        (lambda: Sized(4, name="mine"), {"size": 4, "name": "mine"}),
        (lambda: Plain(ONE, "bfloat16"), {"precision": "bfloat16"}),
    ],
)
def test_a_subclass_keeps_its_own_arguments_in_a_file(make, own, tmp_path):
    model = randomise(make())
    model.layers[-1].trainable = False
    model.save(tmp_path / "model.keras")
    of_config = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(model))
    of_config.set_weights(model.get_weights())
    for copy in (keras.saving.load_model(tmp_path / "model.keras"), of_config):
        assert type(copy) is type(model) and {name: getattr(copy, name) for name in own} == own
        assert copy.model_config == model.model_config
        assert [*map(is_trained, copy.weights)] == [*map(is_trained, model.weights)]
        assert_close(copy(BATCH), model(BATCH), atol=0, rtol=0)


def test_a_subclass_that_would_lose_an_argument_is_not_saved(tmp_path):
    model = Forgetful(ONE, temperature=2.0)
    for save in (lambda: model.save(tmp_path / "model.keras"), model.get_config, model.to_json):
        with pytest.raises(NotImplementedError, match="has the argument temperature, .* override get_config"):
            save()
    model.save_to_preset(tmp_path / "preset")  # which holds a Transformer, whatever made it
    assert Transformer.from_preset(tmp_path / "preset").model_config == ONE


def is_trained(weight):
    return weight.path, weight.trainable
