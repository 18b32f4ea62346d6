"""Predictions in the JSON of TensorFlow Serving's REST API: by row ("instances") or by column ("inputs").

https://www.tensorflow.org/tfx/serving/api_rest describes it. This server takes more in one point: an input with a
default may be left out, as in gRPC, while TensorFlow Serving requires every input in JSON.
"""

import base64
import collections
import gzip
import io
import itertools
import json
import re
import zlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .errors import Code, RequestError, invalid
from .json_answer import by_columns, by_rows, encoded
from .signature import Arrays, Signature, Tensor, check_dimensions, check_shape, too_many_rows

BASE64_PART = 1 << 16  # characters that are decoded at once: Python lets no other thread run meanwhile

Json = Any  # what json.loads returns
MOST_VALUES = 1 << 18  # of the JSON of a body: a list takes 0.1 microseconds
# Strings, one without an end too, and what counts values
SIGNS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{,]', re.DOTALL)


class JsonCodec(NamedTuple):
    """The Codec of a request in JSON.

    values: of each input by name. If it is None, `plain` has the values of a signature's only input, without its name.
    """

    signature_name: str
    is_by_row: bool
    values: dict[str, Json] | None
    plain: Json = None
    output_names: tuple[str, ...] = ()  # REST has no filter: all outputs

    def read(self, signature: Signature) -> Arrays:
        """Return the inputs as arrays. Raises RequestError if a value is of another type than the signature's."""
        values = self.values
        if values is None:
            if len(signature.inputs) != 1:
                raise invalid(
                    f"The signature {signature.name!r} has the inputs {', '.join(sorted(signature.inputs))}: "
                    "give their values by name."
                )
            values = {name: self.plain for name in signature.inputs}
        return {name: array_of_lists(name, value, signature.inputs.get(name)) for name, value in values.items()}

    def write(self, outputs: Arrays, most: int) -> list[bytes]:
        """Return the body of the answer: "predictions", a list with one element per row, or "outputs", by name.

        If there is one output, its values stand without its name. A string is text; an output whose name ends in
        `_bytes` has {"b64": ...} instead. The body comes in parts, which are encoded one by one, so that other threads
        can run in between. Raises RequestError if it has more than `most` bytes, or if the outputs of an answer by row
        have no rows, or not equally many.
        """
        if self.is_by_row:
            counts = {array.shape[0] if array.ndim else None for array in outputs.values()}
            if len(counts) != 1 or None in counts:
                raise invalid("The outputs do not have one value per row: ask by column, with 'inputs'.")
        return encoded(by_rows(outputs) if self.is_by_row else by_columns(outputs), most)


def json_codec(body: bytes, most_rows: int) -> JsonCodec:
    """Return the codec of a body.

    Raises RequestError if the body is no JSON, or not the JSON of a request, or has more than `most_rows` rows.
    """
    content = parsed(body)
    if not isinstance(content, dict):
        raise invalid("The body must be a JSON object with the key 'instances' or 'inputs'.")
    signature_name = content.get("signature_name", "")
    if not isinstance(signature_name, str):
        raise invalid("'signature_name' must be a string.")
    if ("instances" in content) == ("inputs" in content):
        raise invalid("The body must have either the key 'instances' or the key 'inputs'.")
    if "inputs" in content:
        return by_column(signature_name, content["inputs"], most_rows)
    return by_row(signature_name, content["instances"], most_rows)


class Constant(float):
    """NaN, Infinity or -Infinity that stands in the JSON, unlike a number that is too big."""


def constant(name: str) -> Constant:
    """A function of Python, as `number` is: between its calls other threads get their turn."""
    return Constant(name)


def number(digits: str) -> float:
    return float(digits)


def check_values(body: bytes) -> None:
    """Raise RequestError if the JSON of a body has more than MOST_VALUES values: reading them holds Python.

    Values are counted by what begins lists and objects and what stands between values, outside of strings.
    """
    if sum(body.count(sign) for sign in (b"[", b"{", b",")) <= MOST_VALUES:
        return
    signs = (match[0] for match in SIGNS.finditer(body) if match[0][:1] != b'"')
    if next(itertools.islice(signs, MOST_VALUES, None), None):
        raise invalid(f"The body has more than {MOST_VALUES} JSON values, the most here: send several requests.")


def parsed(body: bytes) -> Json:
    """Return what the JSON of a body says. Raises RequestError if it is none, or says one thing twice, or too much."""
    check_values(body)
    try:
        return json.loads(
            body.decode("utf-8-sig"), parse_constant=constant, parse_float=number, object_pairs_hook=with_unique_keys
        )
    except UnicodeDecodeError as error:
        raise invalid(f"JSON Parse error: the body is not UTF-8: its byte {error.start + 1} cannot be read.") from None
    except RecursionError:
        raise invalid("JSON Parse error: lists are nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise invalid(f"JSON Parse error: {ascii(str(error))[1:-1]}") from None
    except ValueError:  # Python's limit of digits
        raise invalid("JSON Parse error: a whole number has thousands of digits.") from None


def with_unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object. Raises RequestError if it has a key twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        raise invalid(f"JSON Parse error: an object has the key {counts.most_common(1)[0][0][:100]!a} twice.")
    return content


def unzipped(body: bytes, most: int) -> bytes:
    """Return what gzip has packed. Raises RequestError if it is damaged, or has more than `most` bytes."""
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(body)).read(most + 1)
    except EOFError:
        raise invalid("The body is gzip that has no end.") from None
    except (gzip.BadGzipFile, zlib.error):
        raise invalid("The body is not gzip, which its Content-Encoding says.") from None
    if len(content) > most:
        raise RequestError(Code.INVALID_ARGUMENT, f"The body has more than {most} bytes, the most here.", 413)
    return content


