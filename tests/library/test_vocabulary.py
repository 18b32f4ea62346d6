"""The pieces of an imported model by their ids here, and the rows that embed and score them."""

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import UserError
from keras_transformer.models.imported.names import weights_of_tokens
from keras_transformer.models.imported.vocabulary import NO_ROW, Vocabulary, original, pieces_here, renamed
from keras_transformer.models.imported.weights import Tokens

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]


def of(*pieces, **ids):
    return Vocabulary.of_pieces(pieces, "vocab.yml", **ids)


@pytest.mark.parametrize(
    "vocabulary, pieces, inputs, labels",
    [
        (of("</s>", "<unk>", "a", "b"), ["a", "b"], [-1, 1, -1, 0, 2, 3], [-1, 1, -1, 0, 2, 3]),  # Marian's
        (of("</s>", "<unk>", "a", "<pad>", pad=3, start=3), ["a"], [3, 1, 3, 0, 2], [3, 1, -1, 0, 2]),  # Hugging Face's
        (of("<s>", "<unk>", "</s>", "a", start=0), ["a"], [-1, 1, 0, 2, 3], [-1, 1, 0, 2, 3]),
        (of("</s>", "<unk>", "<s>", "a"), ["<s>'", "a"], [-1, 1, -1, 0, 2, 3], [-1, 1, -1, 0, 2, 3]),
        (of("a", "x", "y", unk=1, eos=2), ["a"], [-1, 1, -1, 2, 0], [-1, 1, -1, 2, 0]),
    ],
)
def test_each_piece_has_its_row_and_a_special_one_where_it_has_its_place_here(vocabulary, pieces, inputs, labels):
    assert pieces_here(vocabulary, vocabulary) == SPECIAL + pieces
    assert vocabulary.inputs(SPECIAL + pieces).tolist() == inputs
    assert vocabulary.labels(SPECIAL + pieces).tolist() == labels


def test_a_piece_of_the_other_side_is_read_as_unknown_and_never_written():
    one, other = of("</s>", "<unk>", "a", "b"), of("</s>", "<unk>", "b", "c")
    pieces = pieces_here(one, other)
    assert pieces == [*SPECIAL, "a", "b", "c"]
    assert one.inputs(pieces).tolist()[4:] == [2, 3, 1] and other.labels(pieces).tolist()[4:] == [NO_ROW, 2, 3]


def test_a_pad_that_is_no_class_is_not_written():
    vocabulary = of("</s>", "<unk>", "<pad>", pad=2)._replace(scores_pad=False)
    assert vocabulary.inputs(SPECIAL).tolist() == [2, 1, -1, 0] and vocabulary.labels(SPECIAL).tolist() == [
        -1,
        1,
        -1,
        0,
    ]


def test_a_name_that_is_special_here_is_another_one_and_comes_back():
    for piece in ("<s>", "<s>'", "</s>''", "it's", "dogs'", "'", "a"):
        assert original(renamed(piece)) == piece and renamed(piece) not in SPECIAL
    assert [renamed("<s>'"), original("<s>"), original("dogs'")] == ["<s>''", "<s>", "dogs'"]


@pytest.mark.parametrize(
    "pieces, ids, sentence",
    [
        (["</s>", "a"], {}, "vocab.yml has no piece <unk>, which every model needs."),
        (["<unk>"], {}, "vocab.yml has no piece </s>, which every model needs."),
        (["</s>", "<unk>"], {"pad": 2}, "vocab.yml has 2 pieces: there is none with the id 2."),
        (["</s>", "<unk>"], {"start": -1}, "there is none with the id -1."),
    ],
)
def test_a_vocabulary_without_what_is_needed_is_refused(pieces, ids, sentence):
    with pytest.raises(UserError, match=sentence):
        of(*pieces, **ids)


def test_the_decoder_begins_with_its_own_piece_whether_or_not_that_is_the_pad():
    vocabulary = of("</s>", "<unk>", "<pad>", "a", pad=2, start=3)
    assert vocabulary.start == 3 and vocabulary.inputs(SPECIAL).tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize("is_shared", [False, True])
def test_each_matrix_of_the_model_has_the_rows_of_its_side_by_ids_here(is_shared):
    """A piece of the other side is embedded as <unk>, and has as a class no weights and a logit that never wins."""
    source, target = of("</s>", "<unk>", "a", "b"), of("<unk>", "b", "</s>", "c")
    matrices = [np.arange(8, dtype=np.float32).reshape(4, 2) + 10 * number for number in (1, 2, 3)]
    bias = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    tokens = Tokens(source, target, *matrices, bias)
    config = TransformerConfig(vocab_size=7, d_model=2, num_heads=1, shared_embeddings=is_shared)
    values = tokens.values(config)
    assert set(values) == {weight.ours for weight in weights_of_tokens(config)}
    assert tokens.pieces() == [*SPECIAL, "a", "b", "c"]
    rows = {
        "embedding": (matrices[0], [None, 1, None, 0, 2, 3, 1]),
        "source_embedding": (matrices[0], [None, 1, None, 0, 2, 3, 1]),
        "target_embedding": (matrices[1], [None, 0, None, 2, 0, 1, 3]),
        "logits": (matrices[2], [None, 0, None, 2, None, 1, 3]),
    }
    for name, value in values.items():
        layer, _, kind = name.partition("/")
        if kind == "matrix":
            matrix, numbers = rows[layer]
            assert value.tolist() == [[0, 0] if number is None else matrix[number].tolist() for number in numbers]
        else:
            numbers = rows["logits"][1]
            np.testing.assert_array_equal(value, [np.float32(-100) if n is None else bias[n] for n in numbers])
