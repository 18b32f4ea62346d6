"""Engines without a model: one writes what a function says, and one answers as a table has it."""

from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import FORBIDDEN, PREFIX, REQUIRED, SPANS
from keras_transformer.text.road import Candidates, Engine
from keras_transformer.text.signatures import SignatureEngine


class Writer(Engine):
    """`write` returns the translation of a line, `alignment` the pairs of a line with it; None: it comes without."""

    name = "This writer"
    abilities = SPANS | {PREFIX, REQUIRED, FORBIDDEN}

    def __init__(self, write, alignment=None, **traits):
        self.write, self.alignment, self.asked = write, alignment, []
        vars(self).update(traits)

    def search(self, lines, asks, first_line):
        self.asked.extend(lines)
        return [Candidates([Translation(self.write(line), -1.0)]) for line in lines]

    def align(self, pairs, asks):
        return [self.alignment(line) if self.alignment else [] for line, _ in pairs]

    def are_too_long(self, lines):
        return [False] * len(lines)


def diagonal(line):
    return [(number, number) for number in range(len(line.split()))]


class Table(SignatureEngine):
    """An export that answers from a table, has the inputs of `defaults`, and keeps its calls."""

    def __init__(self, defaults=(("beam_size", 3), ("n_best", 1)), **answers):
        self.answers, self.calls, self.of_translate = answers, [], dict(defaults)

    def tells(self, name, output):
        return output in self.answers.get(name, {})

    def defaults(self, name):
        return self.of_translate if name in self.answers and name == "translate" else {}

    def call(self, name, columns):
        self.calls.append((name, columns))
        return self.answers[name]
