"""Codes of languages: how BLEU finds words in their text."""

import json
import pathlib

import pytest

from keras_transformer.inspection.bleu import all_measures, has_rules, score
from keras_transformer.pieces.languages import SHORT_CODES, moses_code, short_code, tokenizer_of, warn_of_unspaced

CHINESE = ["猫坐在垫子上看着窗外的鸟。", "他昨天去了市场买苹果。"]
THAI = ["แมวนั่งอยู่บนเสื่อ", "เขาไปตลาดเมื่อวานนี้"]


@pytest.mark.parametrize(
    "tokenizer, languages",
    [
        ("zh", "zh zho chi cmn yue lzh zh-TW zh_CN ZH_cn cmn_Hans zho_Hant zh-Hans-CN yue_Hant vie_Hani"),
        ("char", "ja jpn th tha khm mya bur lao bod tib dzo jpn_Jpan ja-Hani tha_Thai mya_Mymr shn_Mymr bod_Tibt"),
        ("13a", "de deu deu_Latn ko kor_Hang zh-Latn cmn_Latn ja_Latn hin_Deva sr-Cyrl"),
    ],
)
def test_a_code_of_any_iso_standard_with_or_without_a_script_tells_how_words_are_found(tokenizer, languages):
    assert {tokenizer_of(language) for language in languages.split()} == {tokenizer}
    assert tokenizer_of("") == "13a"


def test_all_codes_of_a_language_give_the_same_bleu():
    translations = ["猫坐在垫子上看着窗外的小鸟。", "他昨天去市场买了苹果。"]
    bleu = [score(translations, CHINESE, all_measures(code)).bleu for code in ("zh", "zho", "cmn_Hans", "zho_Hans")]
    assert bleu == pytest.approx([68.51] * 4, abs=0.01)


def test_moses_has_the_rules_of_a_language_by_each_of_its_codes():
    assert {moses_code(code) for code in ("de", "DE", "deu", "ger", "de-AT", "deu_Latn")} == {"de"}
    assert all(has_rules(code) for code in ("deu", "fra_Latn", "en-GB")) and not has_rules("xx")
    measures = [all_measures(code)[2] for code in ("de", "deu_Latn")]
    assert len({measure.form for measure in measures}) == 1
    assert len({tuple(measure.texts(["z. B. am 3. Mai, ca. 5 Uhr."])) for measure in measures}) == 1


def test_the_codes_of_a_language_are_those_of_the_standard():
    """As Debian's package iso-codes has them."""
    path = pathlib.Path("/usr/share/iso-codes/json/iso_639-3.json")
    if not path.exists():
        pytest.skip("the package iso-codes is not installed")
    languages = [each for each in json.loads(path.read_text("utf-8"))["639-3"] if "alpha_2" in each]
    names = [(each["alpha_2"], name) for each in languages for name in (each["alpha_3"], each.get("bibliographic"))]
    assert all(short_code(name) == short for short, name in names if name) and len(languages) == 184
    assert {short for short, _ in names} == set(SHORT_CODES.values()) and short_code("nds") == "nds"
    assert (moses_code("tet"), moses_code("mni"), moses_code("ory"), moses_code("lvs")) == ("tdt", "mni", "or", "lv")


@pytest.mark.parametrize("references", [CHINESE, THAI, [*CHINESE, "OK"]])
def test_references_without_spaces_are_warned_of_if_the_code_does_not_tell(references, caplog):
    warn_of_unspaced(references, "target")
    assert "'target'" in caplog.text and "data.target_language" in caplog.text


def test_a_text_of_which_half_has_no_spaces_is_warned_of(caplog):
    warn_of_unspaced([f"{CHINESE[0][:5]} abcdef"], "target")
    assert not caplog.text
    warn_of_unspaced([f"{CHINESE[0][:5]} abcde"], "target")
    assert "50 per cent" in caplog.text


def test_references_with_spaces_or_with_the_right_code_are_not_warned_of(caplog):
    warn_of_unspaced(CHINESE, "cmn_Hans")
    for references in (["Ein Hund läuft."], ["neuntausendneunhundert"], ["고양이가 앉아 있다."], ["", " "], []):
        warn_of_unspaced(references, "")
    assert not caplog.text
