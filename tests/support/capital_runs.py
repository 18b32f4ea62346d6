"""A stand-in for a Translator, which writes text in capitals, as the run of `keras-transformer translate`."""

from keras_transformer.commands.translate import app
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.pieces.translation import Translation
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.documents import capitals


class Capitals:
    """Stands in for a Translator, and fails at the sentence that `fails_at` names."""

    name, abilities, languages = Translator.name, Translator.abilities, NO_LANGUAGES
    longer_than_trained, trained_tokens, fails_at = 0, 64, None

    def load(self, run, options, **settings):
        self.options, self.seen, self.batches = options, [], []
        return self

    def translate(self, lines, first_line=1, prefixes=None, protect="", **languages):
        self.batches.append(lines)
        if self.fails_at in lines:
            raise KeyboardInterrupt
        self.seen += lines
        begins = prefixes or [""] * len(lines)
        return [Translation(begin + capitals(line), -0.25) for begin, line in zip(begins, lines, strict=True)]

    def translate_n_best(self, lines, first_line, prefixes, protection=(), required=None, **languages):
        return [[each] for each in self.translate(lines)]

    def told(self, ask):
        return ask

    def are_too_long(self, lines):
        return [False] * len(lines)


def capital_run(folder, monkeypatch):
    """A Capitals, which is what any run opens as, with the run FOLDER/run."""
    model = Capitals()
    monkeypatch.setattr(Translator, "load", model.load)
    (folder / "run").mkdir()
    (folder / "run" / "model.weights.h5").write_bytes(b"weights")
    model.path = str(folder / "run")
    return model


def translate(run, *arguments, stdin=b""):
    """What `keras-transformer translate` of the run does."""
    return invoke(app, run.path, *map(str, arguments), stdin=stdin)
