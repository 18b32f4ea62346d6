"""A run on a treebank: what its report, its metrics and the commands say of its trees."""

import contextlib
import json
import re

import pytest

import train.__main__
import train.evaluate
from keras_transformer.commands import translate as command
from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.samples import Sample
from keras_transformer.translation.outputs import KINDS
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import CONFIG, metrics_of, random_run
from train.config.run import SOURCES, load_config
from train.data.corpus import CorpusError
from train.data.prepare import load_corpus
from train.data.trees import read_trees
from train.loop.dashboard import QUALITY_OF
from train.scoring.card import TimedTranslations
from train.scoring.outputs import SCORED
from train.scoring.parsing_card import parsing_card
from train.scoring.scored_trees import ScoredTrees

NOUNS = "time", "dogs", "men", "words", "trees", "birds", "fruit", "flies"
VERBS = "bark", "fly", "like", "grow", "read"
TREES = "".join(
    f"( (S (NP-SBJ (DT the) (NNS {noun})) (VP (VBP {verb}) (NP (-NONE- *))) (. .)) )\n"
    for noun in NOUNS
    for verb in VERBS
)

TREE = TREES.splitlines(keepends=True)[0]


@pytest.fixture(scope="module")
def configuration(tmp_path_factory):
    """The configuration file of a run of five steps on 40 trees."""
    folder = tmp_path_factory.mktemp("parsing")
    (folder / "all.mrg").write_text(TREES, encoding="utf-8")
    data = f'[data]\nsource = "treebank"\nfiles = ["{folder}/all.mrg"]\ndivision = "trees"\nvalidation_share = 0.1\n'
    validations = 'validate_every = 4\npatience = 9\nbest_metric = "f1"'
    rest = CONFIG[CONFIG.index("[tokenizer]") :].replace("validate_every = 2", validations)
    search = "[translation]\nbeam_size = 3\nlength_penalty = 0.3\nextra_length = 20\nvalidation_sentences = 3\n"
    path = folder / "run.toml"
    path.write_text(f'run_folder = "{folder}/run"\n{data}\n{rest}\n{search}', encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def parsed(configuration):
    """The run folder of a first training."""
    result = invoke(train.__main__.app, configuration)
    assert result.exit_code == 0, result.output
    return configuration.with_suffix("")


def card_of(outputs, text=TREES):
    trees = list(read_trees(text, "text"))[: len(outputs)]
    samples = [Sample(*tree.pair, output) for tree, output in zip(trees, outputs, strict=True)]
    timed = TimedTranslations(samples, seconds=2.0)
    return parsing_card(timed, trees, list(read_trees(text, "text")))


def test_the_card_has_the_scores_the_baseline_and_the_papers():
    card = card_of(["(S (NP XX XX )NP (VP XX )VP XX )S"] * 3 + ["(S XX XX XX XX )S"])
    lines = card.lines()
    assert card.scores.f1.value == pytest.approx(200 * 10 / (10 + 12)) and card.scores.exact == 75.0
    assert lines[0].startswith(f"F1 {card.scores.f1}  precision 100.00")
    assert "exact 75.00 per cent of 4 trees" in lines
    rows = {row[0]: row[1:] for row in card.tables()[0].rows}
    assert rows["this run"][-1] == "40" and rows["this run"][0] == str(card.scores.f1)
    assert card.parser == ("S", "S")  # no phrase of two words ends its sentence
    assert rows["right-branching: S over a chain of S"][0].startswith("40.00")  # of 5 phrases S is right: 2 / (2 + 3)
    assert [row[:2] for row in card.tables()[0].rows[2:]] == [
        ("Vaswani et al. 2017, Wall Street Journal only", "91.3"),
        ("Vaswani et al. 2017, semi-supervised", "92.7"),
    ]
    assert card.tables()[1].rows == [("up to 5", "4", "90.91", "75.0", "100.0")]


def test_written_trees_have_the_words_and_tags_of_the_treebank():
    (tree, *_) = read_trees(TREES, "text")
    scored = ScoredTrees("text", [tree.pair], [tree], [tree])
    assert scored.written([""]) == ["(S (DT the) (NNS time) (VBP bark) (. .))"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TREE, None),
        ("", "has 0 trees, but there are 1 sentences"),
        (TREE * 2, "has 2 trees, but there are 1 sentences"),
        ("( (S (NN time) (. .)) )\n", "tree 1 has 2 words and its sentence 4: give the trees in the order"),
    ],
)
def test_other_trees_are_those_of_the_same_sentences(tmp_path, text, message):
    (tmp_path / "theirs").write_text(text, encoding="utf-8")
    (tree,) = read_trees(TREE, "text")
    scored = ScoredTrees("text", [tree.pair], [tree], [tree])
    with pytest.raises(CorpusError, match=message) if message else contextlib.nullcontext():
        assert scored.read(tmp_path / "theirs") == [tree.pair[1]]


def test_f1_decides_only_between_runs_of_a_treebank(configuration):
    assert load_config(configuration).training.best_metric == "f1"
    numbers = ["data={source='numbers'}"]
    with pytest.raises(ConfigError, match='best_metric is "f1".*"treebank"'):
        load_config(configuration, numbers)


@pytest.mark.nightly
def test_every_validation_and_the_end_record_the_brackets(parsed):
    records = [record for record in metrics_of(parsed) if "validation/bracketing_f1" in record]
    assert [record["step"] for record in records] == [4, 5]
    names = {"bracketing_f1", "bracketing_precision", "bracketing_recall", "exact_trees", "well_formed"}
    assert {f"validation/{name}" for name in names} <= records[0].keys()
    assert {f"final/{name}" for name in names} | {"final/loss"} <= metrics_of(parsed)[-1].keys()


