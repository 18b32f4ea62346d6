"""The options of a search: their one table, and each of them from SearchOptions to translations."""

import dataclasses
import math

import pytest
from keras import ops

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.search.options import OPTIONS, SearchOptions, checked
from keras_transformer.search.rules.table import OF_SEARCH, Rules, rules_of
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.translator import Translator
from tests.support.searches import OTHER_VALUES, arrays_of

pytestmark = pytest.mark.usefixtures("eager")
BEAM = SearchOptions(beam_size=3, n_best=3, extra_length=5)


@pytest.mark.nightly
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
    assert ids_of(sibling_penalty=100.0, n_best=2) != ids_of(n_best=2) == plain
    drawn = ids_of(temperature=1.0, seed=1)
    assert drawn == ids_of(temperature=1.0, seed=1) != ids_of(temperature=1.0, seed=2)
    assert ids_of(temperature=1.0, top_k=1, seed=1) == ids_of(temperature=1.0, top_p=1e-6, seed=2)


def test_every_option_of_a_sentence_is_a_rule_with_its_value():
    rules = arrays_of(rules_of(SearchOptions(**OTHER_VALUES), 2))
    rules = {name: ops.convert_to_numpy(rule) for name, rule in rules.items()}
    options = [
        option for option in OPTIONS.values() if option.rule and option.rule not in OF_SEARCH and not option.reads_text
    ]
    assert set(rules) == {option.rule for option in options}
    for option in options:
        assert rules[option.rule].dtype == ("int32" if option.is_whole else "float32")
        assert rules[option.rule].tolist() == pytest.approx([OTHER_VALUES[option.name]] * 2)
    assert rules_of(SearchOptions(), 2) == Rules()
    assert set(arrays_of(rules_of(SearchOptions(temperature=1.0), 2))) == {"temperatures", "top_ks", "top_ps", "seeds"}


def test_every_option_has_a_value_that_differs_from_its_default():
    fields = dataclasses.asdict(SearchOptions())
    assert set(OTHER_VALUES) == set(fields) and not set(OTHER_VALUES.items()) & set(fields.items())


def test_the_limits_of_an_option_are_allowed_and_named_by_their_refusal():
    for option in (option for option in OPTIONS.values() if not option.choices):
        assert [checked(option, limit) for limit in (option.lowest, option.highest)] == [option.lowest, option.highest]
        for value in (option.lowest - 1, option.highest + 1, True, "1", math.nan):
            with pytest.raises(ConfigError) as error:
                checked(option, value)
            assert all(str(part) in str(error.value) for part in (option.name, option.lowest, option.highest))
            assert f"must be {'a whole number' if option.is_whole else 'a number'} from" in str(error.value)
        assert option.highest < 2**31 and option.lowest >= -(2**31)  # a rule is of int32


def test_the_kind_of_a_number_is_that_of_its_default():
    for option in OPTIONS.values():
        kind = str if option.choices else int if option.is_whole else float
        assert option.default is None or type(option.default) is kind


def test_each_choice_of_an_option_is_allowed_and_named_by_the_refusal_of_others():
    option = OPTIONS["length_normalization"]
    assert option.default == option.choices[0] and [checked(option, text) for text in option.choices] == [
        "gnmt",
        "tokens",
    ]
    with pytest.raises(ConfigError, match="length_normalization is 'words'; it must be one of gnmt, tokens."):
        checked(option, "words")


def test_an_option_is_a_rule_of_a_sentence_and_served_or_has_a_reason_why_not():
    of_all = {"extra_length", "length_normalization", "coverage_penalty", "shortlist"}
    assert {name for name, option in OPTIONS.items() if not option.rule} == of_all
    for option in OPTIONS.values():
        assert bool(option.rule) != bool(option.not_served) and option.help.endswith(".")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"n_best": 5, "beam_size": 4}, {"beam_size": 5}),
        ({"min_length": 5, "max_length": 4}, {"max_length": None}),
        ({"top_k": 5, "temperature": 0.0}, {"temperature": 1.0}),
        ({"top_p": 0.9, "temperature": 0.0}, {"temperature": 1.0}),
    ],
)
def test_two_options_that_contradict_each_other_are_named_with_their_values(wrong, right):
    (name, value), (other, other_value) = wrong.items()
    with pytest.raises(ConfigError, match=f"{name} is {value} and {other} is {other_value}: {name} "):
        SearchOptions(**wrong)
    assert getattr(SearchOptions(**wrong | right), name) == value


@pytest.mark.nightly
def test_a_prefix_may_be_longer_than_the_source_and_is_never_cut(pair):
    long = "the cat sat on the mat"
    short = Translator(*pair, BEAM, max_source_tokens=3)
    assert short.translate(["a"], prefixes=[long])[0].text.startswith(long)
    with pytest.raises(InputError, match=r"The prefix 'the cat .* has \d{3,} tokens; at most 511 are possible"):
        short.translate(["a"], prefixes=[long * 100])
    with pytest.raises(InputError, match=r"at most \d+ are possible"):
        Explainer(*pair, BEAM).explain("a", prefix=long * 10)
    with pytest.raises(InputError, match="Prefix 1 has a lone surrogate"):
        short.translate(["a"], prefixes=["\udcff"])
    with pytest.raises(InputError, match="Sentence 1 has a lone surrogate"):
        Explainer(*pair, BEAM).explain("\udcff")


@pytest.mark.nightly
def test_a_translation_begins_with_its_prefix(pair):
    found = Translator(*pair, BEAM).translate(["the fox", "", "a lazy hen"], prefixes=["dog", "dog", ""])
    assert found[0].text.startswith("dog") and found[1].text == ""
    assert found[2].ids == Translator(*pair, BEAM).translate(["a lazy hen"])[0].ids
    with pytest.raises(ConfigError, match="1 prefixes for 2 lines"):
        Translator(*pair, BEAM).translate(["a", "b"], prefixes=["x"])
