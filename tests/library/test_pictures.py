"""What every head attends to, measured and drawn: closed forms, no padding, legible pictures."""

import io
import math

import numpy as np
import pytest
from PIL import Image

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.tokens import EOS
from keras_transformer.inspection.attention import LONGEST, AttentionReader, PairAttention, head_measures
from keras_transformer.inspection.event_file import EventFile
from keras_transformer.inspection.pictures import CELL, Grid, draw_attention, labels, picture_summary
from keras_transformer.model import Transformer
from keras_transformer.translation.forced import ATTENTIONS
from tests.support.events import read_pictures
from tests.support.marian import pair_tokenizer
from tests.support.models import SMALL, assert_close

SOURCE, TARGET = ["▁a", "▁red", "▁dog", "</s>"], ["▁ein", "▁Hund", "</s>"]
KEYS = {"memory": (3, 4), "encoder": (4, 4), "decoder": (3, 3)}  # T x S, S x S, T x T


def uniform(queries, keys):
    return np.full((queries, keys), 1 / keys)


def on(offset):
    """All weight on the key at the query's position plus `offset`; the other queries spread theirs evenly."""
    return lambda queries, keys: np.array(
        [
            np.eye(keys)[query + offset] if 0 <= query + offset < keys else np.full(keys, 1 / keys)
            for query in range(queries)
        ]
    )


def to_last(queries, keys):
    return np.eye(keys)[[keys - 1] * queries]


def to_first(queries, keys):
    return np.eye(keys)[[0] * queries]


def causal(queries, keys):
    """Evenly on itself and everything before it."""
    return np.tril(np.ones((queries, keys))) / np.arange(1, queries + 1)[:, None]


def attention(*heads, source=SOURCE, target=TARGET):
    """A pair with one layer whose heads are these, in every kind of attention."""
    sizes = {"memory": (len(target), len(source)), "encoder": (len(source),) * 2, "decoder": (len(target),) * 2}
    weights = {kind: np.array([[head(*size) for head in heads]], np.float32) for kind, size in sizes.items()}
    return PairAttention(source, target, ["<s>", *target[:-1]], weights)


# measures


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_a_dead_head_has_the_entropy_of_an_even_spread(kind):
    _, keys = KEYS[kind]
    found = head_measures([attention(uniform)])
    assert found[f"{kind}_1_head_1/entropy"] == pytest.approx(math.log(keys))
    assert found[f"{kind}_1_head_1/previous"] == found[f"{kind}_1_head_1/same"] == pytest.approx(1 / keys)


@pytest.mark.parametrize(("name", "offset"), [("previous", -1), ("same", 0), ("next", 1)])
def test_a_head_that_copies_has_all_weight_of_the_queries_that_have_such_a_position(name, offset):
    found = head_measures([attention(on(offset))])
    for kind in ("memory", "encoder"):
        assert found[f"{kind}_1_head_1/{name}"] == 1


def test_weight_on_the_end_of_sentence_and_on_its_beginning():
    found = head_measures([attention(to_last, to_first)])
    assert (found["memory_1_head_1/end"], found["memory_1_head_2/end"]) == (1, 0)
    assert (found["encoder_1_head_1/end"], found["encoder_1_head_1/entropy"]) == (1, 0)
    assert (found["decoder_1_head_1/begin"], found["decoder_1_head_2/begin"]) == (0, 1)


def test_the_decoder_has_no_curves_for_what_it_cannot_attend_to():
    """A later piece, and the end of sentence, which it writes and never reads."""
    found = head_measures([attention(causal)])
    assert {name for name in found if name.startswith("decoder")} == {
        f"decoder_1_head_1/{name}" for name in ("entropy", "previous", "same", "begin")
    }
    assert found["decoder_1_head_1/entropy"] == pytest.approx((0 + math.log(2) + math.log(3)) / 3)
    assert found["decoder_1_head_1/previous"] == pytest.approx((1 / 2 + 1 / 3) / 2)


# the attention of a model


