"""A file of target prefixes beside the lines of the input."""

import pytest

from keras_transformer.commands.target_prefixes import TargetPrefixes
from keras_transformer.commands.translate import app
from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke


class Short:
    """Stands in for a Translator: prefixes have at most 9 characters."""

    def check_prefix(self, text):
        if len(text) > 9:
            raise InputError(f"The prefix {text!r} is too long.")


@pytest.fixture
def write(tmp_path):
    def write(text):
        (tmp_path / "prefixes.txt").write_text(text, encoding="utf-8")
        return tmp_path / "prefixes.txt"

    return write


def test_each_line_has_the_prefix_of_its_line(write):
    prefixes = TargetPrefixes("", write("Die \n\nEi\r\n x\n\n"))
    assert list(prefixes.beside(iter("abcde"), Short())) == list("abcde")
    assert prefixes.of_next(2) + prefixes.of_next(0) + prefixes.of_next(3) == ["Die ", "", "Ei", " x", ""]


def test_a_prefix_is_read_when_its_line_is():
    prefixes = TargetPrefixes("", "/dev/null")
    prefixes._of_file = iter(["a", "b"])
    lines = prefixes.beside(iter("xyz"), Short())
    assert next(lines) == "x" and prefixes.of_next(1) == ["a"]
    assert next(lines) == "y" and prefixes.of_next(1) == ["b"]


def test_one_prefix_is_that_of_every_line_and_none_that_of_no_line():
    for prefix, expected in (("Die", ["Die", "Die"]), ("", None)):
        prefixes = TargetPrefixes(prefix, None)
        assert list(prefixes.beside(iter("ab"), Short())) == ["a", "b"] and prefixes.of_next(2) == expected


@pytest.mark.parametrize(
    "text, lines, sentence",
    [
        ("Die\n", "a", "has 1 lines, and the input has more"),
        ("", "", "has 0 lines, and the input has more"),
        ("1\n2\n3\n4\n", "abc", "has more than 3 lines, and the input has 3"),
        ("1\nfar too long\n3\n", "a", "line 2: The prefix 'far too long' is too long."),
    ],
)
def test_prefixes_that_do_not_fit_are_one_sentence_after_the_lines_before(write, text, lines, sentence):
    seen = []
    with pytest.raises(InputError) as raised:
        for line in TargetPrefixes("", write(text)).beside(iter("abc"), Short()):
            seen.append(line)
    assert sentence in str(raised.value) and "prefixes.txt" in str(raised.value)
    assert seen == list(lines)


def test_a_prefix_for_all_and_a_file_contradict_each_other(write):
    with pytest.raises(ConfigError, match="contradict each other"):
        TargetPrefixes("y", write("x\n"))


@pytest.mark.slow
def test_a_line_with_its_prefix_is_translated_as_alone(eager, random_folder, write):
    def translate(text, *arguments):
        return invoke(app, random_folder, "--scores", "--beam-size", 2, "--extra-length", 4, *arguments, stdin=text)

    lines, prefixes = ["the fox", "", "a dog runs", "the cat"], ["the ", "a", "", "Zwei M"]
    source, path = "".join(f"{line}\n" for line in lines).encode(), write("\n".join(prefixes) + "\n")
    together = translate(source, "--target-prefixes", path)
    translator = Translator.load(random_folder, SearchOptions(2, extra_length=4))
    for line, prefix, output in zip(lines, prefixes, together.stdout.splitlines(), strict=True):
        (alone,), (score, text) = translator.translate([line], prefixes=[prefix]), output.split("\t")
        assert text == alone.text and float(score) == pytest.approx(alone.score, abs=2e-4)
        assert text.startswith(prefix) if line else text == ""
    too_few = translate(source, "--target-prefixes", write("the \n\n"))
    assert too_few.exit_code == 1 and too_few.stdout.splitlines() == together.stdout.splitlines()[:2]
    assert too_few.stderr.startswith("Error: ") and too_few.stderr.count("\n") == 1
    missing = translate(source, "--target-prefixes", path.with_name("none.txt"))
    assert (missing.exit_code, missing.stdout) == (1, "") and "none.txt: No such file" in missing.stderr
    with pytest.raises(InputError, match="has [0-9]+ tokens"):
        translator.check_prefix("x" * 999)
