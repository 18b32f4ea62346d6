"""kt.pipeline writes what `generate` of transformers does with the same arguments, on a model that Marian trained."""

import random

import pytest
from num2words import num2words

import keras_transformer as kt
from tests.support.marian import huggingface_folder

pytestmark = pytest.mark.release
PIECES = 152  # of the model, <pad> included
LONG = 400  # tokens, which no translation reaches
SETTINGS = {  # of OPUS-MT's folders
    "vocab_size": PIECES,
    "decoder_vocab_size": PIECES,
    "scale_embedding": True,
    "forced_eos_token_id": 0,
    "bos_token_id": 0,
    "max_length": 512,
    "max_position_embeddings": 512,
    "bad_words_ids": [[PIECES - 1]],
}
LINES = [num2words(number) for number in random.Random(1).sample(range(1000), 100)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("torch", reason="`make peers` installs PyTorch")
    pytest.importorskip("transformers", reason="`make peers` installs transformers")
    return huggingface_folder(tmp_path_factory.mktemp("peers") / "opus", **SETTINGS)


@pytest.fixture(scope="module")
def translate(folder):
    return kt.pipeline("translation", model=folder)


@pytest.fixture(scope="module")
def generate(folder):
    """A function of lines and arguments: the texts of each line, and how many tokens the longest of them has."""
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    model, tokenizer = MarianMTModel.from_pretrained(folder).eval(), MarianTokenizer.from_pretrained(folder)
    torch.set_num_threads(1)

    def generated(lines, **arguments):
        found = []
        for line in lines:
            with torch.no_grad():
                rows = model.generate(**tokenizer([line], return_tensors="pt"), **arguments)
            texts = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]
            found.append((texts, rows.shape[1]))
        return found

    return generated


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_beams": 1},
        {"num_beams": 4},
        {"num_beams": 4, "length_penalty": 0.0},
        {"num_beams": 4, "length_penalty": 2.0},
        {"num_beams": 4, "no_repeat_ngram_size": 2},
        {"num_beams": 4, "repetition_penalty": 1.3},
        {"num_beams": 1, "repetition_penalty": 1.3},
        {"num_beams": 4, "max_new_tokens": LONG},
    ],
)
def test_translations_are_those_of_generate(arguments, translate, generate):
    expected = [text for (text,), _ in generate(LINES, **arguments)]
    assert [each["translation_text"] for each in translate(LINES, **arguments)] == expected


@pytest.mark.parametrize("limit", [{"max_length": 7}, {"max_new_tokens": 6}])
def test_translations_that_end_before_the_limit_are_the_same_and_none_is_longer(limit, translate, generate):
    """Both limits are the same one, six tokens, the end of the sentence among them."""
    expected = generate(LINES, num_beams=4, max_new_tokens=LONG)
    fits = [number for number, (_, tokens) in enumerate(expected) if tokens <= 7]
    found = [each["translation_text"] for each in translate(LINES, num_beams=4, **limit)]
    assert 20 < len(fits) < len(LINES)
    equal = [number for number in fits if found[number] == expected[number][0][0]]
    assert equal == fits
    encoded = translate.engine.tokenizer.encode_target_batch(found)
    assert max(map(len, encoded)) == 5


@pytest.mark.parametrize("least", [{"min_length": 12}, {"min_new_tokens": 11}])
def test_the_least_length_is_that_of_generate(least, translate, generate):
    """Both are the same one; where transformers repeats itself without end, hypotheses differ."""
    expected = generate(LINES[:30], num_beams=1, max_new_tokens=60, **least)
    found = translate(LINES[:30], num_beams=1, max_new_tokens=60, **least)
    ended = [number for number, (_, tokens) in enumerate(expected) if tokens < 60]
    assert len(ended) > 10
    for number in ended:
        assert found[number]["translation_text"] == expected[number][0][0]


def test_the_best_of_several_is_that_of_generate_and_no_text_comes_twice(translate, generate):
    expected = generate(LINES, num_beams=4, num_return_sequences=3)
    found = translate(LINES, num_beams=4, num_return_sequences=3)
    texts = [[each["translation_text"] for each in of_line] for of_line in found]
    assert [best for best, *_ in texts] == [best for (best, *_), _ in expected]
    assert all(len(set(of_line)) == len(of_line) <= 3 for of_line in texts)


def test_cleaning_up_is_that_of_transformers(generate):
    from transformers import PreTrainedTokenizerBase

    from keras_transformer.translation.pipeline import without_spaces

    parts = [" ", ".", "?", "!", ",", "'", "n't", "'m", "'s", "'ve", "'re", "a", "do", ";"]
    chance = random.Random(2)
    for _ in range(2000):
        text = " ".join(chance.choices(parts, k=8))
        assert without_spaces(text) == PreTrainedTokenizerBase.clean_up_tokenization(None, text.strip()), text
