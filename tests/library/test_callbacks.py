"""What callbacks of inspections write, and when."""

import math
import sys

import pytest

from keras_transformer import inspection
from keras_transformer.ground.errors import UserError
from keras_transformer.inspection import callbacks
from keras_transformer.inspection.attention import LONGEST
from keras_transformer.inspection.callbacks import AttentionPictures, Inspection, LogFolder, SampleTranslations
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model


def test_without_matplotlib_it_is_refused_before_training(pair, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match="pip install matplotlib"):
        AttentionPictures(*pair, [("a", "kochen")], None)


class Log:
    """Stands for a MetricsLog: notes what is written."""

    def __init__(self):
        self.values, self.pictures = [], []

    def write(self, step, values):
        self.values.append((step, values))

    def add(self, writer, step, summary):
        self.pictures += [(writer, step, value.tag) for value in summary.value]


def test_an_inspection_writes_curves_per_head_and_pictures_per_sentence_and_kind(pair):
    log = Log()
    AttentionPictures(*pair, [("a", "kochen"), ("hundred", "der Küche")], log).inspect(40)
    ((step, values),) = log.values
    measures = {"memory": 5, "encoder": 5, "decoder": 4}
    assert step == 40 and len(values) == 4 * sum(measures.values())
    assert {f"validation/attention/memory_1_head_{head}/entropy" for head in (1, 2, 3, 4)} <= set(values)
    assert all(0 <= value <= math.log(LONGEST) for value in values.values())
    names = [
        f"attention_pictures/{kind}_sentence_{number}"
        for kind in ("1_memory", "2_encoder", "3_decoder")
        for number in (1, 2)
    ]
    assert log.pictures == [("validation", 40, name) for name in names]


@pytest.mark.parametrize("of_path", [str, lambda path: path])
def test_an_inspection_writes_after_each_epoch_to_a_folder_of_its_name_or_to_what_writes(tmp_path, of_path):
    log, steps = Log(), []
    assert SampleTranslations(None, log).log is log
    inspection = SampleTranslations(None, of_path(tmp_path))
    assert isinstance(inspection.log, LogFolder) and inspection.log.folder == tmp_path / "samples"
    inspection.inspect = steps.append
    for epoch in range(3):
        inspection.on_epoch_end(epoch, {"loss": 1.0})
    assert steps == [0, 1, 2]
    with pytest.raises(NotImplementedError):
        Inspection(log).on_epoch_end(0)


def test_what_has_no_attention_of_its_own_has_no_pictures_of_it(pair):
    log, tokenizer = Log(), pair[1]
    model = build_model(RecurrentConfig(vocab_size=tokenizer.vocab_size, d_model=6))
    AttentionPictures(model, tokenizer, [("a", "kochen"), ("hundred", "der Küche")], log).inspect(3)
    assert [name for _, _, name in log.pictures] == [f"attention_pictures/1_memory_sentence_{n}" for n in (1, 2)]


def test_the_callbacks_are_those_of_their_module_and_another_name_is_none():
    for name in inspection.__all__:
        assert getattr(inspection, name) is getattr(callbacks, name)
    with pytest.raises(AttributeError, match="keras_transformer.inspection' has no attribute 'BleuScor'"):
        inspection.BleuScor  # noqa: B018
