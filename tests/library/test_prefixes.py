"""The beginning of a translation: characters, in every division into pieces that the tokenizer has for longer texts."""

import numpy as np
import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import EOS, PAD, UNK
from keras_transformer.model import Transformer
from keras_transformer.pieces.batching import LONGEST_SOURCE
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.prefixes import NO_ENDING, Prefix, PrefixReader, rules_of_prefixes
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.marian import lines as marian_lines
from tests.support.marian import pair_tokenizer
from tests.support.models import as_numpy, assert_close
from tests.support.runs import SENTENCES
from tests.support.searches import beam_search
from tests.support.tables import LENGTH, A, B, decoder_of, table, tokens_of


@pytest.fixture(scope="module", params=["identity", "nfc", "dummy prefix"])
def tokenizer(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("prefixes") / "tokenizer.model"
    normalization = "nfc" if request.param == "nfc" else "identity"
    more = {"dummy_prefix": request.param == "dummy prefix"}
    train_tokenizer(SENTENCES * 3, path, vocab_size=360, normalization=normalization, **more)
    return Tokenizer(path)


def completed(tokenizer, prefix):
    """Return the text of each way to complete a prefix."""
    return [tokenizer.decode([*prefix.tokens, *ending]) for ending in prefix.endings]


def test_every_ending_completes_the_text_of_the_prefix(tokenizer):
    for text in (SENTENCES[0], SENTENCES[0][:7], SENTENCES[0][:5] + " ", "zzé"):
        prefix = PrefixReader(tokenizer).read(text, 100)
        assert prefix.endings and all(found.startswith(text.rstrip()) for found in completed(tokenizer, prefix))
        shorter = completed(tokenizer, prefix._replace(endings=[ending[:-1] for ending in prefix.endings]))
        assert text != text.rstrip() or not any(found.startswith(text) for found in shorter)


def test_what_a_longer_text_is_divided_into_begins_as_one_of_its_endings(tokenizer):
    """Whatever the model would write, if it is divided as the tokenizer does: all its beginnings allow it."""
    reader = PrefixReader(tokenizer)
    for sentence in SENTENCES[:6]:
        tokens = tokenizer.encode(sentence)
        for count in range(len(sentence) + 1):
            prefix = reader.read(sentence[:count], 100)
            assert tokens[: len(prefix.tokens)] == prefix.tokens
            rest = tuple(tokens[len(prefix.tokens) :])
            assert any(rest[: len(ending)] == ending for ending in prefix.endings)


def test_a_space_at_the_end_asks_for_a_new_word(tokenizer):
    word = SENTENCES[0].split()[0]
    pieces = tokenizer.pieces()
    for space in (" ", "  "):
        prefix = PrefixReader(tokenizer).read(word + space, 100)
        assert all(pieces[ending[0]].startswith(SPACE) for ending in prefix.endings)


def test_a_tokenizer_of_two_models_takes_the_pieces_of_the_target_side():
    tokenizer = pair_tokenizer()
    reader = PrefixReader(tokenizer)
    for line in marian_lines("test.de")[:5]:
        for count in range(len(line) + 1):
            if UNK in tokenizer.encode_target(line[:count]):  # Marian's model has no piece for "v" alone
                with pytest.raises(InputError, match="for which this model has no piece.*to its end"):
                    reader.read(line[:count], 100)
                continue
            texts = completed(tokenizer, reader.read(line[:count], 100))
            assert all(text.startswith(line[:count].rstrip()) for text in texts)
    assert len(reader.read("zwe", 100).endings) > 1


def test_no_text_asks_for_nothing(tokenizer):
    assert PrefixReader(tokenizer).read("", 100) == Prefix([], [()])


def test_rules_have_the_endings_of_each_sentence_and_none_beyond():
    rules = rules_of_prefixes([Prefix([4], [(5, 6), (7,)]), Prefix([], [()])])
    assert rules["prefixes"].tolist() == [[4], [PAD]]
    assert rules["endings"].tolist() == [[[5, 6], [7, PAD]], [[PAD, PAD], [NO_ENDING, NO_ENDING]]]
    assert rules_of_prefixes([Prefix([], [()])])["endings"].shape == (1, 1, 1)


@pytest.mark.nightly
def test_every_translation_begins_with_its_prefix_and_its_own_beginning_changes_nothing(pair):
    translator = Translator(*pair, SearchOptions(beam_size=1, extra_length=5))
    lines = SENTENCES[:3]
    free = translator.translate(lines)
    canonical = [index for index, found in enumerate(free) if [*pair[1].encode(found.text)] == [*found.ids[:-1]]]
    cuts = [(index, count) for index in range(len(lines)) for count in range(0, len(free[index].text) + 1, 2)]
    prefixes = [free[index].text[:count] for index, count in cuts]
    found = translator.translate([lines[index] for index, _ in cuts], prefixes=prefixes)
    for (index, _), prefix, translation in zip(cuts, prefixes, found, strict=True):
        assert translation.text.startswith(prefix)
        if index in canonical:
            assert translation.ids == free[index].ids
            np.testing.assert_allclose(translation.score, free[index].score, rtol=1e-4)
    others = ["the f", "the ", "xyz ", "q"]
    for text, translation in zip(others, translator.translate(lines[:1] * 4, prefixes=others), strict=True):
        assert translation.text.startswith(text)
    beside = translator.translate(lines, prefixes=["", "the f", ""])
    assert [beside[0].ids, beside[2].ids] == [free[0].ids, free[2].ids] and beside[1].text.startswith("the f")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(4, n_best=4, extra_length=5),
        SearchOptions(3, n_best=3, extra_length=5, temperature=1.0),
        SearchOptions(2, extra_length=5, no_repeat_ngram_size=1, repetition_penalty=2.0),
    ],
    ids=["n-best", "drawn", "no repetition"],
)
def test_every_hypothesis_begins_with_the_prefix_whatever_the_other_rules(pair, options):
    translations = Translator(*pair, options).translate_n_best(SENTENCES[:2], prefixes=["a do", "the the "])
    for prefix, candidates in zip(["a do", "the the "], translations, strict=True):
        assert len(candidates) == options.n_best and all(each.text.startswith(prefix) for each in candidates)


