"""The embedding projector: what TensorBoard reads is what the model has, with a legible label per row."""

import functools

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

import train.projector
from keras_transformer.inspection.projector import write_projector
from keras_transformer.model import Transformer
from tests.support.commands import assert_one_sentence, invoke
from tests.support.training import TINY

projector_command = functools.partial(invoke, train.projector.app)


def read(tensorboard):
    """Every embedding that TensorBoard finds in a folder of event files: name -> (table, labels)."""
    config = text_format.Parse((tensorboard / "projector_config.pbtxt").read_text(encoding="utf-8"), ProjectorConfig())
    found = {}
    for entry in config.embeddings:
        table = np.loadtxt(tensorboard / entry.tensor_path, delimiter="\t")
        assert list(entry.tensor_shape) == list(table.shape)
        labels = (tensorboard / entry.metadata_path).read_text(encoding="utf-8").split("\n")
        assert labels.pop() == "" and len(labels) == len(table)
        found[entry.tensor_name] = table, labels
    return found


@pytest.mark.parametrize(
    ("is_shared", "names"), [(True, ["embedding"]), (False, ["source_embedding", "target_embedding", "logits"])]
)
def test_every_table_is_written_with_its_rows_in_the_order_of_the_pieces(tmp_path, is_shared, names):
    model = Transformer(TINY.replace(shared_embeddings=is_shared))
    pieces = [f"piece {number}\t" for number in range(TINY.vocab_size)]
    assert sorted(write_projector(tmp_path / "tensorboard", model, pieces)) == sorted(names)
    found = read(tmp_path / "tensorboard")
    assert set(found) == set(names)
    for name, (table, labels) in found.items():
        np.testing.assert_allclose(table, model.get_layer(name).matrix.numpy(), rtol=1e-3)
        assert labels == [rf"piece␣{number}\t" for number in range(TINY.vocab_size)]


def test_a_disk_that_fills_up_leaves_the_files_that_were_there(tmp_path, monkeypatch):
    model, pieces = Transformer(TINY), ["a"] * TINY.vocab_size
    write_projector(tmp_path, model, pieces)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def refuse(file, *_, **__):
        file.write(b"0.1\t")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savetxt", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_projector(tmp_path, model, pieces)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_command_writes_that_of_a_run_and_prints_the_folder_to_open(random_folder, pair):
    result = projector_command(random_folder)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{random_folder / 'tensorboard'}\n"
    transformer, tokenizer = pair
    table, labels = read(random_folder / "tensorboard")["embedding"]
    np.testing.assert_allclose(table, transformer.get_layer("embedding").matrix.numpy(), rtol=1e-3)
    assert labels[:4] == tokenizer.pieces()[:4] and len(labels) == tokenizer.vocab_size


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path):
    assert_one_sentence(projector_command(tmp_path / "absent"), tmp_path / "absent")
    assert_one_sentence(projector_command(tmp_path), tmp_path)
