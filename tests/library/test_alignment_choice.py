"""Which attention aligns words: certain links by rule, the error rate, and a choice that is written into the run."""

import itertools

import keras
import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.commands.align import app
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.model import Transformer
from keras_transformer.optimizers import paper_optimizer
from keras_transformer.pieces.datasets import dataset_from_pairs
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.pieces.tokenizer import train_tokenizer
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.shortlist.certain_links import CertainLinks, LinkedPair, is_name, words_of
from keras_transformer.text.asks import Ask
from keras_transformer.text.placing import alignment_of
from keras_transformer.translation.aligner import Aligner, of_reading_steps
from keras_transformer.translation.alignment_choice import error_rate, error_rates
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.exports import asker

WORDS = {"dog": "Hund", "cat": "Katze", "house": "Haus", "runs": "rennt", "sleeps": "schläft", "red": "rot"}
WORDS |= {first + "a" + last: last + "o" + first for first in "bdgkm" for last in "lnrst"}


def corpus(count=150):
    """Sentences of five words in a random order, translated word by word and turned around, with a full stop."""
    random, words = np.random.default_rng(1), list(WORDS)
    for _ in range(count):
        chosen = random.choice(words, size=5, replace=False)
        yield " ".join(chosen), " ".join(WORDS[word] for word in reversed(chosen)) + "."


# Certain links


def test_words_of_a_dictionary_are_linked_wherever_they_stand():
    links = CertainLinks(corpus())
    assert links.of_pair("The dog sleeps, red house!", "Das rot Haus: Hund schläft") == [(1, 3), (2, 4), (3, 1), (4, 2)]


def test_a_word_that_comes_twice_has_no_certain_link():
    links = CertainLinks(corpus())
    assert links.of_pair("dog and dog", "Hund") == [] == links.of_pair("dog", "Hund Hund")


def test_names_and_numbers_are_linked_with_themselves_without_a_dictionary():
    links = CertainLinks([("a b", "c d")])
    assert links.of_pair("Open LibreOffice 7.4 now", "Jetzt LibreOffice 7.4 öffnen") == [(1, 1), (2, 2)]
    assert links.of_pair("in the house", "in dem Haus") == []  # an equal word of small letters may be by chance
    assert [is_name(word) for word in ("42,", "SUM()", "LibreOffice", "Hund", "der", "")] == [True] * 3 + [False] * 3


def test_a_word_that_is_translated_in_two_ways_is_not_certain():
    numbers = {"one": "eins", "two": "zwei", "three": "drei"}
    dogs = dict(zip(numbers, ("Hund", "Köter", "Rüde"), strict=True))
    pairs = [(f"dog {word}", f"{dogs[word]} {number}") for word, number in numbers.items()]
    pairs += [
        (f"{animal} {word}", f"{name} {number}")
        for animal, name in [*WORDS.items()][1:9]
        for word, number in numbers.items()
    ]
    links = CertainLinks(pairs * 5)
    assert links.of_pair("cat one", "Katze eins") == [(0, 0), (1, 1)]
    assert links.of_pair("dog one", "Hund eins") == [(1, 1)]


def test_pairs_with_the_largest_share_of_links_are_judged_and_short_ones_are_not():
    links, [whole, *_] = CertainLinks(corpus()), corpus(1)
    part = ("dog x y z w", "Hund a b c d")
    found = links.best_known([part, ("dog", "Hund"), whole, ("a b c d e", "f g h i j")], count=5)
    assert [pair.number for pair in found] == [2, 0]
    assert [len(pair.links) for pair in found] == [5, 1]
    assert links.best_known([part, whole], count=1)[0].number == 1
    assert CertainLinks([]).best_known([part], count=1) == []


def test_a_dictionary_has_words_without_their_marks_and_capitals():
    assert words_of('He said: "Stop!" – now') == ["he", "said", "stop", "", "now"]


# The rate and the attention


def test_the_error_rate_is_the_share_of_links_that_are_missed():
    gold = [LinkedPair(0, "", "", [(0, 1), (1, 0)]), LinkedPair(1, "", "", [(2, 2)])]
    assert error_rate(gold, [[(0, 1), (1, 0)], [(2, 2), (0, 0)]]) == 0
    assert error_rate(gold, [[(0, 1), (0, 0)], []]) == pytest.approx(2 / 3)


def test_the_step_that_reads_a_token_is_the_one_after():
    attention = np.random.default_rng(0).random((2, 4, 3)).astype("float32")
    moved = of_reading_steps(attention).numpy()
    assert (moved[:, :3] == attention[:, 1:]).all() and not moved[:, 3].any()


def test_the_block_is_the_last_but_one_unless_it_is_named():
    assert [LAST_BUT_ONE.in_model(attentions).block for attentions in (0, 1, 2, 6)] == [0, 1, 1, 5]
    assert AlignedBy(3, True).in_model(3) == AlignedBy(3, True)


@pytest.mark.parametrize(
    ("block", "attentions", "sentence"), [(4, 3, "blocks 1 to 3"), (-1, 3, "blocks 1 to 3"), (1, 0, "no source")]
)
def test_a_block_that_there_is_not_is_refused(block, attentions, sentence):
    with pytest.raises(ConfigError, match=f"aligned by block {block}.*{sentence}"):
        AlignedBy(block).in_model(attentions)