@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_search_takes_the_most_probable_of_the_endings_and_is_free_after_it(beam_size, static_shapes):
    start, after_b = [0.9, 0.06, 0.04], [0.1, 0.2, 0.7]  # of EOS, A, B
    tables = np.stack([table(start=start, A=[0.5, 0.3, 0.2], B=after_b, BB=[0.2, 0.7, 0.1])] * 3)
    endings = [[(A,), (B, B)], [(B, B), (B, A)], [()]]
    rules = rules_of_prefixes([Prefix([], each) for each in endings]) | {"limits": np.full(3, LENGTH, "int32")}
    options = SearchOptions(beam_size, 0.0)
    found = beam_search(*decoder_of(tables, beam_size), rules, LENGTH, options, static_shapes)
    outputs = [tokens_of(ids) for ids in as_numpy(found.ids)[:, 0]]
    assert outputs == [(A, EOS), (B, B, A, EOS), (EOS,)]
    assert_close(as_numpy(found.scores)[:, 0], np.log([0.06 * 0.5, 0.04 * 0.7 * 0.7, 0.9]))


@pytest.mark.parametrize("positions, most", [({}, LONGEST_SOURCE), ({"positions": "learned", "max_positions": 8}, 8)])
def test_what_bounds_a_prefix_is_the_longest_output_and_not_the_longest_source(pair, positions, most):
    model = Transformer(pair[0].model_config.replace(**positions))
    translator = Translator(model, pair[1], max_source_tokens=4)
    assert len(pair[1].encode_target("a " * 6)) == 6
    for tokens in (6, most - 1):
        translator.check_prefix("a " * tokens)
    with pytest.raises(InputError, match=f"has {most} tokens; at most {most - 1} are possible"):
        translator.check_prefix("a " * most)
