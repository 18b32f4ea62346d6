"""Scores by another program: the files that it is given, the numbers that it prints, what it may do wrong."""

import json
import pathlib

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.samples import Sample
from train.scoring.metric_command import LONGEST_SHOWN, MetricCommand, MetricError, ProgramScore, shortened

SAMPLES = [Sample("one", "eins", "ein\ns"), Sample("two", "zwei", "zwei")]


@pytest.fixture
def program(tmp_path):
    """A function from a script of sh to a --metric-command that runs it, with the files as $1, $2 and $3."""

    def write(script, *arguments):
        path = tmp_path / "metric.sh"
        path.write_text(script + "\n", encoding="utf-8")
        return MetricCommand(" ".join(["sh", str(path), *arguments]))

    return write


def test_the_program_reads_source_translations_and_references_line_by_line(program):
    metric = program("""cat $1 > "$0.read"; cat $2 $3 >> "$0.read"; echo '{"first": 1, "second": 0.5}'""")
    assert metric.score(SAMPLES) == [
        ProgramScore("first", 1.0, metric.text),
        ProgramScore("second", 0.5, metric.text),
    ]
    read = pathlib.Path(f"{metric.words[1]}.read").read_text(encoding="utf-8")
    assert read == "one\ntwo\n" + "ein s\nzwei\n" + "eins\nzwei\n"


def test_others_are_scored_by_the_same_program_and_files_stand_where_the_command_has_them(program):
    (score,) = program("wc -w < $1", "{translations}").score(SAMPLES, ["eins", "zwei drei vier"])
    assert (score.value, score.other) == (3.0, 4.0)
    assert score.line().startswith("sh 3.0000 (other 4.0000)  by sh ")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo no memory >&2; echo no GPU >&2; exit 3", "failed with exit code 3: no GPU$"),
        ("exit 4", "exit code 4: it wrote nothing"),
        ("echo score: 0.8", "for each of 2 sentences; it printed score: 0.8"),
        ("""echo '{"a": "b"}'""", "it printed"),
        ("""echo '{"a": NaN}'""", "it printed"),
        (f"""echo '{{"a": 1{400 * "0"}}}'""", "it printed"),
        ("""echo '{"a": true}'""", "it printed {"),
        ("""echo '{"a": 1, "b": "c"}'""", "it printed {"),
        ("echo '{}'", "it printed {}$"),
        ("echo 1; echo 2; echo 3", "it printed 1 2 3"),
        ("echo 1; echo nan", "it printed 1 nan"),
        ("true", "it printed nothing"),
    ],
)
def test_a_program_that_gives_no_scores_is_one_sentence(program, script, sentence):
    metric = program(script)
    with pytest.raises(MetricError, match=f"^--metric-command {metric.text} .*{sentence}"):
        metric.score(SAMPLES)


def test_numbers_are_an_object_or_one_or_one_per_sentence_of_which_the_mean_is_taken():
    metric = MetricCommand("sh -c true")
    assert metric.read(json.dumps({"a": 1, "b": 0.5}), 2) == {"a": 1.0, "b": 0.5}
    assert metric.read("0.25\n", 2) == {"sh": 0.25}
    assert metric.read("0.25\n\n0.75\n", 2) == {"sh": 0.5}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ": there is no program ''"),
        ("no-such-program-anywhere -x", ": there is no program 'no-such-program-anywhere'"),
        ("'unclosed", " cannot be divided into words: No closing quotation"),
    ],
)
def test_a_program_that_is_not_there_is_refused_before_the_work(text, why):
    with pytest.raises(ConfigError, match=f"^--metric-command {text}{why}"):
        MetricCommand(text)


def test_a_program_that_cannot_be_started_is_one_sentence(tmp_path):
    (tmp_path / "metric").write_bytes(b"\x7fELF and nothing more")
    (tmp_path / "metric").chmod(0o755)
    with pytest.raises(MetricError, match=f"--metric-command {tmp_path}/metric cannot be started: Exec format error"):
        MetricCommand(f"{tmp_path}/metric").score(SAMPLES)


def test_of_a_long_text_the_beginning_is_shown():
    assert shortened(" a\nb ") == "a b"
    assert (shortened("x" * LONGEST_SHOWN), shortened("x" * LONGEST_SHOWN + "y")) == (
        "x" * LONGEST_SHOWN,
        "x" * LONGEST_SHOWN + "...",
    )