def by_column(signature_name: str, inputs: Json, most_rows: int) -> JsonCodec:
    """Return the codec of a request with "inputs": one list per input, or the values of the only one."""
    columns = inputs.values() if isinstance(inputs, dict) else [inputs]
    rows = max((len(column) for column in columns if isinstance(column, list)), default=0)
    if rows > most_rows:
        raise too_many_rows(rows, most_rows)
    if isinstance(inputs, dict) and not is_base64(inputs):
        return JsonCodec(signature_name, False, inputs)
    return JsonCodec(signature_name, False, None, inputs)


def by_row(signature_name: str, instances: Json, most_rows: int) -> JsonCodec:
    """Return the codec of a request with "instances": one object per row, or one value of the only input."""
    if not isinstance(instances, list) or not instances:
        raise invalid("'instances' must be a list with at least one element.")
    if len(instances) > most_rows:
        raise too_many_rows(len(instances), most_rows)
    names = names_of(instances[0])
    for number, instance in enumerate(instances):
        if names_of(instance) != names:
            raise invalid(f"The element {number} of 'instances' does not have the same inputs as the first one.")
    if names is None:
        return JsonCodec(signature_name, True, None, instances)
    return JsonCodec(signature_name, True, {name: [instance[name] for instance in instances] for name in names})


def names_of(instance: Json) -> set[str] | None:
    """Return the inputs that an instance names; None if it is a plain value."""
    return set(instance) if isinstance(instance, dict) and not is_base64(instance) else None


def is_base64(value: Json) -> bool:
    """Return whether a value is the notation for bytes: {"b64": ...}."""
    return isinstance(value, dict) and value.keys() == {"b64"}


# values


def array_of_lists(name: str, value: Json, tensor: Tensor | None) -> np.ndarray:
    """Return nested lists as an array of the type of an input.

    Returns an empty array for an unknown input (None), which `Signature.complete` refuses.
    """
    if tensor is None:
        return np.empty(0)
    shape = shape_of_lists(value)
    check_dimensions(name, len(shape))
    check_shape(name, tensor, shape)  # before its values are read one by one
    leaves: list[Json] = []
    collect(name, value, shape, leaves)
    dtype = tensor.dtype
    if dtype == tf.string:
        array = np.empty(len(leaves), object)
        array[:] = [string_of(name, leaf) for leaf in leaves]
    elif dtype.is_integer or dtype.is_floating or dtype.is_bool:
        array = np.array([number_of(name, leaf, dtype) for leaf in leaves], dtype.as_numpy_dtype)
    else:
        raise invalid(f"The input {name!r} is {dtype.name}, which has no form in JSON.")
    return array.reshape(shape)


def shape_of_lists(value: Json) -> tuple[int, ...]:
    """Return the lengths of nested lists, by the first element of each."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return tuple(shape)


def collect(name: str, value: Json, shape: tuple[int, ...], leaves: list[Json]) -> None:
    """Append the values of nested lists to `leaves`. Raises RequestError if they do not have this shape."""
    if not shape:
        if isinstance(value, list):
            raise invalid(f"The lists of the input {name!r} are not all nested equally.")
        leaves.append(value)
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        raise invalid(f"The lists of the input {name!r} do not all have the same length.")
    if len(shape) == 1 and not any(isinstance(element, list) for element in value):
        leaves.extend(value)
        return
    for element in value:
        collect(name, element, shape[1:], leaves)


def string_of(name: str, value: Json) -> bytes:
    """Return a string, or the bytes of {"b64": ...}. Raises RequestError for any other value."""
    if is_base64(value) and isinstance(value["b64"], str):
        try:
            return bytes_of(value["b64"])
        except ValueError:
            raise invalid(f"The input {name!r} has a value of 'b64' that is not base64.") from None
    if not isinstance(value, str):
        raise invalid(f"The input {name!r} must be string; a value is {kind_of(value)}.")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise invalid(f"The input {name!r} has half of a surrogate pair, which is no character.") from None


def bytes_of(text: str) -> bytes:
    """Return the bytes of base64, whose padding may be missing. Raises ValueError if it is none."""
    text += "=" * (-len(text) % 4)
    if "=" in text[:-2]:
        raise ValueError("it has padding before its end")
    parts = (text[start : start + BASE64_PART] for start in range(0, len(text), BASE64_PART))
    return b"".join(base64.b64decode(part, validate=True) for part in parts)


def number_of(name: str, value: Json, dtype: tf.DType) -> bool | int | float:
    """Return a number or a boolean. Raises RequestError for a value that the type cannot hold."""
    if isinstance(value, bool) != dtype.is_bool or not isinstance(value, int | float):
        raise invalid(f"The input {name!r} must be {dtype.name}; a value is {kind_of(value)}.")
    if dtype.is_integer and not (isinstance(value, int) and dtype.min <= value <= dtype.max):
        raise invalid(f"The input {name!r} must be {dtype.name}; a value is outside its range, or not a whole number.")
    if dtype.is_floating and abs(value) > int(dtype.max) and not isinstance(value, Constant):
        raise invalid(f"The input {name!r} must be {dtype.name}; a value is outside its range.")
    return value


def kind_of(value: Json) -> str:
    """Return what JSON calls the kind of a value."""
    kinds = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")
