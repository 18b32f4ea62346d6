"""What stands in a version folder: the SavedModel, and the requests that warm a server up before its first client."""

import tensorflow as tf

WARM_UP_REQUESTS = "assets.extra/tf_serving_warmup_requests"  # where TensorFlow Serving looks for them
WARM_UP_TOKENS = (8, 32, 128)  # lengths of the sentences in them
FIRST_MERGE = 260  # after four special ids and 256 bytes, the pieces that byte-pair encoding found most often


def write_saved_model(served, tokenizer, folder):
    """Write a ServedTranslator into `folder`, with its signatures, and warm-up requests beside it."""
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(served, str(folder), served.signatures(), options)
    write_warm_up_requests(folder, warm_up_batches(tokenizer, served.max_source_tokens))


def warm_up_batches(tokenizer, max_source_tokens):
    """Sentences of a few lengths, one by one and then all in one request: lists of str."""
    lengths = sorted({min(length, max_source_tokens) for length in WARM_UP_TOKENS})
    pieces = range(min(FIRST_MERGE, tokenizer.vocab_size - 1), tokenizer.vocab_size)
    sentences = [tokenizer.decode([pieces[place % len(pieces)] for place in range(length)]) for length in lengths]
    return [[sentence] for sentence in sentences] + [sentences]


def write_warm_up_requests(folder, batches):
    """A TFRecord file of one PredictionLog for each batch of sentences.

    TensorFlow Serving answers these when it loads the version, before it sends any client there.
    """
    path = folder / WARM_UP_REQUESTS
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for sentences in batches:
            writer.write(prediction_log("serving_default", text=tf.make_tensor_proto(sentences)))


def prediction_log(signature_name, **inputs):
    """A tensorflow.serving.PredictionLog of one request, serialized, without the package that defines it.

    Field numbers are those of tensorflow_serving/apis/prediction_log.proto, predict.proto and model.proto:

        PredictionLog.predict_log = 6    PredictLog.request = 1      PredictRequest.model_spec = 1, .inputs = 2
        ModelSpec.signature_name = 3     map entries: key = 1, value = 2
    """
    model_spec = field(1, field(3, signature_name.encode()))
    entries = (field(1, name.encode()) + field(2, tensor.SerializeToString()) for name, tensor in inputs.items())
    return field(6, field(1, model_spec + b"".join(field(2, entry) for entry in entries)))


def field(number, payload):
    """A length-delimited field of a protocol buffer message: tag, length, bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(number):
    """Seven bits a byte, lowest first; the eighth bit says that more follow: 300 -> ac 02."""
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])
