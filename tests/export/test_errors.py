"""If the graph refuses a request, the server answers with the graph's sentence, without TensorFlow's own words."""

import pytest
import tensorflow as tf

from export.server.errors import Code, from_tensorflow, message_of_the_graph


def test_a_refusal_is_the_sentence_of_the_assertion(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec((), tf.int32)])
    def serve(beam_size):
        with tf.control_dependencies([tf.debugging.Assert(beam_size < 5, ["beam_size must be [1 to 4].", beam_size])]):
            return {"found": tf.identity(beam_size)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(tmp_path), signatures=serve)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        served(beam_size=tf.constant(9))
    found = from_tensorflow(error.value)
    assert (found.code, found.message) == (Code.INVALID_ARGUMENT, "beam_size must be [1 to 4]. [9]")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("assertion failed: [n_best must not exceed beam_size.]", "n_best must not exceed beam_size."),
        ("Graph execution error:\n\nassertion failed: [too long] [9] [8]", "too long [9] [8]"),
        ("Detected at node A/A defined at (most recent call last):\n<no stack>\nassertion failed: [x] [9]", "x [9]"),
        ("2 root error(s) found.\n  (0) INVALID_ARGUMENT: assertion failed: [no] [1]\n  (1) other", "no [1]"),
        ("Graph execution error:\n\nno assertion\n\t [[{{node a/b}}]]", "no assertion"),
    ],
)
def test_what_tensorflow_adds_is_left_out(message, expected):
    assert message_of_the_graph(message) == expected
