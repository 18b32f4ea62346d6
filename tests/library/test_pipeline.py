"""kt.pipeline: the call of transformers 4's translation pipeline, whose arguments are read, ignored or refused."""

import itertools

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import OPTIONS
from keras_transformer.text.road import Candidates, Engine
from keras_transformer.translation.generation import CHANGE_NOTHING, READ, REFUSED
from tests.support.places import ROOT


class Shouter(Engine):
    """Writes a line in capitals, as many translations as n_best says, and keeps what it was asked."""

    name = "This shouter"
    searches = frozenset(OPTIONS)

    def __init__(self, options=None, languages=NO_LANGUAGES, seen=None):
        self.options, self.languages = options or kt.SearchOptions(), languages
        self.seen = [] if seen is None else seen  # of each line: itself, its Ask, and the options

    def search(self, lines, asks, first_line):
        self.seen += [(line, ask, self.options) for line, ask in zip(lines, asks, strict=True)]
        ranks = range(self.options.n_best)
        return [Candidates([Translation(line.upper() + "!" * rank, -1.0) for rank in ranks]) for line in lines]

    def with_options(self, options):
        return type(self)(kt.SearchOptions(**{**vars(self.options), **options}), self.languages, self.seen)

    def are_too_long(self, lines):
        return [False] * len(lines)


class Fixed(Shouter):
    """Has a beam of 4, and takes n_best alone, as a LiteRT model does."""

    name = "This fixed one"
    searches = frozenset({"n_best"})


def of(*texts):
    return [{"translation_text": text} for text in texts]


@pytest.mark.parametrize(
    ("texts", "n", "expected"),
    [  # as transformers 4.57 returns them
        ("a", 1, of("A")),
        (["a", "b"], 1, of("A", "B")),
        (("a", "b"), 1, of("A", "B")),
        (["a"], 1, of("A")),
        ([], 1, []),
        ("", 1, of("")),
        ("a", 2, of("A", "A!")),
        (["a", "b"], 2, [of("A", "A!"), of("B", "B!")]),
    ],
)
def test_a_text_gives_a_list_and_a_list_gives_one_of_dictionaries_or_of_lists(texts, n, expected):
    assert kt.pipeline("translation", model=Shouter(), num_return_sequences=n)(texts) == expected


class Dataset:
    """What has a length and items, as the datasets of torch."""

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return "abc"[number]


def test_an_iterable_is_read_in_batches_when_their_translations_are_asked_for():
    engine = Shouter()
    found = kt.pipeline("translation", model=engine, batch_size=2)(f"a{n}" for n in itertools.count())
    assert engine.seen == []
    assert next(found) == of("A0") and [line for line, *_ in engine.seen] == ["a0", "a1"]
    assert list(itertools.islice(found, 4)) == [of(f"A{n}") for n in range(1, 5)] and len(engine.seen) == 6
    translate = kt.pipeline("translation", model=engine)
    assert list(translate(Dataset())) == list(translate(iter("abc"))) == [of("A"), of("B"), of("C")]


ASKED = [
    ({}, {}),
    ({"num_beams": 7}, {"beam_size": 7}),
    ({"num_beams": None, "max_length": None}, {}),
    ({"num_return_sequences": 3}, {"n_best": 3}),
    ({"length_penalty": 1.5}, {"length_penalty": 1.5, "length_normalization": "tokens"}),
    ({"max_new_tokens": 9}, {"max_length": 9, "extra_length": 9}),
    ({"max_length": 10}, {"max_length": 9, "extra_length": 9}),  # with the token that a decoder starts with
    ({"max_length": 10, "max_new_tokens": 4}, {"max_length": 4, "extra_length": 4}),
    ({"min_length": 9}, {"min_length": 9, "extra_length": 50}),
    ({"min_length": 90}, {"min_length": 90, "extra_length": 90}),
    ({"min_new_tokens": 9, "max_new_tokens": 20}, {"min_length": 10, "max_length": 20, "extra_length": 20}),
    ({"min_length": 0}, {}),
    ({"no_repeat_ngram_size": 2, "repetition_penalty": 1.2}, {"no_repeat_ngram_size": 2, "repetition_penalty": 1.2}),
    ({"do_sample": True}, {"temperature": 1.0, "top_k": 50, "beam_size": 1}),
    (
        {"do_sample": True, "temperature": 0.7, "top_k": 0, "top_p": 0.9, "seed": 3, "num_return_sequences": 2},
        {"temperature": 0.7, "top_p": 0.9, "seed": 3, "beam_size": 2, "n_best": 2},
    ),
    ({"do_sample": False, "temperature": 0.7, "top_k": 5}, {}),  # transformers ignores both, too
    (dict.fromkeys(CHANGE_NOTHING, True), {}),
    (dict.fromkeys(REFUSED), {}),
]


