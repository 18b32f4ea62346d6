"""data.context: pairs with the sentences before them in their documents, and a model that learns from them."""

import json
import random

import numpy as np
import pytest

import train.__main__
import train.evaluate
from export.__main__ import app as export
from export.translate import app as translate_export
from keras_transformer.commands.score import app as score
from keras_transformer.commands.translate import app as translate
from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.context import BOTH, NO_CONTEXT, SEPARATOR, SIGN, Context
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from train.config.augmentation import AugmentationConfig, check_augmentation
from train.config.sources.files import FilesData
from train.config.tokenizer import TokenizerConfig
from train.config.training import RowLengths
from train.data.corpus import Split
from train.data.encoding import encode_corpus

PAIRS = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "v")]
DOCUMENTS = ["one", "one", "one", "two"]
CONTEXT = Context(2)


def split_of(pairs=PAIRS, documents=DOCUMENTS):
    return Split("data.train", lambda: iter(pairs), lambda: {"pairs": pairs}, documents=lambda: iter(documents))


def joined(*sentences):
    return f"{SEPARATOR} ".join(sentences)


def test_each_pair_comes_alone_and_behind_the_sources_before_it_in_its_document():
    assert list(split_of().in_context(CONTEXT)) == [
        ("a", "x"),
        (joined("a", "b"), "y"),
        (joined("a", "b", "c"), "z"),
        ("d", "v"),
    ]
    repeated = list(split_of().in_context(CONTEXT, repeats=True))
    assert sorted(repeated) == sorted([*split_of().in_context(CONTEXT), ("b", "y"), ("c", "z")])
    assert list(split_of().in_context(CONTEXT, repeats=True)) == repeated


def test_both_sides_have_the_sentences_before_one():
    pairs = list(split_of().in_context(Context(1, BOTH)))
    assert pairs[1:] == [(joined("a", "b"), joined("x", "y")), (joined("b", "c"), joined("y", "z")), ("d", "v")]


def test_pairs_that_are_left_out_are_before_no_other_and_do_not_shift_the_documents():
    pairs = [("a", "x"), ("", "y"), ("c", "c"), ("d", "v"), ("e", "w")]
    split = split_of(pairs, ["one"] * 4 + ["two"]).cleaned({"identical": True}, ())
    assert list(split.in_context(CONTEXT)) == [("a", "x"), (joined("a", "d"), "v"), ("e", "w")]
    assert split.earlier(2) == [[], ["a"], []]
    assert split.skipped == {"empty source": 1, "identical": 1} or sum(split.skipped.values()) == 2


def test_without_documents_nothing_is_before_a_pair():
    split = split_of(documents=[])
    assert list(split.in_context(CONTEXT)) == PAIRS and split.earlier(1) == [[]] * 4 and split.earlier(0) == []


def test_shards_and_weighted_entries_have_their_own_documents_and_another_fingerprint():
    shards = Split.of_shards("data.train", [split_of(), split_of([("e", "w")], ["two"])])
    assert [list(shard)[-1] for shard in shards.in_context(CONTEXT).shards] == [("d", "v"), ("e", "w")]
    split = split_of()
    prints = [
        json.dumps(each.fingerprint()) for each in (split, split.in_context(CONTEXT), split.in_context(Context(1)))
    ]
    assert len(set(prints)) == 3 and split.in_context(NO_CONTEXT) is split


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer(["ab cd ef gh", "kl mn op"] * 9, path, 290, [SEPARATOR])
    return Tokenizer(path)


@pytest.mark.parametrize("sides", ["source", "both"])
def test_as_many_sentences_as_fit_into_a_row_are_before_one(tokenizer, sides):
    pairs = [("ab cd", "kl"), ("ef", "mn"), ("gh", "op")]
    split = split_of(pairs, ["one"] * 3).in_context(Context(2, sides))
    whole = encode_corpus(split, tokenizer, RowLengths(64, 64))
    lengths = whole.source.lengths
    short = encode_corpus(split, tokenizer, RowLengths(int(lengths[2]) - 1, 64))
    assert [tokenizer.decode(short.source[n]).count(SIGN) for n in range(3)] == [0, 1, 1]
    assert [tokenizer.decode(whole.source[n]).count(SIGN) for n in range(3)] == [0, 1, 2]
    for n in range(3):
        text = tokenizer.decode(whole.source[n])
        assert tokenizer.encode(text) == whole.source[n].tolist()[:-1]  # as a translation reads the same sentences
        written = tokenizer.decode(short.target[n])
        assert written.count(SIGN) == (tokenizer.decode(short.source[n]).count(SIGN) if sides == "both" else 0)
        assert written.split(SIGN)[-1].strip() == pairs[n][1]
    alone = encode_corpus(split_of(pairs, []), tokenizer, RowLengths(64, 64))
    shortest = encode_corpus(
        split, tokenizer, RowLengths(int(alone.source.lengths.max()), int(alone.target.lengths.max()))
    )
    assert np.array_equal(shortest.source.ids, alone.source.ids) and np.array_equal(
        shortest.target.ids, alone.target.ids
    )


