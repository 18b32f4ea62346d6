"""BLEU in three forms and chrF: sacreBLEU's own numbers with its signatures and its confidence intervals."""

import gzip
import json

import pytest
import sacrebleu

from keras_transformer.inspection.bleu import (
    CHRF,
    LOWER_BLEU,
    RAW_BLEU,
    TER,
    Score,
    affordable,
    all_measures,
    raw_bleu,
    score,
    tokenise,
    tokenised_bleu,
)
from tests.support.places import TOKENISED_MULTI30K
from tests.support.processes import python
from tests.support.sentences import REFERENCES, TRANSLATIONS

GERMAN = [tokenised_bleu("de"), CHRF]


def sacrebleu_command(tmp_path, translations, references, *options):
    """What the command `sacrebleu` prints as JSON, with four decimals."""
    (tmp_path / "references").write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
    command = ["-m", "sacrebleu", tmp_path / "references", "--width", 4, "--format", "json", *options]
    return json.loads(python(*command, stdin="".join(f"{line}\n" for line in translations)).stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "measure", [RAW_BLEU, LOWER_BLEU, tokenised_bleu("de"), CHRF, TER], ids=lambda m: f"{m.name} {m.form}"
)
def test_score_interval_and_signature_are_those_of_the_sacrebleu_command(tmp_path, measure):
    """Which gets the text that was tokenised for it."""
    options = {"raw text": [], "raw text, lower-cased": ["-lc"], TER.form: []}.get(
        measure.form, ["-lc", "-tok", "none", "--force"]
    )
    metric = ["--metrics", measure.name.lower(), "--confidence"]
    lines = TRANSLATIONS * 5, REFERENCES * 5
    expected = sacrebleu_command(tmp_path, *map(measure.texts, lines), *metric, *options)
    (found,) = score(*lines, [measure], resamples=1_000).measured
    assert 10 < found.value < 90 and found.margin > 1
    assert (found.value, found.mean, found.margin) == pytest.approx(
        (expected["score"], expected["confidence_mean"], expected["confidence_var"]), abs=1e-4
    )
    assert found.signature == expected["signature"]


def test_chrf_and_exact_matches_are_of_raw_text_in_both_variants():
    raw, tokenised = score(TRANSLATIONS, REFERENCES), score(TRANSLATIONS, REFERENCES, GERMAN)
    assert raw.first("chrF") == tokenised.first("chrF")
    assert raw.exact == tokenised.exact == 25.0


def test_every_form_has_the_signature_that_distinguishes_it():
    raw, lower, tokenised, chrf, ter = score(TRANSLATIONS, REFERENCES, all_measures("de")).measured
    assert "case:mixed" in raw.signature and "tok:13a" in raw.signature
    assert "case:lc" in lower.signature and "tok:13a" in lower.signature
    assert "case:lc" in tokenised.signature and "tok:none" in tokenised.signature
    assert "nc:6" in chrf.signature and "version:" in chrf.signature
    assert "case:lc" in ter.signature and "tok:tercom" in ter.signature and "asian:no" in ter.signature


def test_a_line_has_the_score_its_form_and_its_signature():
    scores = score(TRANSLATIONS, REFERENCES, all_measures("de"))
    for line, found in zip(scores.lines(), scores.measured, strict=False):
        assert line.startswith(f"{found.name} {found.value:.2f} ")
        assert f"  {found.form} " in line and line.endswith(f"  {found.signature}")
    assert scores.lines()[-1] == "exact 25.00 per cent of 4 sentences"


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("zh", "zh"), ("zh-TW", "zh"), ("ZH_cn", "zh"), ("ja", "char"), ("th", "char"), ("ko", "13a"), ("", "13a")],
)
def test_a_language_without_spaces_is_split_as_sacrebleu_does(language, tokenizer):
    """13a would take a sentence for one word, and its BLEU for undefined."""
    references, translations = ["我很喜欢这只黑猫。", "他在家。"], ["我喜欢这只黑猫。", "他在家。"]
    found = score(translations, references, [raw_bleu(language)]).first("BLEU")
    expected = sacrebleu.corpus_bleu(translations, [references], tokenize=tokenizer, force=True).score
    assert found.value == pytest.approx(expected) and f"tok:{tokenizer}" in found.signature
    assert bool(found.undefined) == (tokenizer == "13a") and (found.value > 50) == (tokenizer != "13a")


