"""Sample translations as Markdown: what changed is marked, the worst and the best are beside the fixed ones."""

import math
import types

import pytest
import sacrebleu
from tensorboard.plugin_util import markdown_to_safe_html

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.inspection.callbacks import BleuScore, SampleTranslations
from keras_transformer.inspection.markdown import escaped, samples_table
from keras_transformer.inspection.samples import Sample, changes, inspected_table
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from tests.support.sentences import REFERENCES, TRANSLATIONS

FIRST = [
    Sample("one", "ein Hund", "Katze"),
    Sample("two", "zwei Hunde", "zwei Katzen"),
    Sample("three", "drei Hunde", "drei Hunde"),
    Sample("four", "vier Hunde", "xyz"),
]
SECOND = [
    sample._replace(translation=text)
    for sample, text in zip(FIRST, ["ein Hund", "zwei rote Katzen", "drei Hunde", "xyz"], strict=True)
]


def rows_of(text):
    """The cells of the rows of the table at the end of a text, without its heads."""
    return [line.strip("| ").split(" | ") for line in text.split("\n\n")[-1].splitlines()[2:]]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("ein Hund", "ein Hund", "ein Hund"),
        ("ein Hund", "ein roter Hund", "ein **roter** Hund"),
        ("ein Hund läuft", "der Hund rennt", "**der** Hund **rennt**"),
        ("a red dog runs", "a dog ran", "a *[−red]* dog **ran**"),
        ("", "ein Hund", "**ein Hund**"),
        ("ein Hund", "", "*[−ein Hund]*"),
        ("", "", ""),
        ("a", "a * b_c", r"a **\* b\_c**"),
    ],
)
def test_new_words_are_bold_and_words_left_out_are_in_brackets(before, now, expected):
    assert changes(before, now) == expected


def test_the_first_sentences_come_with_the_worst_and_the_best_one_each_with_its_chrf():
    rows = rows_of(inspected_table(FIRST, None, shown=2))
    assert [row[1] for row in rows] == ["one", "two", "four", "three"]
    assert (rows[2][0], rows[3][0]) == ("worst: 0.0", "best: 100.0")
    assert 0 < float(rows[1][0]) < 100


def test_of_equally_good_sentences_the_first_is_the_worst_and_the_best():
    rows = rows_of(inspected_table(SECOND[2:3] * 3, None, shown=1))
    assert [row[0] for row in rows] == ["100.0", "worst: 100.0", "best: 100.0"]


def test_only_what_changed_is_marked_in_the_worst_and_the_best_too():
    cells = [row[3] for row in rows_of(inspected_table(SECOND, FIRST, shown=3))]
    assert cells == ["**ein Hund**", "zwei **rote** Katzen", "drei Hunde", "xyz", "**ein Hund**"]
    assert "**" not in inspected_table(SECOND, None, shown=3)


@pytest.mark.parametrize("text", ["a|b", "**a** _b_ `c` [d](e)", "<b>x</b> <unk>", r"\| a \\", "AT&T &lt;", "x\ny"])
def test_tensorboard_shows_a_text_as_it_is_whatever_is_in_it(text):
    table = samples_table([("source", "reference", text)])
    html = markdown_to_safe_html(table)
    assert html.count("<td>") == 3 and not {"<strong>", "<em>", "<code>", "<a"} & set(html.split())
    shown = html.split("<td>")[3].split("</td>")[0]
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    assert shown == text.replace("\n", " ")


def test_tensorboard_shows_marks_as_bold_and_emphasis():
    before, now = ([Sample("s", "r", text)] for text in ("a red dog", "a dog „ran“"))
    html = markdown_to_safe_html(inspected_table(now, before, shown=1))
    assert "a <em>[−red]</em> dog <strong>„ran“</strong>" in html


def test_a_sample_is_one_row_of_three_cells_whatever_is_in_it():
    table = samples_table([Sample("a|b", "c", "d\ne\r\nf")])
    assert table.splitlines()[2:] == [r"| a\|b | c | d e f |"]
    assert escaped('plain words, as they\'re: 1.5 "x"!') == 'plain words, as they\'re: 1.5 "x"!'


# the callbacks


def epoch_with(pair, references, translations):
    """The logs of an epoch, and the BleuScore that adds to them, of a model that translates so."""
    bleu, logs = BleuScore(*pair, [("source", reference) for reference in references]), {"loss": 1.0}
    found = [types.SimpleNamespace(text=text) for text in translations]
    bleu.translator = types.SimpleNamespace(translate=lambda sources: found, languages=NO_LANGUAGES)
    bleu.on_epoch_end(0, logs)
    return logs, bleu


def test_the_logs_of_an_epoch_get_sacrebleus_bleu_and_chrf(pair):
    logs, bleu = epoch_with(pair, REFERENCES, TRANSLATIONS)
    expected = [metric(TRANSLATIONS, [REFERENCES]).score for metric in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf)]
    assert list(logs) == ["loss", "val_bleu", "val_chrf"] and expected[0] != expected[1]
    assert [logs["val_bleu"], logs["val_chrf"]] == pytest.approx(expected)
    assert bleu.samples[1] == Sample("source", REFERENCES[1], TRANSLATIONS[1])


def test_bleu_of_references_without_four_tokens_is_no_number_that_could_be_the_best(pair):
    logs, _ = epoch_with(pair, ["neun", "zwei"], ["neun", "drei"])
    assert math.isnan(logs["val_bleu"]) and 0 < logs["val_chrf"] < 100


def test_references_without_spaces_are_warned_of_unless_the_language_tells(pair, caplog):
    pairs = [("two", "\u6211\u5f88\u559c\u6b22\u8fd9\u53ea\u9ed1\u732b\u3002")]
    BleuScore(*pair, pairs, language="zh")
    BleuScore(*pair, [("two", "zwei")])
    assert not caplog.messages
    BleuScore(*pair, pairs)
    assert [message for message in caplog.messages if "of a script without spaces" in message]


def test_a_score_of_nothing_is_refused(pair):
    with pytest.raises(ConfigError, match="at least one"):
        BleuScore(*pair, [])


class Written(list):
    """Stands for a MetricsLog."""

    def write(self, step, values):
        self.append((step, values["validation/samples"]))


def test_each_inspection_is_compared_with_the_one_before_and_the_first_of_a_process_with_none():
    """After a resumption too: what an earlier process translated is not read again."""
    bleu, log = types.SimpleNamespace(samples=FIRST), Written()
    inspection = SampleTranslations(bleu, log, shown=1)
    inspection.inspect(1_000)
    bleu.samples = SECOND
    inspection.inspect(2_000)
    inspection.inspect(3_000)
    SampleTranslations(bleu, log, shown=1).inspect(4_000)
    (_, first), (_, second), (_, third), (step, resumed) = log
    assert first == inspected_table(FIRST, None, 1)
    assert "step 1,000" in second.splitlines()[0] and "**ein Hund**" in rows_of(second)[0]
    assert "step 2,000" in third.splitlines()[0] and rows_of(third)[0][3] == "ein Hund"
    assert step == 4_000 and resumed == inspected_table(SECOND, None, 1)


def test_samples_before_any_translation_are_one_sentence():
    with pytest.raises(UserError, match="after the BleuScore"):
        SampleTranslations(types.SimpleNamespace(samples=None), Written()).inspect(0)


def test_a_word_that_is_frequent_in_a_long_text_is_compared_too():
    some = " ".join(["a"] * 150)
    assert changes(f"{some} x {some}", f"{some} y {some}") == f"{some} **y** {some}"
