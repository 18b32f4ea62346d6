"""The signature `explain` shows what the model computes, within its limits."""

import numpy as np
import pytest
import tensorflow as tf

from export.graph.explained import BEAM, EXPLAINED_LINES, no_explanation
from export.graph.served_graph import ServedGraph
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.trace import EXPLAINED_TOKENS
from keras_transformer.translation.forced import ATTENTIONS, ForcedDecoder
from tests.support.exports import asker
from tests.support.runs import RUN_MODEL, SENTENCES

OPTIONS, LONGEST = SearchOptions(beam_size=3, extra_length=6), 40
LINES = [SENTENCES[0], " ", SENTENCES[1]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ask(pair):
    return asker(ServedGraph(*pair, OPTIONS, LONGEST))


@pytest.fixture(scope="module")
def explained(ask):
    return ask("explain", LINES)


def items(text):
    return text.decode().split(" ")


def numbers(text, *shape):
    return np.array(items(text), float).reshape(shape)


@pytest.mark.nightly
def test_its_pieces_are_those_of_the_best_translation(ask, explained):
    best = ask("translate", LINES)["pieces"][:, 0]
    assert explained["pieces"].tolist() == best.tolist()
    assert explained["source_pieces"].tolist() == ask("tokenize", LINES)["pieces"].tolist()


@pytest.mark.nightly
def test_attention_is_the_models_for_every_block_and_head(pair, explained):
    forced = ForcedDecoder(pair[0])
    for row in (0, 2):
        source, target = (
            [pair[1].pieces().index(piece) for piece in items(explained[name][row])]
            for name in ("source_pieces", "pieces")
        )
        expected = forced(np.array([source]), np.array([target])).attention
        shapes = {"memory": (len(target), len(source)), "encoder": (len(source),) * 2, "decoder": (len(target),) * 2}
        for kind, (side, name) in ATTENTIONS.items():
            heads = explained["heads"][row]
            found = numbers(explained[f"{kind}_attention"][row], -1, heads, *shapes[kind])
            assert heads == RUN_MODEL.num_heads and len(found) == RUN_MODEL.decoder_layers
            for number, block in enumerate(found, 1):
                np.testing.assert_allclose(block, expected[f"{side}_block_{number}/{name}"][0], atol=6e-4)


@pytest.mark.nightly
def test_the_beam_leads_to_the_best_translation(explained):
    for row in (0, 2):
        columns = [items(explained[name][row]) for name in BEAM]
        assert len({len(column) for column in columns}) == 1
        kept = {
            (int(step), int(slot)): (int(parent), piece) for step, parent, slot, piece, _ in zip(*columns, strict=True)
        }
        paths = []
        for (step, slot), (_, piece) in kept.items():
            if piece == "</s>" and slot >= 0:
                path, parent = [], slot
                for earlier in range(step, -1, -1):
                    parent, piece = kept[earlier, parent]
                    path.insert(0, piece)
                paths.append(path)
        assert items(explained["pieces"][row]) in paths


@pytest.mark.nightly
def test_a_blank_line_has_no_explanation(explained):
    for name, value in no_explanation().items():
        assert explained[name][1] == value.numpy()


@pytest.mark.nightly
def test_options_arrive(ask, explained):
    greedy = ask("explain", LINES[:1], beam_size=1)
    assert "0" in set(items(greedy["beam_slots"][0])) <= {"0", "-1"}
    longer = ask("explain", LINES[:1], min_length=9, max_length=9)
    assert len(items(longer["pieces"][0])) == 9
    forced = ask("explain", LINES[:1], target_prefix=[SENTENCES[2]])
    pieces = ask("tokenize", [SENTENCES[2]])["pieces"][0].decode().removesuffix("</s>")
    assert forced["pieces"][0].decode().startswith(pieces.strip())


@pytest.mark.nightly
def test_what_it_reads_and_how_many_lines_it_takes_is_bounded(pair):
    ask = asker(ServedGraph(*pair, SearchOptions(extra_length=100), 512))
    found = ask("explain", ["a dog " * 200], min_length=150)
    assert found["truncated"].tolist() == [True]
    assert len(items(found["source_pieces"][0])) == EXPLAINED_TOKENS == len(items(found["pieces"][0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"explain takes at most {EXPLAINED_LINES} lines"):
        ask("explain", ["a"] * (EXPLAINED_LINES + 1))


@pytest.mark.nightly
def test_no_lines_have_no_explanations(ask):
    assert all(len(values) == 0 for values in ask("explain", []).values())
