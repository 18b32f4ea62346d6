"""The options of a search for each sentence, from SearchOptions to translations."""

import pytest
from keras import ops

from keras_transformer.config import ConfigError, SearchOptions
from keras_transformer.decoding.rules import rules_of
from keras_transformer.errors import InputError
from keras_transformer.explainer import Explainer
from keras_transformer.translator import Translator

pytestmark = pytest.mark.usefixtures("eager")
OPTIONS = SearchOptions(beam_size=3, n_best=3, extra_length=5)


@pytest.mark.slow
def test_the_options_of_a_sentence_reach_the_search(pair):
    lines = ["the fox", "a lazy hen", "three four"]
    limits = {"beam_size": 2, "extra_length": 12}

    def ids_of(**rules):
        return [one.ids for one in Translator(*pair, SearchOptions(**limits, **rules)).translate(lines)]

    plain = ids_of()
    assert all(len(ids) <= 3 for ids in ids_of(max_length=3)) and any(len(ids) > 3 for ids in plain)
    assert all(len(ids) >= 9 for ids in ids_of(min_length=9))
    assert all(len(set(ids)) == len(ids) for ids in ids_of(no_repeat_ngram_size=1))
    assert ids_of(repetition_penalty=3.0) != plain
    drawn = ids_of(temperature=1.0, seed=1)
    assert drawn == ids_of(temperature=1.0, seed=1) != ids_of(temperature=1.0, seed=2)
    assert ids_of(temperature=1.0, top_k=1, seed=1) == ids_of(temperature=1.0, top_p=1e-6, seed=2)


def test_every_option_of_a_sentence_is_a_rule_with_its_value():
    options = SearchOptions(
        min_length=3, max_length=9, no_repeat_ngram_size=4, repetition_penalty=1.5, temperature=0.7, top_k=5, top_p=0.9,
        seed=11,
    )  # fmt: skip
    whole = {"min_lengths": 3, "limits": 9, "no_repeat_ngram_sizes": 4, "top_ks": 5, "seeds": 11}
    real = {"repetition_penalties": 1.5, "temperatures": 0.7, "top_ps": 0.9}
    found = {name: ops.convert_to_numpy(values) for name, values in rules_of(options, 2).items()}
    assert {name: values.dtype.name for name, values in found.items()} == (
        dict.fromkeys(whole, "int32") | dict.fromkeys(real, "float32")
    )
    for name, value in (whole | real).items():
        assert found[name].tolist() == pytest.approx([value, value])
    assert rules_of(SearchOptions(), 2) == {}


@pytest.mark.parametrize("option", [{"top_k": 5}, {"top_p": 0.9}])
def test_what_is_drawn_from_means_nothing_unless_something_is_drawn(option):
    [(name, value)] = option.items()
    with pytest.raises(ConfigError, match=f"{name} is {value}, but temperature is 0"):
        SearchOptions(**option)
    assert SearchOptions(temperature=1.0, **option).temperature == 1.0


@pytest.mark.slow
def test_a_prefix_may_be_longer_than_the_source_and_is_never_cut(pair):
    long = "the cat sat on the mat"
    short = Translator(*pair, OPTIONS, max_source_tokens=3)
    assert short.translate(["a"], prefixes=[long])[0].text.startswith(long)
    with pytest.raises(InputError, match=r"The prefix 'the cat .* has \d{3,} tokens; at most 511 are possible"):
        short.translate(["a"], prefixes=[long * 100])
    with pytest.raises(InputError, match=r"at most \d+ are possible"):
        Explainer(*pair, OPTIONS).explain("a", prefix=long * 10)
    with pytest.raises(InputError, match="Prefix 1 has a lone surrogate"):
        short.translate(["a"], prefixes=["\udcff"])
    with pytest.raises(InputError, match="Sentence 1 has a lone surrogate"):
        Explainer(*pair, OPTIONS).explain("\udcff")


@pytest.mark.slow
def test_a_translation_begins_with_its_prefix(pair):
    found = Translator(*pair, OPTIONS).translate(["the fox", "", "a lazy hen"], prefixes=["dog", "dog", ""])
    assert found[0].text.startswith("dog") and found[1].text == ""
    assert found[2].ids == Translator(*pair, OPTIONS).translate(["a lazy hen"])[0].ids
    with pytest.raises(ConfigError, match="1 prefixes for 2 lines"):
        Translator(*pair, OPTIONS).translate(["a", "b"], prefixes=["x"])
