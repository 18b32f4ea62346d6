"""The benchmark of kt.pipeline beside transformers: its table, and both on the model that Marian trained."""

import pytest

from benchmarks.speed.pipeline import Measured, measured, table
from tests.support.marian import huggingface_folder, lines


def test_the_table_has_medians_ratios_and_how_many_lines_are_alike():
    ours = Measured(["a", "b"], {"one": [0.01, 0.03, 0.02], "many": [0.004]}, 1_000_000_000)
    theirs = Measured(["a", "c"], {"one": [0.05], "many": [0.010]}, 500_000_000)
    rows = table({"kt.pipeline": ours, "transformers": theirs})
    assert rows[2:5] == [
        "| kt.pipeline | 20.0 | 4.0 | 1000 |",
        "| transformers | 50.0 | 10.0 | 500 |",
        "| times as fast | 2.50 | 2.50 | |",
    ]
    assert rows[-1] == "1 of 2 lines are translated alike."


@pytest.mark.release
def test_both_translate_the_same_model_alike(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    settings = {"vocab_size": 152, "decoder_vocab_size": 152, "scale_embedding": True, "max_length": 512}
    folder = huggingface_folder(tmp_path / "opus", **settings, max_position_embeddings=512)
    texts = lines("test.en")[:12]
    found = measured(folder, {"one": texts[:2], "many": texts}, beam=2, rounds=1)
    ours, theirs = found.values()
    assert ours.texts == theirs.texts and len(ours.texts) == 12
    assert all(len(seconds) == 1 for each in found.values() for seconds in each.seconds.values())
