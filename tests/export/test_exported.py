"""An export as Python opens it: each line has its own translation, and what does not translate is refused."""

import pytest
import tensorflow as tf

from export.graph.exported import ExportedTranslator
from export.versions import ExportError
from tests.support.echo import write_echo


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_each_line_has_its_own_translation_in_the_order_of_the_lines(batch_size, tmp_path):
    write_echo(tmp_path / "1")
    translator = ExportedTranslator(tmp_path, batch_size)
    lines = ["a dog", "a", "", "a very long line", "b"]
    found = translator.translate(lines)
    assert [(each.text, each.score) for each in found] == [(line, -len(line)) for line in lines]
    assert translator.translate([]) == [] and translator.path == tmp_path / "1"


def test_a_batch_has_a_line_at_least(tmp_path):
    with pytest.raises(ExportError, match="batch_size is 0; it must be at least 1"):
        ExportedTranslator(tmp_path, 0)


@pytest.mark.parametrize("names", [None, ["translation"], ["score"], ["other"]])
def test_a_saved_model_that_does_not_translate_is_told_so(names, tmp_path):
    module = tf.Module()
    module.serve = tf.function(lambda text: dict.fromkeys(names or ["translation", "score"], text), autograph=False)
    signature = module.serve.get_concrete_function(tf.TensorSpec([None], tf.string, name="text"))
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default" if names else "other": signature})
    with pytest.raises(ExportError, match="does not translate text: it has no signature serving_default with"):
        ExportedTranslator(tmp_path)
