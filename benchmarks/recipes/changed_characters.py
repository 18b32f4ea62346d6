"""`python -m benchmarks.recipes.changed_characters RUN`: what one changed character does to a translation.

The run is measured with its own tokenizer, and with the same pieces and ids behind the rules of "nfc" and "nfkc".
"""

import pathlib
import statistics
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import typer

from benchmarks.multi30k import lines_of, text_of
from keras_transformer.commands.console import command_app, exit_codes
from keras_transformer.inspection.bleu import raw_bleu, score_by
from keras_transformer.pieces.normalization import INVISIBLE, JOINERS, NFC, NFKC, SPACES, STYLES, members
from keras_transformer.pieces.tokenizer import SPECIAL_IDS, Tokenizer, model_proto, train_tokenizer
from keras_transformer.runs.saved_run import load_run
from keras_transformer.translation.translator import Translator

TEXT, LANGUAGE = "test_2016_flickr", "de"


class Change(NamedTuple):
    """One character that each sentence gets. `plain`: the sentence that it should be read as."""

    name: str
    characters: list[str]
    changed: Callable[[str, str], str]
    plain: Callable[[str], str] = str


class Effect(NamedTuple):
    """Of the translations after a change: the share that differs, their mean BLEU, and the lowest of a character."""

    share: float
    bleu: float
    lowest: float
    worst: str

    def __str__(self) -> str:
        lowest = f" ({self.lowest:.2f} for {self.worst})" if self.bleu - self.lowest >= 0.01 else ""
        return f"{self.share:.1%} | {self.bleu:.2f}{lowest}"


def middle_space(sentence: str, character: str) -> str:
    """The sentence with another character as the space in its middle."""
    words = sentence.split(" ")
    half = len(words) // 2
    return f"{' '.join(words[:half])}{character}{' '.join(words[half:])}"


def in_longest_word(sentence: str, character: str, without: int = 0) -> str:
    """The sentence with a character in the middle of its longest word, in place of the `without` letters there."""
    word = max(sentence.split(" "), key=len)
    half = len(word) // 2
    return sentence.replace(word, word[:half] + character + word[half + without :], 1)


def full_width(sentence: str, _: str) -> str:
    """The sentence with the letter in the middle of its longest word in full width."""
    word = max(sentence.split(" "), key=len)
    letter = word[len(word) // 2]
    return in_longest_word(sentence, chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter, without=1)


def accented(sentence: str, form: str = "NFC") -> str:
    """The sentence with an acute accent on its first e, a or o, in a normal form of Unicode."""
    place = min((place for place in map(sentence.find, "eao") if place >= 0), default=-1) + 1
    return unicodedata.normalize(form, sentence[:place] + "\u0301" * (place > 0) + sentence[place:])


def changes() -> list[Change]:
    """All changes of the table."""
    spaces = sorted(set(members(SPACES)) - {" "})
    controls = [character for character in members(INVISIBLE) if unicodedata.category(character) == "Cc"]
    formats = [character for character in members(INVISIBLE) if character not in controls]
    return [
        Change("another space in place of a space", spaces, middle_space),
        Change("two spaces in place of one", ["  "], middle_space),
        Change("a space at the end", [" "], lambda sentence, space: sentence + space),
        Change("a no-break space at the beginning", ["\xa0"], lambda sentence, space: space + sentence),
        Change("a byte order mark at the beginning", ["\ufeff"], lambda sentence, mark: mark + sentence),
        Change("an invisible format character in a word", formats, in_longest_word),
        Change("a control character in a word", controls, in_longest_word),
        Change("a joiner, a non-joiner or an emoji's selector in a word", list(JOINERS + STYLES), in_longest_word),
        Change(
            "NFD in place of NFC, of a letter with an accent", ["\u0301"], lambda s, _: accented(s, "NFD"), accented
        ),
        Change("a full-width letter", ["\uff41"], full_width),
    ]


def normalising(own: bytes, normalization: str, folder: str) -> Tokenizer:
    """The tokenizer of a SentencePiece model with its pieces and ids, and the rules of a normalization."""
    proto, path = model_proto(own), pathlib.Path(folder) / "tokenizer.model"
    fewest = len(SPECIAL_IDS) + 256 + 2
    prefix = proto.normalizer_spec.add_dummy_prefix
    train_tokenizer(["a a"], path, fewest, dummy_prefix=prefix, normalization=normalization)
    proto.normalizer_spec.CopyFrom(model_proto(path.read_bytes()).normalizer_spec)
    path.write_bytes(proto.SerializeToString())
    return Tokenizer(path)


class Cached:
    """A Translator that translates lines of the same ids once."""

    def __init__(self, translator: Translator):
        self.translator, self.texts = translator, {}

    def __call__(self, lines: list[str]) -> list[str]:
        keys = list(map(tuple, self.translator.tokenizer.encode_batch(lines)))
        missing = {key: line for key, line in zip(keys, lines, strict=True) if key not in self.texts}
        translations = self.translator.translate(missing.values())
        self.texts |= {key: found.text for key, found in zip(missing, translations, strict=True)}
        return [self.texts[key] for key in keys]


def effect_of(change: Change, translate: Cached, sources: list[str], references: list[str]) -> Effect:
    """What a change does to the translations of the sentences, over all its characters."""
    plain, shares, scores = translate(list(map(change.plain, sources))), [], {}
    for character in change.characters:
        texts = translate([change.changed(source, character) for source in sources])
        shares.append(sum(text != before for text, before in zip(texts, plain, strict=True)) / len(texts))
        scores[f"U+{ord(character[0]):04X}"] = score_by(raw_bleu(LANGUAGE), texts, references).value
    worst = min(scores, key=scores.get)
    return Effect(statistics.mean(shares), statistics.mean(scores.values()), scores[worst], worst)


def table(translators: dict[str, Translator], sources: list[str], references: list[str]) -> Iterator[str]:
    """The lines of the table: per change and tokenizer the share of other translations and their BLEU."""
    heads = "".join(f' other, "{name}" | BLEU |' for name in translators)
    yield f"| change | characters |{heads}"
    yield f"|---|---:|{'---:|---|' * len(translators)}"
    cached = list(map(Cached, translators.values()))
    unchanged = [score_by(raw_bleu(LANGUAGE), translate(sources), references) for translate in cached]
    yield f"| none | |{''.join(f' | {score.value:.2f} |' for score in unchanged)}"
    for change in changes():
        effects = [effect_of(change, translate, sources, references) for translate in cached]
        yield f"| {change.name} | {len(change.characters)} | {' | '.join(map(str, effects))} |"
    yield f"\nBLEU is `{unchanged[0].signature}`."


app = command_app()


@app.command()
def main(
    run: Annotated[pathlib.Path, typer.Argument(help="The folder of a run from English to German.")],
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    sentences: Annotated[int, typer.Option(min=1, help="The first sentences of the test set of 2016.")] = 200,
) -> None:
    """Change one character in each sentence, translate, and print a table."""
    with exit_codes(), tempfile.TemporaryDirectory() as folder:
        sources, references = (lines_of(text_of(data, f"{TEXT}.{side}"))[:sentences] for side in ("en", LANGUAGE))
        model, own = load_run(run)
        tokenizers = {own.normalization: own}
        for name in (NFC, NFKC):
            tokenizers.setdefault(name, normalising(own.model_bytes, name, folder))
        translators = {name: Translator(model, tokenizer) for name, tokenizer in tokenizers.items()}
        for line in table(translators, sources, references):
            print(line, flush=True)


if __name__ == "__main__":
    app()
