"""Optimizers by name: what is refused, in one sentence, before anything is prepared."""

import keras
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.optimizers import PAPER_ADAM
from tests.support.commands import assert_one_sentence, invoke
from tests.support.optimizers import OPTIONS, RATE, training_of
from tests.support.runs import write_config
from train.__main__ import app
from train.config.training import TrainingConfig, check_idle_keys
from train.step.optimizer import training_optimizer
from train.step.optimizer_choice import KINGMA_BA_ADAM, OWNED, arguments_of, check_optimizer, class_of, name_of


@keras.saving.register_keras_serializable("tests")
class Halving(keras.optimizers.SGD):
    """SGD at half of the rate."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate / 2)


@pytest.mark.parametrize("name", [*OPTIONS, "tests>Halving", "Lamb", "Adamax", "Ftrl", "Adagrad", "Adadelta"])
def test_a_key_of_ours_and_every_registered_class_makes_an_optimizer(name):
    check_optimizer(training_of(name, {}))
    optimizer = training_optimizer(64, training_of(name, {}))
    assert isinstance(optimizer, class_of(name)) and optimizer.name == name_of(name)
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert type(restored) is type(optimizer) and restored.get_config() == optimizer.get_config()


def test_options_are_its_arguments():
    optimizer = training_optimizer(64, training_of("SGD", {"momentum": 0.5, "nesterov": True, "weight_decay": 1}))
    assert (optimizer.momentum, optimizer.nesterov, optimizer.weight_decay) == (0.5, True, 1)
    assert name_of("tests>Halving") == "halving"


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_the_constants_of_adam_are_those_of_the_schedule_unless_options_say_otherwise(name):
    for schedule, constants in (("paper", PAPER_ADAM), ("cosine", KINGMA_BA_ADAM)):
        training = TrainingConfig(schedule=schedule, optimizer=name, optimizer_options={"beta_1": 0.5})
        optimizer = training_optimizer(64, training)
        assert optimizer.beta_1 == 0.5
        assert (optimizer.beta_2, optimizer.epsilon) == (constants["beta_2"], constants["epsilon"])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "adan",
            'is "adan"; did you mean "adam"? There are adam, adamw, schedule_free, muon, lion, adafactor; of Keras',
        ),
        ("Adam", 'is "Adam": here it is "adam"'),
        ("ScheduleFreeAdamW", 'here it is "schedule_free"'),
        ("LossScaleOptimizer", "of Keras .*Nadam"),
        ("tests>Nothing", "register_keras_serializable"),
        ("keras_transformer>Adafactor", 'here it is "adafactor"'),
    ],
)
def test_another_name_is_refused_with_the_names_that_there_are(name, sentence):
    with pytest.raises(ConfigError, match=sentence.replace("?", r"\?").replace("(", r"\(")):
        check_optimizer(training_of(name, {}))


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("lion", {"beta_3": 0.9}, 'has beta_3, which "lion" does not take. It takes beta_1, beta_2, weight_decay.'),
        ("adam", {"beta_1": "0.9"}, "beta_1 is '0.9'; it must be a number"),
        ("adam", {"beta_1": True}, "beta_1 is True; it must be a number"),
        ("adam", {"beta_2": 1.0}, "beta_2 is 1.0; it must be at least 0 and less than 1"),
        ("adamw", {"weight_decay": -0.1}, "weight_decay is -0.1; it must be at least 0"),
        ("adamw", {"weight_decay": "much"}, "weight_decay is 'much'; it must be a number"),
        ("adam", {"amsgrad": 1}, "amsgrad is 1; it must be true or false"),
        ("muon", {"ns_steps": 2.5}, "ns_steps is 2.5; it must be a whole number"),
        ("lion", {"beta_1": 0.0}, "beta_1"),
        ("schedule_free", {"beta_1": 0}, "beta_1 must be above 0 and less than 1"),
        ("muon", {"adam_weight_decay": 0.1}, "set weight_decay instead"),
    ],
)
def test_an_option_that_it_does_not_take_is_refused(name, options, sentence):
    with pytest.raises(ConfigError, match=rf"training\.optimizer.*{sentence}"):
        check_optimizer(training_of(name, options))


@pytest.mark.parametrize("name", OWNED)
def test_what_training_sets_itself_is_refused_with_the_key_to_set(name):
    assert name not in arguments_of(class_of("muon"))
    with pytest.raises(ConfigError, match=f"optimizer_options has {name}, which training sets itself.*{OWNED[name]}"):
        check_optimizer(training_of("adam", {name: 1}))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"schedule": "paper"}, 'goes with schedule "constant" or "warmup", and training.schedule is "paper"'),
        ({"schedule": "cosine"}, 'training.schedule = "warmup" with training.learning_rate'),
        ({"cooldown_steps": 5}, "cooldown_steps is 5.* leave cooldown_steps out"),
        ({"ema_decay": 0.9}, "ema_decay is 0.9.* averages the weights itself"),
    ],
)
def test_schedule_free_is_refused_with_what_would_lower_its_rate_or_average_once_more(changes, sentence):
    check_idle_keys(TrainingConfig(**RATE, optimizer="schedule_free"))
    settings = {"schedule": "warmup", "optimizer": "schedule_free"} | changes
    with pytest.raises(ConfigError, match=sentence):
        check_idle_keys(TrainingConfig(**settings))


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_training_refuses_before_it_reads_its_text(tmp_path, options):
    config = write_config(tmp_path)
    found = invoke(app, config, *options, "--set", "training.optimizer_options={betta=1}")
    assert_one_sentence(found, "training.optimizer_options has betta")
    assert not (tmp_path / "run").exists()


def test_options_are_a_table_and_go_through_a_file(tmp_path):
    from train.config.run import load_config

    asked = ["training.optimizer=adamw", "training.optimizer_options={weight_decay=0.1, amsgrad=true}"]
    config = load_config(write_config(tmp_path), [*asked, "training.optimizer_options.beta_2=0.95"])
    assert config.training.optimizer_options == {"weight_decay": 0.1, "amsgrad": True, "beta_2": 0.95}
    path = tmp_path / "again.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert load_config(path) == config
