"""Given translations have the scores that the search gives them."""

import logging
import shutil

import numpy as np
import pytest

from export.graph.served_graph import ServedGraph
from keras_transformer.commands.score import app, columns_of
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.pieces.sources import encoded_lines, first_bytes
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import build_model
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.forced import Forced
from keras_transformer.translation.scorer import LONGEST_TARGET, OF_SCORES, ScoredPair, Scorer
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import SENTENCES, random_run

OPTIONS = SearchOptions(extra_length=6, n_best=4, length_penalty=1.0)


@pytest.fixture(scope="module")
def scorer(pair):
    return Scorer(*pair, length_penalty=1.0, batch_size=3)


@pytest.fixture(scope="module")
def translations(pair):
    return read_back(pair, OPTIONS, SENTENCES[:6])


def read_back(pair, options, sources):
    """Sources, and translations of them whose text has the tokens that the search found."""
    found = zip(sources, Translator(*pair, options).translate_n_best(sources), strict=True)
    return [(source, one) for source, several in found for one in several if (*pair[1].encode(one.text), 3) == one.ids]


@pytest.mark.slow
def test_a_translation_has_the_score_that_the_search_gave_it(scorer, translations):
    assert len(translations) >= 6
    scored = scorer.score([source for source, _ in translations], [one.text for _, one in translations])
    for (_, one), found in zip(translations, scored, strict=True):
        assert found.score == pytest.approx(one.score, abs=1e-4)
        assert found.log_probability == pytest.approx(one.score * (5 + len(one.ids)) / 6, abs=1e-3)
        assert found.log_probability == pytest.approx(sum(found.piece_log_probabilities), abs=1e-5)
        assert len(found.pieces) == len(one.ids) and found.pieces[-1] == "</s>"


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["float32", None])
def test_translator_scorer_and_explainer_compute_in_one_precision(pair, precision):
    half = build_model(pair[0].model_config, dtype="bfloat16")
    half.set_weights(pair[0].get_weights())
    options = SearchOptions(max_length=6, length_penalty=1.0)
    sources = SENTENCES[:4]
    translations = Translator(half, pair[1], options, precision=precision).translate(sources)
    scorer = Scorer(half, pair[1], length_penalty=1.0, precision=precision)
    explainer = Explainer(half, pair[1], options, precision)
    scores = scorer.score(sources, [translation.text for translation in translations])
    tolerance = 1e-4 if precision else 0.1  # sums of bfloat16 differ between a search and teacher forcing
    for source, translation, score in zip(sources, translations, scores, strict=True):
        explained = explainer.explain(source).translations[0]
        assert explained.score == pytest.approx(translation.score, abs=tolerance)
        if (*pair[1].encode(translation.text), 3) == translation.ids:
            assert score.score == pytest.approx(translation.score, abs=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("option", [{"coverage_penalty": 0.7}, {"length_normalization": "tokens"}])
def test_what_else_is_in_a_score_is_part_of_the_score_that_the_search_gave(pair, option):
    options = SearchOptions(max_length=5, length_penalty=1.0, **option)
    pairs = read_back(pair, options, SENTENCES[:12])
    sources, texts = [source for source, _ in pairs], [one.text for _, one in pairs]
    scored = Scorer(*pair, length_penalty=1.0, **option).score(sources, texts)
    if option.get("length_normalization"):
        for (_, one), found in zip(pairs, scored, strict=True):
            assert one.score == pytest.approx(found.log_probability / len(one.ids), abs=1e-4)
        return
    assert [one.score for one in scored] == pytest.approx([one.score for _, one in pairs], abs=1e-4)
    without = Scorer(*pair, length_penalty=1.0).score(sources, texts)
    assert any(one.score < other.score - 0.1 for one, other in zip(scored, without, strict=True))


@pytest.mark.parametrize("kind", [Scorer, Translator, Explainer, ServedGraph])
def test_a_coverage_penalty_of_a_model_without_attention_is_refused_at_once(pair, kind):
    model = build_model(RecurrentConfig(vocab_size=pair[1].vocab_size, d_model=6, attention="none"))
    options = SearchOptions(coverage_penalty=0.5)
    given = {
        Scorer: {"coverage_penalty": 0.5},
        ServedGraph: {"options": options, "max_source_tokens": 9},
    }.get(kind, {"options": options})
    with pytest.raises(ConfigError, match="coverage_penalty is 0.5, but this model does not attend"):
        kind(model, pair[1], **given)


def test_what_a_score_depends_on_is_what_was_asked_for(pair):
    asked = {"length_penalty": 0.25, "coverage_penalty": 0.5, "length_normalization": "tokens"}
    assert set(asked) == set(OF_SCORES) and Scorer(*pair, **asked).options == SearchOptions(**asked)


@pytest.mark.parametrize("kind", [Scorer, Translator])
def test_another_backend_than_its_graphs_are_of_is_refused(pair, kind, monkeypatch):
    monkeypatch.setattr("keras.backend.backend", lambda: "torch")
    with pytest.raises(
        ConfigError, match=f"{kind.__name__} computes with TensorFlow, but the backend of Keras is torch"
    ):
        kind(*pair)


@pytest.mark.slow
def test_neither_order_nor_batch_changes_a_score(scorer):
    sources, targets = SENTENCES[:4], SENTENCES[4:8]
    together = scorer.score(sources, targets)
    backwards = scorer.score(sources[::-1], targets[::-1])[::-1]
    alone = [scorer.score([source], [target])[0] for source, target in zip(sources, targets, strict=True)]
    for found in (backwards, alone):
        assert [one.score for one in found] == pytest.approx([one.score for one in together], abs=1e-4)


def test_a_blank_source_has_no_score_and_a_blank_target_that_of_the_end(scorer):
    assert scorer.score(["", " "], ["a", ""]) == [ScoredPair()] * 2
    [found] = scorer.score(["two"], [""])
    assert found.pieces == ("</s>",) and found.score < 0


def test_as_many_targets_as_sources_are_needed(scorer):
    with pytest.raises(ConfigError, match="2 sources and 1 targets"):
        scorer.score(["a", "b"], ["c"])


@pytest.mark.parametrize("field, value", [("batch_size", 0), ("batch_size", -1), ("max_source_tokens", 1)])
def test_invalid_limits_are_named(pair, field, value):
    with pytest.raises(ConfigError, match=f"{field} is {value}; it must be"):
        Scorer(*pair, **{field: value})


@pytest.mark.nightly
def test_learned_positions_bound_both_sides_as_in_a_translation(tmp_path):
    learned = random_run(tmp_path / "learned", positions="learned", max_positions=12)
    scorer, source = Scorer.load(learned, length_penalty=1.0), "the cat sat on the mat " * 3
    [found] = Translator.load(learned, SearchOptions(beam_size=1, length_penalty=1.0, max_length=5)).translate([source])
    [scored] = scorer.score([source], [found.text])
    assert (*scorer.tokenizer.encode(found.text), 3) == found.ids, "another output: the scores say nothing"
    assert scored.score == pytest.approx(found.score, abs=1e-4)
    with pytest.raises(InputError, match=r"Target 2 has \d+ tokens, EOS included; at most 12 are scored"):
        scorer.score(["a", "a"], ["a", source])


def test_a_target_longer_than_any_translation_is_refused_by_number(scorer):
    with pytest.raises(InputError, match=f"Target 2 has .* at most {LONGEST_TARGET} are scored"):
        scorer.score(["one", "two"], ["eins", "zwei " * LONGEST_TARGET])


def test_few_logits_are_computed_at_once_and_change_no_score(scorer, monkeypatch):
    sources, targets = ["one", "two", "three", "four"], ["eins", "zwei zwei", "drei", "vier vier vier"]
    expected = scorer.score(sources, targets)
    rows, forced = [], scorer._forced
    monkeypatch.setattr(scorer, "_most_tokens", 1)
    monkeypatch.setattr(scorer, "_forced", lambda *ids: rows.append(len(ids[1])) or forced(*ids))
    found = scorer.score(sources, targets)
    assert rows == [1, 1, 1, 1]
    for one, other in zip(found, expected, strict=True):
        assert one.pieces == other.pieces and one.score == pytest.approx(other.score, abs=1e-5)


@pytest.mark.parametrize("reader", [Translator, Scorer, Explainer])
def test_a_tokenizer_of_another_model_is_refused(reader, pair):
    other = build_model(pair[0].model_config.replace(vocab_size=pair[1].vocab_size + 1))
    with pytest.raises(ConfigError, match="has a vocabulary of"):
        reader(other, pair[1])


def test_a_run_that_writes_trees_is_refused(tmp_path):
    """Its target is no tree as `translate` writes it, so that the score would be of something else."""
    Inference("trees").save(tmp_path / "inference.json")
    result = invoke(app, tmp_path, "--source", "none", "--target", "none")
    assert_one_sentence(result, f"{tmp_path} writes trees", "translate --scores")


@pytest.mark.slow
def test_the_command_prints_log_probability_and_score_of_each_pair(random_folder, scorer, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("".join(f"{line}\n" for line in SENTENCES[:4]), encoding="utf-8")
    target.write_text("".join(f"{line}\n" for line in SENTENCES[1:5]), encoding="utf-8")
    result = invoke(app, random_folder, "--source", source, "--target", target, "--length-penalty", "1.0")
    assert result.exit_code == 0, result.output
    expected = scorer.score(SENTENCES[:4], SENTENCES[1:5])
    for line, one in zip(result.stdout.splitlines(), expected, strict=True):
        assert [float(number) for number in line.split("\t")] == pytest.approx(
            [one.log_probability, one.score], abs=2e-4
        )
    result = invoke(app, random_folder, "--source", source, "--target", target, "--pieces")
    for line, pair in zip(result.stdout.splitlines(), expected, strict=True):
        _, _, pieces, log_probs = line.split("\t")
        assert tuple(pieces.split(" ")) == pair.pieces
        assert [float(number) for number in log_probs.split(" ")] == pytest.approx(
            pair.piece_log_probabilities, abs=2e-4
        )
    target.write_text("one\n", encoding="utf-8")
    assert_one_sentence(invoke(app, random_folder, "--source", source, "--target", target), "4 lines", "has 1")
    missing = invoke(app, random_folder, "--source", tmp_path / "no such file", "--target", target)
    assert_one_sentence(missing, "no such file")


def test_a_score_is_as_its_run_says_unless_it_is_asked_otherwise(random_folder, tmp_path):
    run = shutil.copytree(random_folder, tmp_path / "run")
    in_score = {"length_penalty": 0.3, "length_normalization": "tokens", "coverage_penalty": 0.2}
    Inference(search=in_score | {"beam_size": 7}).save(run / "inference.json")
    assert Scorer.load(run).options == SearchOptions(**in_score)
    scorer = Scorer.load(run, length_penalty=0.9, batch_size=3)
    assert scorer.options == SearchOptions(**in_score | {"length_penalty": 0.9}) and scorer.batch_size == 3


def test_bytes_are_cut_between_characters():
    assert first_bytes("aé🙂", 3) == "aé" and first_bytes("aé🙂", 6) == "aé" and first_bytes("aé🙂", 7) == "aé🙂"


def test_a_line_of_many_bytes_is_cut_before_it_is_tokenized(pair, caplog):
    with caplog.at_level(logging.WARNING, logger="keras_transformer"):
        [ids] = encoded_lines(pair[1], ["\u3000" * 50_000 + "a"], longest=8, first_line=3)
    assert len(ids) <= 8 and "line 3" in caplog.text and "512 bytes" in caplog.text


def test_a_piece_that_is_white_space_keeps_the_columns_of_a_line():
    pair = ScoredPair(-1.0, -2.0, ("a", "\t", "\u2028x", "</s>"), (-0.5, -0.5, -0.5, -0.5))
    assert columns_of(pair, True)[2] == "a <0x09> <0xE2><0x80><0xA8>x </s>"
    assert columns_of(pair, False) == ["-2.0000", "-1.0000"]


def test_coverage_is_of_the_last_block_with_the_mean_of_its_heads():
    attention = np.array([[[[0.9, 0.1, 0.0]], [[0.5, 0.5, 0.0]]]], "float32")  # (1, 2 heads, 1 target, 3 source)
    both = Forced(None, {"decoder_block_1/memory": attention[..., ::-1], "decoder_block_2/memory": attention})
    found = both.log_coverage(np.array([[5, 3, 0]]))  # the last one is padding
    assert float(found[0]) == pytest.approx(np.log(0.7) + np.log(0.3), abs=1e-5)