def test_text_without_spaces_has_no_form_of_moses():
    """Which would leave it as it is."""
    raw, lower, chrf, ter = all_measures("zh")
    assert (raw.tokenizer, lower.tokenizer, ter.tokenizer) == ("zh", "zh", "zh") and chrf == CHRF
    assert len(all_measures("ko")) == 5


def test_ter_counts_edits_per_word_of_the_reference_and_moves_words_that_stand_together_at_once():
    """Two of six words are replaced; three that move together are one edit."""
    replaced = score(["a b x y e f"], ["a b c d e f"], [TER]).measured[0].value
    moved = score(["d e f a b c"], ["a b c d e f"], [TER]).measured[0].value
    assert (replaced, moved) == pytest.approx((100 * 2 / 6, 100 * 1 / 6))


def test_ter_counts_characters_if_there_are_no_spaces():
    ter = all_measures("zh")[-1]
    assert score(["我喜欢猫"], ["我喜欢狗"], [ter]).measured[0].value == pytest.approx(100 / 4)


@pytest.mark.parametrize("measure", all_measures("de"))
def test_the_reference_itself_has_the_best_score(measure):
    (found,) = score(REFERENCES, REFERENCES, [measure]).measured
    assert found.value == pytest.approx(0 if measure.name == "TER" else 100)


def test_nothing_in_common_scores_0():
    scores = score(["x"] * 4, REFERENCES, resamples=100)
    assert (scores.bleu, scores.exact) == (0, 0)
    assert str(scores.first("BLEU")) == "0.00 ± 0.00"


def test_an_empty_translation_counts_as_a_sentence():
    assert score(["", *REFERENCES[1:]], REFERENCES).exact == 75.0


def test_case_counts_in_raw_text_and_in_no_other_form():
    shouted = [line.upper() for line in REFERENCES]
    raw, lower, tokenised, *_ = score(shouted, REFERENCES, all_measures("de")).measured
    assert raw.value < 50
    assert (lower.value, tokenised.value) == pytest.approx((100, 100))


def test_exact_is_to_the_letter():
    assert score(["Haus", "haus", "haus."], ["haus", "haus", "haus"]).exact == pytest.approx(100 / 3)


def test_the_tokenised_variant_follows_the_rules_of_its_language():
    ours, theirs = ["je vois l'homme qui rit ici"], ["je vois la homme qui rit ici"]
    french, german, english = (score(ours, theirs, [tokenised_bleu(name)]).bleu for name in ("fr", "de", "en"))
    assert french > german > english  # l' homme; l ' homme, a token too many; l 'homme, the noun missed


@pytest.mark.parametrize("count", [0, 3, 5])
def test_each_translation_needs_one_reference(count):
    with pytest.raises(ValueError, match=f"{count} translations and 4 references"):
        score((TRANSLATIONS * 2)[:count], REFERENCES)


def test_nothing_to_score_is_refused():
    with pytest.raises(ValueError, match="0 translations and 0 references"):
        score([], [])


def test_tokens_are_separated_and_lower_cased_and_quotes_normalised():
    assert tokenise(["Er sagt: „Hallo, T-Shirt!“"], "de") == ["er sagt : &quot; hallo , t-shirt ! &quot;"]
    assert tokenise(["what's gayer?"], "en") == ["what &apos;s gayer ?"]
    assert tokenise(["l'homme, z.B."], "fr") == ["l&apos; homme , z.b."]


@pytest.mark.skipif(TOKENISED_MULTI30K is None, reason="there are no *.lc.norm.tok.* files of Multi30k")
@pytest.mark.parametrize("language", ["de", "en", "fr"])
@pytest.mark.parametrize("split", ["val", "test_2016_flickr"])
def test_multi30k_becomes_the_text_that_published_scores_are_computed_on(split, language):
    def lines(name):
        path = TOKENISED_MULTI30K / f"{split}.{name}{language}.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            return file.read().removesuffix("\n").split("\n")

    ours, theirs = tokenise(lines(""), language), lines("lc.norm.tok.")
    assert len(ours) == len(theirs)
    different = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    assert len(different) <= 1  # a line or none of about 1,000: where Moses in Perl and in Python differ


