"""What every head attends to, measured and drawn: closed forms, no padding, legible pictures."""

import io
import math
import warnings

import numpy as np
import pytest
from matplotlib import colormaps
from PIL import Image

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.tokens import EOS
from keras_transformer.inspection.attention import LONGEST, AttentionReader, PairAttention, head_measures
from keras_transformer.inspection.event_file import EventFile
from keras_transformer.inspection.pictures import (
    BAR,
    CELL,
    GREYS,
    SHADES,
    WIDEST,
    Grid,
    as_png,
    cells_for,
    draw_attention,
    families,
    labels,
    paint,
    picture_summary,
    texts_of,
)
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


def test_a_measure_is_the_mean_of_all_queries_of_all_pairs():
    short = attention(to_last, source=SOURCE[2:])
    found = head_measures([attention(uniform), short])
    assert found["encoder_1_head_1/entropy"] == pytest.approx((4 * math.log(4) + 2 * 0) / (4 + 2))


# the attention of a model


@pytest.fixture(scope="module")
def read(pair):
    return AttentionReader(*pair, [("the cat sat on the mat", "kochen"), ("a", "der Küche hundred and forty-one")])


def test_a_model_with_fewer_positions_reads_fewer_pieces(pair):
    model = Transformer(pair[0].model_config.replace(positions="learned", max_positions=5))
    [shown] = AttentionReader(model, pair[1], [("the cat sat on the mat", "a " * 20)]).pairs
    assert (len(shown.source), len(shown.target), shown.target[-1]) == (5, 5, "</s>")


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


def test_every_panel_has_the_labels_of_its_columns_and_every_layer_those_of_its_rows():
    pair = attention(to_last, to_last, to_last)
    weights = np.concatenate([pair.weights["encoder"]] * 2)
    shown = pixels(draw_attention(pair._replace(weights={"encoder": weights}), "encoder"))
    grid = Grid.of(weights, labels(SOURCE), labels(SOURCE))

    def area(row, column, height, width):
        return shown[row * CELL : (row + height) * CELL - 1, column * CELL : (column + width) * CELL - 1]

    first_row, first_column = grid.corner(0, 0)
    of_rows, of_columns = (first_row, 0, 4, first_column), (first_row - grid.top + 1, first_column, grid.top - 1, 4)
    assert area(*of_rows).min() < 60 and area(*of_columns).min() < 60
    for layer, head in np.ndindex(2, 3):
        row, column = grid.corner(layer, head)
        np.testing.assert_array_equal(area(row, 0, 4, first_column), area(*of_rows))
        np.testing.assert_array_equal(area(row - grid.top + 1, column, grid.top - 1, 4), area(*of_columns))


def test_one_weight_has_one_colour_in_every_picture():
    """The scale ends at 1, whatever the largest weight is."""
    colours = []
    for keys in (4, 2):
        pair = attention(uniform, source=SOURCE[-keys:])
        row, column = Grid.of(pair.weights["encoder"], *[labels(pair.source)] * 2).corner(0, 0)
        colours.append(pixels(draw_attention(pair, "encoder"))[(row + 1) * CELL - 3, (column + 1) * CELL - 3])
    assert colours[0] > colours[1] + 20  # a quarter is lighter than a half


def test_the_colour_grows_with_the_root_of_a_weight():
    image = np.zeros((3 * CELL, 5 * CELL), np.uint8)
    paint(image, (1, 1), np.array([[0.0, 0.25, 1.0]]))
    assert image[CELL, CELL : 4 * CELL : CELL].tolist() == [GREYS, round((GREYS + 255) / 2), 255]


