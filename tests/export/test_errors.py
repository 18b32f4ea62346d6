"""If the graph refuses a request, the server answers with the graph's sentence, without TensorFlow's own words."""

import grpc
import pytest
import tensorflow as tf

from export.server.errors import Code, RequestError, answered_as, from_tensorflow, invalid
from keras_transformer.ground.errors import message_of_the_graph


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


def test_the_log_tells_where_a_request_failed_and_no_text_of_it(caplog):
    try:
        int("a secret")
    except ValueError as error:
        found = answered_as(error)
    assert found.code is Code.INTERNAL
    [message] = caplog.messages
    assert "ValueError" in message and __file__ in message and "secret" not in message + found.message


OF_THE_REQUEST = {"InvalidArgumentError", "OutOfRangeError", "FailedPreconditionError"}
ERRORS = [kind for kind in vars(tf.errors).values() if isinstance(kind, type) and issubclass(kind, tf.errors.OpError)]


@pytest.mark.parametrize("kind", sorted({*ERRORS} - {tf.errors.OpError}, key=str), ids=lambda kind: kind.__name__)
def test_each_error_of_tensorflow_is_of_the_request_of_the_memory_or_of_the_server(kind):
    code = {"ResourceExhaustedError": Code.RESOURCE_EXHAUSTED} | dict.fromkeys(OF_THE_REQUEST, Code.INVALID_ARGUMENT)
    found = from_tensorflow(kind(None, None, "the reason\n\t [[{{node a/b}}]]"))
    assert found.code is code.get(kind.__name__, Code.INTERNAL)
    assert found.message.endswith("the reason") is (found.code is not Code.RESOURCE_EXHAUSTED)
    assert found.http_status == {Code.INVALID_ARGUMENT: 400, Code.RESOURCE_EXHAUSTED: 503}.get(found.code, 500)


def test_an_error_reads_as_its_sentence_and_has_the_status_of_its_code_or_its_own():
    assert str(RequestError(Code.NOT_FOUND, "It is not here.")) == str(invalid("It is not here.")) == "It is not here."
    assert RequestError(Code.NOT_FOUND, "").http_status == 404
    assert RequestError(Code.INVALID_ARGUMENT, "", 413).http_status == 413


def test_each_code_has_the_number_and_the_name_of_grpc():
    assert {code.name: code.number for code in Code} == {
        code.name: grpc.StatusCode[code.name].value[0] for code in Code
    }


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("assertion failed: [n_best must not exceed beam_size.]", "n_best must not exceed beam_size."),
        ("Graph execution error:\n\nassertion failed: [too long] [9] [8]", "too long [9] [8]"),
        ("Detected at node A/A defined at (most recent call last):\n<no stack>\nassertion failed: [x] [9]", "x [9]"),
        ("2 root error(s) found.\n  (0) INVALID_ARGUMENT: assertion failed: [no] [1]\n  (1) other", "no [1]"),
        ("Graph execution error:\n\nno assertion\n\t [[{{node a/b}}]]", "no assertion"),
        ("in  two\n lines", "in two lines"),
    ],
)
def test_what_tensorflow_adds_is_left_out(message, expected):
    assert message_of_the_graph(message) == expected