def test_a_language_without_rules_is_named_in_the_form_of_the_score():
    assert tokenised_bleu("de").form == "tokenised, lower-cased"
    assert "Moses' general rules" in tokenised_bleu("target").form and "'target'" in tokenised_bleu("target").form
    assert score(["Here."], ["here ."], [tokenised_bleu("target")]).exact == 0


# confidence intervals


def test_without_resamples_there_is_no_interval():
    (found, _) = score(TRANSLATIONS, REFERENCES).measured
    assert (found.mean, found.margin) == (None, None) and str(found) == f"{found.value:.2f}"
    assert found.as_json()["interval"] is None and "bs:" not in found.signature


def test_equal_sentences_have_an_interval_of_width_0():
    (found,) = score(TRANSLATIONS[:1] * 9, REFERENCES[:1] * 9, [RAW_BLEU], resamples=100).measured
    assert found.margin == 0 and found.mean == pytest.approx(found.value)
    assert found.as_json()["interval"] == pytest.approx([found.value, found.value])


def test_an_interval_is_its_mean_plus_and_minus_its_margin():
    (found,) = score(TRANSLATIONS, REFERENCES, [CHRF], resamples=100).measured
    low, high = found.as_json()["interval"]
    assert (low + high) / 2 == pytest.approx(found.mean) and (high - low) / 2 == pytest.approx(found.margin)
    assert 0 < low < found.value < high <= 100 + found.margin
    assert str(found) == f"{found.value:.2f} ± {found.margin:.2f}" and "|bs:100|" in found.signature


def test_some_resamples_of_0_are_no_error():
    """The TypeError of sacreBLEU 2.6: "don't know how to coerce float and float32"."""
    found = score(["x", "x", "Haus"], ["Katze", "Kuh", "Haus"], [CHRF], resamples=1_000).first("chrF")
    assert 0 < found.value < 100 and found.margin == pytest.approx(50, abs=20)


def test_one_sentence_has_no_interval():
    assert score(TRANSLATIONS[:1], REFERENCES[:1], resamples=1_000).first("BLEU").margin is None


@pytest.mark.parametrize(
    ("sentences", "expected"), [(1_000, 1_000), (5_000, 1_000), (10_000, 500), (50_000, 100), (50_001, 0)]
)
def test_a_long_text_is_resampled_as_often_as_memory_allows(sentences, expected):
    assert affordable(1_000, sentences, most=5_000_000) == expected


# what BLEU cannot say


ONE_WORD = ["zweihundert", "sieben", "neun"]


@pytest.mark.parametrize("translations", [ONE_WORD, ["x"] * 3, ["zwei hundert und noch eins"] * 3], ids=str)
@pytest.mark.parametrize("measure", [RAW_BLEU, LOWER_BLEU, tokenised_bleu("de")], ids=lambda m: m.form)
def test_bleu_of_references_without_four_tokens_is_undefined(measure, translations):
    scores = score(translations, ONE_WORD, [measure, CHRF], resamples=100)
    found = scores.first("BLEU")
    assert str(found) == "n/a" and found.undefined and found.value == scores.bleu == 0
    assert found.as_json()["value"] is None and found.as_json()["undefined"] == found.undefined
    assert scores.bleu_text == f"n/a ({found.undefined})" and scores.plotted_bleu != scores.plotted_bleu
    assert scores.lines()[0].startswith("BLEU n/a ") and scores.lines()[0].endswith(f"  undefined: {found.undefined}")
    assert "n/a" not in str(scores.first("chrF"))


def test_one_reference_of_four_tokens_defines_bleu():
    scores = score(["x"] * 3, ["a", "b", "a b c d"])
    assert str(scores.first("BLEU")) == "0.00" == scores.bleu_text and scores.plotted_bleu == 0
    assert score(["x"] * 2, ["a", "a b c"]).first("BLEU").undefined


def test_a_score_that_is_undefined_has_no_margin_in_json():
    values = Score("BLEU", "raw text", 0.0, "signature", "no reference has four tokens", 1.0, 0.5).as_json()
    assert (values["value"], values["margin"], values["interval"]) == (None, None, None)
    values = Score("BLEU", "raw text", 30.0, "signature", "", 31.0, 0.5).as_json()
    assert (values["value"], values["margin"], values["interval"]) == (30.0, 0.5, [30.5, 31.5])