def section(folder, **values):
    path = str(folder / "a.tsv")
    return FilesData(source="files", train=[path], validation=[path], **values)


def test_what_does_not_go_together_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing tells documents apart"):
        section(tmp_path, context=2)
    with pytest.raises(ValueError, match="the tag <2de> do not go together"):
        FilesData(
            source="files",
            train=[{"files": "a.tsv", "tag": "<2de>"}],
            validation=["a.tsv"],
            documents="column",
            context=1,
        )
    data = section(tmp_path, context=1, documents="column")
    with pytest.raises(ConfigError, match="joins pairs of different documents"):
        check_augmentation(AugmentationConfig(joined=0.1), TokenizerConfig(), data, str)
    assert data.symbols == (SEPARATOR,) and section(tmp_path, documents="column").symbols == ()


# a language in which the word "it" has the gender of the last word of the sentence before
NOUNS = {"dog": "er", "cat": "sie", "pig": "es"}
ALONE = {"runs": "rennt", "sits": "sitzt", "eats": "isst", "sings": "singt"}


def documents(count, seed):
    """Documents of a sentence that names an animal, and two that speak of it, whose translations depend on it."""
    rng = random.Random(seed)
    texts = []
    for number in range(count):
        noun = rng.choice(list(NOUNS))
        verbs = rng.choices(list(ALONE), k=3)
        pairs = [(f"see {verbs[0]} a {noun}", f"sieh {ALONE[verbs[0]]} {noun}")]
        pairs += [(f"it {verb}", f"{NOUNS[noun]} {ALONE[verb]}") for verb in verbs[1:]]
        texts.append([(*pair, f"page {seed} {number}") for pair in pairs])
    return texts