@pytest.mark.nightly
def test_the_report_has_f1_in_place_of_bleu(parsed):
    report = (parsed / "report.md").read_text(encoding="utf-8")
    assert re.search(r"^- F1 \d+\.\d\d ± ", report, re.MULTILINE) and "- BLEU" not in report
    assert "Loss, F1 and learning rate" in report and "sentence is parsed without" in report
    assert "translation may" not in report
    assert "beam 3, length penalty 0.3" in report and "right-branching" in report and "kept " in report
    assert re.search(r"\| test \| 4 trees: single trees drawn by seed 1", report)
    scores = json.loads((parsed / "scores.json").read_text(encoding="utf-8"))
    assert scores["scores"][0]["name"] == "F1" and scores["split"] == "data.test"


@pytest.mark.nightly
def test_a_constrained_evaluation_needs_no_repair(parsed):
    """After five steps the free search writes next to no trees, the constrained one nothing else."""
    found = {}
    for name, options in {"free": [], "constrained": ["--constrained"]}.items():
        result = invoke(train.evaluate.app, parsed, "--json", *options)
        assert result.exit_code == 0, result.output
        found[name] = json.loads(result.stdout)
    assert found["free"]["well_formed"] < 100.0 == found["constrained"]["well_formed"]
    assert (found["free"]["constrained"], found["constrained"]["constrained"]) == (False, True)


@pytest.mark.nightly
def test_evaluate_repeats_the_report_and_writes_trees(parsed, tmp_path):
    result = invoke(train.evaluate.app, parsed, "--json", "--output", tmp_path / "out.mrg")
    assert result.exit_code == 0, result.output
    found, reported = json.loads(result.stdout), json.loads((parsed / "scores.json").read_text(encoding="utf-8"))
    assert found["scores"] == reported["scores"] and found["right_branching"] == reported["right_branching"]
    assert (found["beam_size"], found["length_penalty"]) == (3, 0.3)
    trees = list(read_trees((tmp_path / "out.mrg").read_text(encoding="utf-8"), "out"))
    test = load_corpus(load_config(parsed / "config.toml").data).test
    assert [(tree.words, tree.tags) for tree in trees] == [(tree.words, tree.tags) for tree in test.trees]


@pytest.mark.nightly
def test_against_another_run_or_its_trees_in_a_file(parsed, tmp_path):
    assert invoke(train.evaluate.app, parsed, "--output", tmp_path / "out.mrg").exit_code == 0
    by_file = invoke(train.evaluate.app, parsed, "--against", tmp_path / "out.mrg")
    assert by_file.exit_code == 0 and "No two trees differ in sentence F1." in by_file.stdout, by_file.output
    found = json.loads(invoke(train.evaluate.app, parsed, "--against", parsed, "--json").stdout)["against"]
    assert [(one["name"], one["p_value"]) for one in found["differences"]] == [
        ("F1", 1.0),
        ("precision", 1.0),
        ("recall", 1.0),
    ]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(S (XX a))\n", ["1 trees", "4 sentences"]),
        ("(S (XX a))\n" * 4, ["tree 1 has 1 words"]),
        ("(S", ["never closed"]),
        ("\udcff", ["not UTF-8"]),
    ],
)
def test_trees_of_other_sentences_are_no_comparison(parsed, tmp_path, text, parts):
    (tmp_path / "other.mrg").write_text(text, encoding="utf-8", errors="surrogateescape")
    assert_one_sentence(invoke(train.evaluate.app, parsed, "--against", tmp_path / "other.mrg"), "other.mrg", *parts)


@pytest.mark.nightly
def test_translate_prints_trees_over_the_words(parsed):
    result = invoke(command.app, parsed, stdin="the dogs bark .\n")
    (tree,) = read_trees(result.stdout, "stdout")
    assert tree.words == ("the", "dogs", "bark", ".") and set(tree.tags) == {"XX"}


def test_trees_are_not_compared_with_text(tmp_path):
    """Before anything is loaded, which takes seconds, or translated, which may take hours."""
    runs = {}
    for source in "treebank", "files":
        runs[source] = random_run(tmp_path / source)
        text = f'[data]\nsource = "{source}"\n[translation]\nbeam_size = 2\n'
        (runs[source] / "config.toml").write_text(text, encoding="utf-8")
    for ours, theirs, kind in (("treebank", "files", "trees"), ("files", "treebank", "text")):
        result = invoke(train.evaluate.app, runs[ours], "--against", runs[theirs])
        assert_one_sentence(
            result, f"{runs[ours]} writes {kind}", f"--against {runs[theirs]}", f"a run that writes {kind}"
        )


@pytest.mark.nightly
@pytest.mark.parametrize("arguments", [["--tokenised"], ["--plot", "x.png"]])
def test_options_of_text_are_refused(parsed, arguments):
    assert_one_sentence(invoke(train.evaluate.app, parsed, *arguments), arguments[0], f"{parsed} writes trees")


@pytest.mark.nightly
def test_the_treebank_is_not_overwritten(parsed):
    treebank = parsed.parent / "all.mrg"
    result = invoke(train.evaluate.app, parsed, "--output", treebank)
    assert_one_sentence(result, f"--output {treebank} is one of the files that are read")
    assert treebank.read_text(encoding="utf-8") == TREES


def test_every_kind_of_outputs_is_written_scored_and_charted():
    assert {section.outputs for section in SOURCES} == set(KINDS) == set(SCORED) == set(QUALITY_OF)