@pytest.fixture(scope="module")
def read(pair):
    return AttentionReader(*pair, [("the cat sat on the mat", "kochen"), ("a", "der Küche hundred and forty-one")])


def test_the_pieces_of_each_side_are_those_by_which_it_is_translated():
    """The two sides of a pair of tokenizers divide the same text in two ways."""
    tokenizer, text = pair_tokenizer(), "two hundred and zweihundert"
    model = Transformer(SMALL.replace(vocab_size=tokenizer.vocab_size))
    [shown], pieces = AttentionReader(model, tokenizer, [(text, text)]).pairs, tokenizer.pieces()
    assert shown.source == [pieces[number] for number in [*tokenizer.encode(text), EOS]]
    assert shown.target == [pieces[number] for number in [*tokenizer.encode_target(text), EOS]]
    assert shown.source != shown.target


@pytest.mark.slow
def test_padding_changes_nothing_and_is_not_in_it(pair, read):
    """Each pair alone has no padding."""
    both = read()
    for found, texts in zip(
        both, [("the cat sat on the mat", "kochen"), ("a", "der Küche hundred and forty-one")], strict=True
    ):
        (alone,) = AttentionReader(*pair, [texts])()
        assert (found.source, found.target, found.read) == (alone.source, alone.target, alone.read)
        for kind, weights in found.weights.items():
            assert weights.shape == (1, 4, len(found.queries(kind)), len(found.keys(kind)))
            assert_close(weights, alone.weights[kind])
            assert_close(weights.sum(axis=-1), np.ones(weights.shape[:-1]))


def test_the_decoder_reads_what_it_has_written_and_the_encoder_the_source(read):
    for found in read():
        assert found.source[-1] == found.target[-1] == "</s>" and found.read == ["<s>", *found.target[:-1]]
        causal = found.weights["decoder"]
        assert_close(causal, np.tril(causal))
        assert head_measures([found])["decoder_1_head_1/begin"] > 0


def test_long_sides_are_cut_and_bad_pairs_are_refused(pair, caplog):
    (found,) = AttentionReader(*pair, [("the cat " * 40, "kochen")])()
    assert len(found.source) == LONGEST and "only the first" in caplog.text
    with pytest.raises(ConfigError, match="pair 2 .*blank"):
        AttentionReader(*pair, [("a", "b"), ("a", " ")])
    with pytest.raises(InputError, match="Target 2 has a lone surrogate"):
        AttentionReader(*pair, [("a", "b"), ("a", "\ud800")])
    with pytest.raises(ConfigError, match="at least one"):
        AttentionReader(*pair, [])


# pictures


def pixels(picture):
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    assert image.size == (picture.width, picture.height)
    return np.asarray(image, float).mean(axis=2)


def test_a_picture_shows_each_weight_of_each_head_in_its_place():
    pair = attention(on(0), to_last, to_first)
    pair = pair._replace(weights=pair.weights | {"encoder": np.concatenate([pair.weights["encoder"]] * 2)})
    shown = pixels(draw_attention(pair, "encoder"))
    grid = Grid.of(pair.weights["encoder"], labels(SOURCE), labels(SOURCE))
    for layer, head in np.ndindex(2, 3):
        row, column = grid.corner(layer, head)
        rows, columns = ((np.arange(4) + first + 0.5) * CELL for first in (row, column))
        brightness = shown[np.ix_(rows.astype(int), columns.astype(int))]
        is_full = pair.weights["encoder"][layer, head] == 1
        assert (brightness[is_full] < 100).all() and (brightness[~is_full] > 230).all()


def test_tensorboard_finds_the_picture_as_it_was_drawn(tmp_path):
    picture = draw_attention(attention(uniform), "decoder")
    file = EventFile(tmp_path)
    file.add(7, 1.0, picture_summary("attention_pictures/a", picture, "ein *Hund*"))
    file.close()
    assert read_pictures(tmp_path) == {"attention_pictures/a": [(7, picture.width, picture.height, picture.png)]}
    [value] = picture_summary("a", picture, "ein *Hund*").value
    assert value.metadata.summary_description == "ein *Hund*"
