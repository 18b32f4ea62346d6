"""Files of imported models, written without the packages that write them elsewhere."""

import io
import json
import struct
import zipfile

import numpy as np

STORAGES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<f8": "DoubleStorage", "<u2": "BFloat16Storage"}
MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


def safetensors(arrays):
    """The bytes of a model.safetensors; an array of uint16 holds the bits of bfloat16."""
    names = {"<f4": "F32", "<f2": "F16", "<f8": "F64", "<u2": "BF16", "|i1": "I8"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": names[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def text_opcode(text):
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def number_opcode(number):
    return b"J" + struct.pack("<i", number)


def tensor_opcodes(key, array, shape=None, strides=None):
    """The pickle of a tensor, as PyTorch writes it."""
    shape = array.shape if shape is None else shape
    strides = [stride // array.itemsize for stride in array.strides] if strides is None else strides
    storage = b"(" + text_opcode("storage") + b"ctorch\n" + STORAGES[array.dtype.str].encode() + b"\n"
    storage += text_opcode(key) + text_opcode("cpu") + number_opcode(array.size) + b"tQ"
    axes = [b"(" + b"".join(map(number_opcode, numbers)) + b"t" for numbers in (shape, strides)]
    hooks = b"ccollections\nOrderedDict\n)R"
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + number_opcode(0)
        + axes[0]
        + axes[1]
        + b"\x89"
        + hooks
        + b"tR"
    )


def pickled(arrays, **shapes):
    """The pickle of a state_dict, with its attribute _metadata."""
    items = b"".join(
        text_opcode(name) + tensor_opcodes(str(number), array, **shapes)
        for number, (name, array) in enumerate(arrays.items())
    )
    metadata = b"}" + text_opcode("_metadata") + b"}sb"
    return b"\x80\x02ccollections\nOrderedDict\n)R(" + items + b"u" + metadata + b"."


def torch_archive(arrays, pickle=None, compression=zipfile.ZIP_STORED):
    """The bytes of a pytorch_model.bin of PyTorch 1.6 or later, with another pickle if one is given."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/data.pkl", pickled(arrays) if pickle is None else pickle)
        archive.writestr("archive/byteorder", "little")
        for number, array in enumerate(arrays.values()):
            archive.writestr(f"archive/data/{number}", np.ascontiguousarray(array).tobytes())
    return file.getvalue()


def torch_before_1_6(arrays):
    """The bytes of a pytorch_model.bin of an older PyTorch."""
    keys = b"\x80\x02](" + b"".join(text_opcode(str(number)) for number in range(len(arrays))) + b"e."
    head = MAGIC + b"\x80\x02M\xe9\x03." + b"\x80\x02}" + text_opcode("little_endian") + b"\x88s."
    raw = b"".join(struct.pack("<q", array.size) + np.ascontiguousarray(array).tobytes() for array in arrays.values())
    return head + pickled(arrays) + keys + raw


def npz(arrays):
    """The bytes of a model.npz."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()
