"""The content of a version folder: the SavedModel, and requests that warm up a server before its first client."""

import pathlib

import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from export.serving import ServedTranslator
from export.versions import ExportError
from keras_transformer.errors import first_line_of
from keras_transformer.tokenizer import Tokenizer

WARM_UP_REQUESTS = "assets.extra/tf_serving_warmup_requests"  # the path that TensorFlow Serving reads
WARM_UP_TOKENS = (8, 32, 128)  # lengths of the sentences in the requests
FIRST_MERGE = 260  # 4 special ids and 256 bytes come first, then the most frequent pieces


def write_saved_model(served: ServedTranslator, tokenizer: Tokenizer, folder: pathlib.Path) -> None:
    """Write a ServedTranslator with its signatures and its warm-up requests into `folder`.

    Raises ExportError if the file system refuses, for example because the disk is full.
    """
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    try:
        tf.saved_model.save(served, str(folder), served.signatures(), options)
        write_warm_up_requests(folder, warm_up_batches(tokenizer, served.max_source_tokens))
    except tf.errors.OpError as error:
        raise ExportError(f"{folder} cannot be written: {first_line_of(error)}") from None


def warm_up_batches(tokenizer: Tokenizer, max_source_tokens: int) -> list[list[str]]:
    """Return sentences of a few lengths: a batch of each alone, then one batch of all."""
    lengths = sorted({min(length, max_source_tokens) for length in WARM_UP_TOKENS})
    pieces = range(min(FIRST_MERGE, tokenizer.vocab_size - 1), tokenizer.vocab_size)
    sentences = [tokenizer.decode([pieces[index % len(pieces)] for index in range(length)]) for length in lengths]
    return [[sentence] for sentence in sentences] + [sentences]


def write_warm_up_requests(folder: pathlib.Path, batches: list[list[str]]) -> None:
    """Write a TFRecord file with one PredictionLog per batch of sentences.

    TensorFlow Serving answers these requests when it loads the version, before any client's.
    """
    path = folder / WARM_UP_REQUESTS
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for sentences in batches:
            writer.write(prediction_log("serving_default", text=tf.make_tensor_proto(sentences)))


def prediction_log(signature_name: str, **inputs: TensorProto) -> bytes:
    """Return one request as a serialized tensorflow.serving.PredictionLog, without the package that defines it.

    The field numbers are from tensorflow_serving/apis/prediction_log.proto, predict.proto and model.proto:

        PredictionLog.predict_log = 6    PredictLog.request = 1      PredictRequest.model_spec = 1, .inputs = 2
        ModelSpec.signature_name = 3     map entries: key = 1, value = 2
    """
    model_spec = field(1, field(3, signature_name.encode()))
    entries = (field(1, name.encode()) + field(2, tensor.SerializeToString()) for name, tensor in inputs.items())
    return field(6, field(1, model_spec + b"".join(field(2, entry) for entry in entries)))


def field(number: int, payload: bytes) -> bytes:
    """Return a length-delimited field of a protocol buffer message: tag, length, bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(number: int) -> bytes:
    """Encode in seven bits per byte, lowest first; the eighth bit marks that more follow: 300 -> ac 02."""
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])
