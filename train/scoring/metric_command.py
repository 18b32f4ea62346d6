"""Scores by another program, such as COMET: it is given files, and what it prints are the numbers."""

import math
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.ground.files import on_one_line
from keras_transformer.ground.notations import json_of
from keras_transformer.inspection.samples import Sample

FILES = ("source", "translations", "references")  # each of which {NAME} in the command stands for
LONGEST_SHOWN = 200  # characters of what the program wrote


class ProgramScore(NamedTuple):
    """A number that a program gave for the translations, and for those that they are compared with."""

    name: str
    value: float
    command: str
    other: float | None = None

    def line(self) -> str:
        """What a person reads."""
        other = "" if self.other is None else f" (other {self.other:.4f})"
        return f"{self.name} {self.value:.4f}{other}  by {self.command}"


class MetricError(UserError):
    """A program that gave no scores; the message says which, what it did and what it should do."""


class MetricCommand:
    """A program that scores translations.

    text: the command, divided into words as by a shell, in which {source}, {translations} and {references} stand for
    files with a sentence per line. Without them, the three files are its last arguments, in this order. It prints a
    JSON object from names to numbers, or one number for all sentences, or one per sentence, of which the mean is taken.

    Raises ConfigError if there is no such program.
    """

    def __init__(self, text: str):
        self.text = text
        try:
            self.words = shlex.split(text)
        except ValueError as error:
            raise ConfigError(f"--metric-command {text} cannot be divided into words: {error}.") from None
        if not self.words or not shutil.which(self.words[0]):
            raise ConfigError(
                f"--metric-command {text}: there is no program {self.words[0] if self.words else text!r}."
            )
        if not any(f"{{{name}}}" in word for word in self.words for name in FILES):
            self.words += [f"{{{name}}}" for name in FILES]

    def score(self, samples: Sequence[Sample], others: Sequence[str] | None = None) -> list[ProgramScore]:
        """Run the program on translations, and on other ones of the same sentences if there are any.

        Raises MetricError if it fails or prints something else.
        """
        numbers = self.numbers(samples)
        theirs = {}
        if others is not None:
            pairs = zip(samples, others, strict=True)
            theirs = self.numbers([sample._replace(translation=text) for sample, text in pairs])
        return [ProgramScore(name, value, self.text, theirs.get(name)) for name, value in numbers.items()]

    def numbers(self, samples: Sequence[Sample]) -> dict[str, float]:
        """The numbers that the program prints for these translations, by name."""
        sources, references, translations = zip(*samples, strict=True)
        with tempfile.TemporaryDirectory() as folder:
            words = self.words
            for name, lines in zip(FILES, (sources, translations, references), strict=True):
                path = pathlib.Path(folder) / f"{name}.txt"
                path.write_text("".join(f"{on_one_line(line)}\n" for line in lines), encoding="utf-8")
                words = [word.replace(f"{{{name}}}", str(path)) for word in words]
            try:
                result = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace")
            except OSError as error:
                raise MetricError(f"--metric-command {self.text} cannot be started: {error.strerror}.") from None
        if result.returncode:
            last = next(reversed(result.stderr.strip().splitlines()), "it wrote nothing to standard error")
            raise MetricError(
                f"--metric-command {self.text} failed with exit code {result.returncode}: {shortened(last)}"
            )
        return self.read(result.stdout, len(samples))

    def read(self, output: str, sentences: int) -> dict[str, float]:
        """The numbers in what the program printed about so many sentences. Raises MetricError if there are none."""
        name = pathlib.Path(self.words[0]).name
        try:
            numbers = json_of(output)
            if isinstance(numbers, dict) and numbers and all(map(is_number, numbers.values())):
                return {str(key): float(value) for key, value in numbers.items()}
        except ValueError:
            pass
        try:
            values = [float(line) for line in output.split("\n") if line.strip()]
        except ValueError:
            values = []
        if len(values) in (1, sentences) and all(map(math.isfinite, values)):
            return {name: statistics.fmean(values)}
        raise MetricError(
            f"--metric-command {self.text} must print a JSON object from names to numbers, or one number, or one for "
            f"each of {sentences:,} sentences; it printed {shortened(output) or 'nothing'}"
        )


def is_number(value: object) -> bool:
    """Whether a value of JSON is a number that a float can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def shortened(text: str) -> str:
    """A text on one line, its beginning if it is long."""
    text = on_one_line(text.strip())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