CONFIG = """
run_folder = "{folder}/{name}"
[data]
source = "files"
train = ["{folder}/train.tsv"]
validation = ["{folder}/test.tsv"]
documents = "column"
{context}
[tokenizer]
vocab_size = 300
[model]
preset = "tiny"
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 64
num_heads = 4
norm = "pre"
[training]
steps = 300
tokens_per_batch = 1024
row_length = 32
source_row_length = 64
dropout = 0.0
label_smoothing = 0.0
schedule = "constant"
learning_rate = 5e-3
validate_every = 300
checkpoint_every = 300
average_checkpoints = 1
histograms_every = 0
picture_sentences = 0
xla = false
[translation]
beam_size = 1
validation_sentences = 30
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run without context, one with the source before, and one with both sides, of the same text."""
    folder = tmp_path_factory.mktemp("context")
    for name, count in (("train", 200), ("test", 40)):
        rows = ["\t".join(row) for document in documents(count, 1 + (name == "test")) for row in document]
        (folder / f"{name}.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    configs = {"alone": "", "source": "context = 2", "both": 'context = 2\ncontext_sides = "both"'}
    for name, context in configs.items():
        path = folder / f"{name}.toml"
        path.write_text(CONFIG.format(folder=folder, name=name, context=context), encoding="utf-8")
        steps = 600 if name == "both" else 300
        assert invoke(train.__main__.app, str(path), "--set", f"training.steps={steps}").exit_code == 0
    return folder


def lines_of(folder):
    """The lines of the test's documents, which empty lines end, of each side."""
    rows = [line.split("\t") for line in (folder / "test.tsv").read_text(encoding="utf-8").splitlines()]
    sides: tuple[list[str], list[str]] = ([], [])
    for number, (source, target, document) in enumerate(rows):
        if number and rows[number - 1][2] != document:
            sides[0].append("")
            sides[1].append("")
        sides[0].append(source)
        sides[1].append(target)
    return sides


def right(found, expected):
    """The share of the lines with "it" whose translation is right."""
    of_it = [a == b for a, b in zip(found, expected, strict=True) if b.split(" ")[0] in NOUNS.values()]
    return sum(of_it) / len(of_it)


@pytest.mark.slow
def test_a_word_that_depends_on_the_sentence_before_is_right_with_context_and_chance_without(runs):
    sources, expected = lines_of(runs)
    shares = {}
    for name in ("alone", "source", "both"):
        context = ["--context"] if name != "alone" else []
        result = invoke(translate, str(runs / name), *context, stdin="\n".join(sources) + "\n")
        assert result.exit_code == 0, result.output
        found = result.stdout.split("\n")[:-1]
        shares[name] = right(found, expected)
        assert [line for line in found if not line] == [line for line in sources if not line]
    assert shares["alone"] < 0.6 and shares["source"] == 1.0 and shares["both"] > 0.9
    single = invoke(translate, str(runs / "source"), stdin="\n".join(sources) + "\n").stdout.split("\n")[:-1]
    assert right(single, expected) < 0.6  # it is the context that tells, not the run
    nouns = [(a, b) for a, b, source in zip(single, expected, sources, strict=True) if source.startswith("see")]
    assert all(a == b for a, b in nouns)  # and it works without


@pytest.mark.slow
def test_every_road_of_a_document_reads_it(runs, tmp_path):
    model = Translator.load(runs / "source")
    assert model.context == Context(2)
    lines = ["see runs a cat", "it sits", "it eats"]
    expected = ["sieh rennt cat", "sie sitzt", "sie isst"]
    earlier = [lines[max(0, n - 2) : n] for n in range(3)]
    assert [each.text for each in model.translate(lines, context=earlier)] == expected
    document = "".join(f"<p>{line}</p>" for line in lines)
    (tmp_path / "page.html").write_text(document, encoding="utf-8")
    result = invoke(
        translate, str(runs / "source"), "--input", tmp_path / "page.html", "--output", tmp_path / "out.html"
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == "".join(f"<p>{line}</p>" for line in expected)
    assert model.translate_document("\n".join(lines)).text == "\n".join(expected)


@pytest.mark.slow
def test_evaluate_and_validation_read_documents_as_translation_does(runs):
    chrf = {}
    for name in ("alone", "source", "both"):
        result = invoke(train.evaluate.app, str(runs / name), "--json")
        assert result.exit_code == 0, result.output
        scores = {score["name"]: score["value"] for score in json.loads(result.stdout)["scores"]}
        chrf[name] = scores["chrF"]
    assert chrf["alone"] < 90 < 96 < chrf["both"] and chrf["source"] == pytest.approx(100.0)
    metrics = [json.loads(line) for line in (runs / "source" / "metrics.jsonl").read_text().splitlines()]
    assert max(row.get("validation/chrf", 0.0) for row in metrics) > 99


@pytest.mark.slow
@pytest.mark.parametrize(("name", "format"), [("source", "saved_model"), ("both", "litert")])
def test_an_export_reads_documents_as_its_run_does(graphs_as_written, runs, tmp_path, name, format):
    folder, how = tmp_path / "export", ["--format", format, "--max-source-tokens", "64", "--no-check"]
    names = ("serving_default", "translate", "tokenize") if format == "saved_model" else ()
    signatures = [word for signature in names for word in ("--signature", signature)]
    result = invoke(export, str(runs / name), "--to", folder, *how, *signatures)
    assert result.exit_code == 0, result.output
    sources, _ = lines_of(runs)
    stdin = "\n".join(sources[:30]) + "\n"
    of_run = invoke(translate, str(runs / name), "--context", stdin=stdin)
    assert invoke(translate_export, str(folder), "--context", stdin=stdin).stdout == of_run.stdout


@pytest.mark.slow
def test_score_reads_the_pairs_before(runs, tmp_path):
    sources, targets = lines_of(runs)
    for name, lines in (("source", sources[:20]), ("target", targets[:20])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    asked = ["--source", tmp_path / "source", "--target", tmp_path / "target"]
    for name in ("source", "both"):
        sums = []
        for more in ([], ["--context"]):
            result = invoke(score, str(runs / name), *asked, *more)
            assert result.exit_code == 0, result.output
            sums.append(sum(float(line.split("\t")[0]) for line in result.stdout.splitlines()))
        assert sums[1] > sums[0] / 2
    assert_one_sentence(invoke(score, str(runs / "alone"), *asked, "--context"), "reads single sentences")


@pytest.mark.slow
def test_a_run_of_single_sentences_refuses_context(runs, tmp_path):
    assert_one_sentence(invoke(translate, str(runs / "alone"), "--context", stdin="a\n"), "reads single sentences")
    result = invoke(translate, str(runs / "source"), "--context", "--paragraphs", stdin="a\n")
    assert_one_sentence(result, "--context is for lines, and --format text is read so by itself")