@pytest.mark.parametrize(("arguments", "options"), ASKED)
def test_arguments_are_options_of_the_search_whether_given_at_once_or_at_a_call(arguments, options):
    expected = kt.SearchOptions(**options)
    for at_once, at_call in ((arguments, {}), ({}, arguments)):
        engine = Shouter()
        kt.pipeline("translation", model=engine, **at_once)("a", **at_call)
        assert [options for *_, options in engine.seen] == [expected]


def test_an_argument_of_a_call_wins_and_holds_for_it_alone():
    engine = Shouter()
    translate = kt.pipeline("translation", model=engine, num_beams=5, min_length=3)
    translate("a", num_beams=2)
    translate("a")
    assert [(options.beam_size, options.min_length) for *_, options in engine.seen] == [(2, 3), (5, 3)]


REFUSALS = [
    (dict(model=None), "has no model of its own"),
    (dict(model=""), "has no model of its own"),
    (dict(task="summarization"), "The task is 'summarization'; it must be 'translation' or 'translation_XX_to_YY'"),
    (dict(task=3), "The task is 3"),
    (dict(model=np.zeros(2)), "The model is array"),
    (dict(model=3), "The model is 3; it must be a name, a folder, or what has opened one here"),
    (dict(tokenizer="another"), "its own tokenizer"),
    (dict(dtype="float16"), "dtype is float16; it must be float32 or bfloat16"),
    (dict(torch_dtype="torch.bfloat16"), "open already"),
    (dict(revision="main"), "open already"),
    (dict(device="cuda:7"), "device is cuda:7, but TensorFlow sees no GPU here"),
    (dict(num_beems=3), "does not know 'num_beems'; it takes src_lang, .*num_beams"),
    (dict(num_beams=0), "num_beams is 0; it must be a whole number from 1"),
    (dict(num_beams=2.0), "num_beams is 2.0; it must be a whole number"),
    (dict(num_beams=2, num_return_sequences=3), "num_return_sequences is 3 and num_beams 2"),
    (dict(num_return_sequences=5), "num_return_sequences is 5 and num_beams 4: raise num_beams"),
    (dict(length_penalty=-1.0), "length_penalty is -1.0; it must be a number from 0"),
    (dict(max_length=1), "max_length is 1; it must be a whole number from 2"),
    (dict(max_new_tokens=0), "max_new_tokens is 0; it must be a whole number from 1"),
    (dict(max_length=4, min_length=9), "at least 9 tokens, its end included, and at most 3"),
    (dict(do_sample=True, num_beams=4), "do_sample=True with num_beams=4"),
    (dict(do_sample=True, temperature=0.0), "temperature is 0; a sample needs one above 0"),
    (dict(src_lang=3), "src_lang is 3; it must be the code of a language"),
    (dict(batch_size=0), "batch_size is 0; it must be a whole number of at least 1"),
    (dict(return_tensors=True), "does not take return_tensors=True: ids of pieces have other numbers here"),
    (dict(forced_bos_token_id=1), "does not take forced_bos_token_id=1: name the language by tgt_lang"),
    (dict(num_beam_groups=2), "num_beam_groups=2"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSALS)
def test_what_is_not_understood_is_one_sentence(arguments, sentence):
    with pytest.raises(ConfigError, match=sentence) as refused:
        kt.pipeline(**{"task": "translation", "model": Shouter(), **arguments})("a")
    assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize(
    ("texts", "error", "sentence"),
    [
        (5, ConfigError, "Received: 5"),
        (b"a", ConfigError, "Received: b'a'"),
        ({"text": "a"}, ConfigError, "Received: {'text'"),
        (["a", None], InputError, "Text 2 is None; it must be a string"),
        ([["a", "b"]], InputError, "Text 1 is .*; it must be a string"),
        ("\ud800", InputError, "surrogate"),
    ],
)
def test_what_is_no_text_is_one_sentence(texts, error, sentence):
    with pytest.raises(error, match=sentence):
        kt.pipeline("translation", model=Shouter())(texts)


def test_the_number_of_a_text_counts_those_of_earlier_batches():
    found = kt.pipeline("translation", model=Shouter())(iter(["a", "b", "c", 4]), batch_size=2)
    with pytest.raises(InputError, match="Text 4 is 4"):
        list(found)


@pytest.mark.parametrize(
    ("task", "arguments", "codes"),
    [
        ("translation", {}, ("", "")),
        ("translation_en_to_de", {}, ("en", "deu")),
        ("translation_en_to_de", {"tgt_lang": "fr"}, ("en", "fra")),
        ("translation", {"src_lang": "en", "tgt_lang": "deu"}, ("en", "deu")),
    ],
)
def test_languages_are_those_of_the_arguments_or_of_the_task(task, arguments, codes):
    engine = Shouter(languages=Languages({"en": "", "nl": ""}, {"deu": ">>deu<<", "fra": ">>fra<<"}))
    kt.pipeline(task, model=engine)("a", **{"src_lang": "en", **arguments} if arguments else arguments)
    assert [(ask.source_language, ask.target_language) for _, ask, _ in engine.seen] == [codes]


def test_a_language_that_a_model_lacks_is_refused_and_one_of_a_model_that_does_not_tell_is_ignored():
    pair = Shouter(languages=Languages({"en": ""}, {"de": ""}))
    assert kt.pipeline("translation_en_to_de", model=pair)("a") == of("A")
    with pytest.raises(ConfigError, match="The target language is 'fr'; this model writes de"):
        kt.pipeline("translation_en_to_fr", model=pair)("a")
    assert kt.pipeline("translation_en_to_fr", model=Shouter())("a", src_lang="xx") == of("A")


def test_an_engine_of_fixed_options_takes_those_that_it_has_and_names_the_others_as_transformers_does():
    translate = kt.pipeline("translation", model=Fixed())
    assert translate("a", num_beams=4, num_return_sequences=2) == of("A", "A!")
    with pytest.raises(ConfigError, match="This fixed one does not take num_beams; it takes num_return_sequences"):
        translate("a", num_beams=5)
    with pytest.raises(ConfigError, match="does not take max_new_tokens, min_length; it takes num_return"):
        translate("a", max_length=9, min_length=3)
    with pytest.raises(ConfigError, match="does not take length_penalty as transformers means it"):
        translate("a", length_penalty=0.6)


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("a , b . c ? d !", "a, b. c? d!"),
        ("I 'm , do n't , it 's , we 've , they 're", "I'm, don't, it's, we've, they're"),
        ("a ' b", "a'b"),
        ("a - ; :", "a - ; :"),
    ],
)
def test_spaces_that_a_tokenizer_of_words_leaves_can_be_taken_away(written, cleaned):
    class Writer(Shouter):
        def search(self, lines, asks, first_line):
            return [Candidates([Translation(written, -1.0)]) for _ in lines]

    translate = kt.pipeline("translation", model=Writer())
    assert translate("a") == of(written)
    written = f" {written}  "
    assert translate("a")[0]["translation_text"] == written.strip()
    assert translate("a", clean_up_tokenization_spaces=True) == of(cleaned)


def test_the_manual_has_every_argument():
    page = (ROOT / "docs" / "from_transformers.md").read_text(encoding="utf-8")
    assert [name for name in (*READ, *CHANGE_NOTHING, *REFUSED) if f"`{name}`" not in page] == []