# The choice


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has learned the corpus, which turns five words around."""
    keras.utils.set_random_seed(1)
    folder, pairs = tmp_path_factory.mktemp("turned"), list(corpus(600))
    train_tokenizer([text for pair in pairs for text in pair], folder / "tokenizer.model", vocab_size=375)
    tokenizer = open_tokenizer(folder / "tokenizer.model")
    config = TransformerConfig(
        tokenizer.vocab_size, encoder_layers=1, decoder_layers=2, d_model=32, d_ff=64, num_heads=4
    )
    transformer = Transformer(config.replace(dropout=0.0))
    transformer.compile(paper_optimizer(32, warmup_steps=60, factor=0.7), loss=LabelSmoothedCrossentropy())
    transformer.fit(dataset_from_pairs(pairs, tokenizer, lengths=(16,)), epochs=18, verbose=0)
    save_run(transformer, tokenizer, folder / "run")
    return RunFolder(folder / "run")


@pytest.mark.nightly
def test_each_way_is_judged_as_an_aligner_that_goes_by_it(run):
    """Word n of five is translated as the last but n, so all links are known; the best way finds nearly all."""
    translator, pairs = Translator.load(run.path, SearchOptions(beam_size=1)), list(corpus())
    rates = error_rates(translator, pairs)
    assert [rate.aligned_by for rate in rates] == [AlignedBy(*way) for way in itertools.product((1, 2), (False, True))]
    lines, transformer = [source for source, _ in pairs], load_run(run.path)[0]
    found = list(zip(lines, translator.translate(lines), strict=True))
    for rate in rates:
        alignments = Aligner(transformer, translator.tokenizer, 64, rate.aligned_by).align_lines(found)
        wrong = [source != 4 - target for alignment in alignments for source, target in alignment]
        assert rate.error == pytest.approx(np.mean(wrong), abs=0.03)
    assert min(rate.error for rate in rates) < 0.1 < max(rate.error for rate in rates)


def test_inference_json_keeps_the_choice_and_runs_without_one_open(tmp_path):
    path = tmp_path / "inference.json"
    for alignment in (LAST_BUT_ONE, AlignedBy(2, True)):
        Inference(alignment=alignment).save(path)
        assert Inference.load(path).alignment == alignment
        assert ("alignment" in path.read_text()) is (alignment != LAST_BUT_ONE)
    for wrong in ('{"alignment": {"block": "two"}}', '{"alignment": {"block": -1}}', '{"alignment": {"layer": 1}}'):
        path.write_text(wrong)
        with pytest.raises(ConfigError, match="is damaged"):
            Inference.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("aligned_by", [AlignedBy(2, False), AlignedBy(2, True)])
def test_the_served_graph_aligns_in_the_step_that_it_is_told(run, eager, aligned_by):
    options, lines = SearchOptions(beam_size=1), [source for source, _ in corpus(5)]
    pair = load_run(run.path)
    found = asker(ServedGraph(*pair, options, 64, aligned_by))("translate", lines)["alignments"][:, 0]
    translator = Translator(*pair, options, alignment=aligned_by)
    expected = translator.align(list(zip(lines, translator.translate(lines), strict=True)), [Ask()] * 5)
    assert [alignment_of(text.decode()) for text in found] == expected
    right = np.mean([source == 4 - target for pairs in expected for source, target in pairs])
    assert right < 0.7 if aligned_by.reads else right > 0.8


def test_the_best_one_is_written_into_the_run_and_the_translator_goes_by_it(run, tmp_path):
    pairs = list(corpus())
    files = [tmp_path / "source.txt", tmp_path / "target.txt"]
    for file, texts in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    result = invoke(app, run.path, "--source", files[0], "--target", files[1])
    assert result.exit_code == 0, result.output
    best = min(error_rates(Translator.load(run.path, SearchOptions(beam_size=1)), pairs), key=lambda rate: rate.error)
    assert run.inference().alignment == best.aligned_by == Translator.load(run.path).alignment
    [chosen] = [line for line in result.stdout.splitlines() if "<- chosen" in line]
    assert f"block {best.aligned_by.block}, " in chosen and f"{100 * best.error:.1f}" in chosen
    (source, target), *_ = pairs
    source, target = (text.split() for text in (source, target))
    source[1], target[3] = f"<b>{source[1]}</b>", f"<b>{target[3]}</b>"
    [placed] = Translator.load(run.path).translate([" ".join(source)], protect="tags")
    assert placed.text == " ".join(target)


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        ({}, ["There is no text", "--source FILE"]),
        ({"--source": "a\n"}, ["--source is given 1 times", "--target 0 times"]),
        ({"--source": "a\nb\n", "--target": "c\n"}, ["2 lines", "1: a pair is one line of each"]),
        ({"--source": "a\nb\n", "--target": "c\nd\n"}, ["too few words", "give more text"]),
    ],
)
def test_text_that_cannot_be_used_is_one_sentence_and_changes_nothing(run, tmp_path, texts, parts):
    before, arguments = run.inference(), []
    for option, text in texts.items():
        (tmp_path / option).write_text(text)
        arguments += [option, tmp_path / option]
    assert_one_sentence(invoke(app, run.path, *arguments), *parts)
    assert run.inference() == before