def test_any_piece_is_drawn_without_a_warning():
    odd = ["$x", "$\\frac$", "한국", "\n", "<0x0A>", "_^{}", "▁" + "Donaudampfschiff" * 3, "</s>"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_attention(attention(uniform, source=odd), "memory")
    assert [len(label) for label in labels(odd[-2:])] == [WIDEST, 4] and "\n" not in "".join(labels(odd))
    assert cells_for(["a", "b" * 30, "c"]) == cells_for(["b" * 30]) > cells_for(["a"])


def test_tensorboard_finds_the_picture_as_it_was_drawn(tmp_path):
    picture = draw_attention(attention(uniform), "decoder")
    file = EventFile(tmp_path)
    file.add(7, 1.0, picture_summary("attention_pictures/a", picture, "ein *Hund*"))
    file.close()
    assert read_pictures(tmp_path) == {"attention_pictures/a": [(7, picture.width, picture.height, picture.png)]}
    [value] = picture_summary("a", picture, "ein *Hund*").value
    assert value.metadata.summary_description == "ein *Hund*"


def test_the_palette_goes_from_black_to_white_and_from_no_weight_to_all_of_it():
    image = np.array([[0, GREYS // 2, GREYS - 1, GREYS, (GREYS + 255) // 2, 255]], np.uint8)
    shown = np.asarray(Image.open(io.BytesIO(as_png(image).png)).convert("RGB"), int)[0]
    assert shown[[0, 2]].tolist() == [[0] * 3, [255] * 3] and abs(shown[1] - 128).max() <= 1
    expected = 255 * colormaps["Blues"]([0, 63 / 127, 1.0])[:, :3]
    np.testing.assert_allclose(shown[3:], expected, atol=1.5)


def test_the_fonts_of_labels_are_matplotlibs_own_and_those_that_are_installed(monkeypatch):
    monkeypatch.setattr("matplotlib.font_manager.fontManager.get_font_names", lambda: ["Arial", "Noto Sans CJK JP"])
    assert families() == ["DejaVu Sans", "Noto Sans CJK JP"]


@pytest.mark.parametrize("grid", [Grid(2, 3, 4, 5, left=6, top=3), Grid(1, 1, 2, 2, left=2, top=2)], ids=str)
def test_panels_their_labels_and_the_bar_lie_apart_and_each_text_beside_what_it_names(grid):
    taken, (bar, column_of_bar) = np.zeros(grid.size, int), grid.bar
    taken[bar : bar + BAR, column_of_bar : column_of_bar + 4] += 1
    corners = {panel: grid.corner(*panel) for panel in np.ndindex(grid.layers, grid.heads)}
    for (_, head), (row, column) in corners.items():
        taken[row - grid.top : row + grid.queries, column - grid.left * (head == 0) : column + grid.keys] += 1
    of_panels = grid.layers * (grid.top + grid.queries) * (grid.left + grid.heads * grid.keys)
    assert taken.max() == 1 and taken[grid.gap : -1, grid.gap : -1].sum() == of_panels + 4 * BAR
    rows, columns = list("abcdefg"[: grid.queries]), list("vwxyz"[: grid.keys])
    places = {text: np.array(place) for *place, text, _ in texts_of(grid, "title", rows, columns)}
    for (layer, head), (row, column) in corners.items():
        assert places[f"head {head + 1}"][1] == column and row - 1 < places[f"layer {layer + 1}"][0] < row
    row, column = corners[0, 0]
    assert bar == row and column_of_bar > grid.corner(0, grid.heads)[1]
    assert [places[text][0] for text in rows] == [row + number + 0.5 for number in range(grid.queries)]
    assert [places[text][1] for text in columns] == [column + number + 0.5 for number in range(grid.keys)]
    assert all(column - 1 < places[text][1] < column for text in [*rows, "layer 1"])
    assert all(row - 1 < places[text][0] < row for text in columns)
    assert bar - 1 <= places["weight"][0] < bar and places["weight"][1] == column_of_bar
    assert places["title"][0] < row - grid.top < places["head 1"][0] < row - grid.top + 1
    assert [(1 - (places[str(shade)][0] - bar) / BAR) ** 2 for shade in SHADES] == pytest.approx(SHADES)
