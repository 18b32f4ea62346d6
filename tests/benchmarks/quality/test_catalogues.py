"""BLEU on catalogues: which messages count, and what the table says of them."""

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.quality.catalogues import Messages, read, table
from keras_transformer.pieces.translation import Translation
from train.data.software.split import AlignedText

ENTRIES = [("_Open %s", "%s öffnen"), ("A new file", "Neue Datei"), ("A new file", ""), ("100 %", "100 %")]
ENTRIES += [("Save 3 files", "3 Dateien speichern"), ("Other words", "Datei drei")] + [
    (f"Row {n} x{n}y", f"Zeile {n} z{n}") for n in "abc"
]


def catalogue(path):
    entries = [f'msgctxt "{n}"\nmsgid "{source}"\nmsgstr "{target}"\n' for n, (source, target) in enumerate(ENTRIES)]
    path.write_text('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + "\n".join(entries))
    return path


def test_messages_are_those_with_letters_each_once_and_none_of_the_training(tmp_path):
    known = [AlignedText("Save 12 files!", "x", ""), AlignedText("y", "DATEI drei.", "")]
    found = read(catalogue(tmp_path / "de.po"), known, 99)
    assert found.near == 2 and found.name == "de.po"
    assert [pair[:2] for pair in found.pairs] == [
        ("Open %s", "%s öffnen"),
        ("A new file", "Neue Datei"),
        *ENTRIES[-3:],
    ]
    assert read(tmp_path / "de.po", known, 3).pairs == found.pairs[::2]
    assert read(tmp_path / "de.po", [], 99).near == 0


def test_the_table_has_each_catalogue_and_all_together():
    class Same:
        """Translates every other message as its reference is."""

        def translate(self, lines):
            return [
                Translation(line.upper() if number % 2 == 0 else "nothing of it", 0.0)
                for number, line in enumerate(lines)
            ]

    def messages(name, count):
        pairs = [
            AlignedText(f"{name} has {n} words here", f"{name} has {n} words here".upper(), name) for n in range(count)
        ]
        return Messages(name, pairs, count)

    header, line, a, b, both, signature = "\n".join(table(Same(), [messages("a", 1), messages("b", 2)], "de")).split(
        "\n\n"
    )[0].split("\n") + ["x"]
    assert (
        a.startswith("| a | 1 | 1 | 100.00 ") and b.startswith("| b | 2 | 2 |") and both.startswith("| all | 3 | 3 |")
    )
    assert line.count("|") == header.count("|") == a.count("|") == 6


def test_a_catalogue_of_which_no_message_is_left_has_no_scores():
    class Copies:
        def translate(self, lines):
            return [Translation(line, 0.0) for line in lines]

    nothing = Messages("a", [], 3)
    _, _, of_nothing, *others = table(Copies(), [nothing, Messages("b", [AlignedText("x y", "x y", "b")], 1)], "de")
    assert of_nothing == "| a | 0 | 3 | | |" and others[1].startswith("| all | 1 | 4 | ")
    with pytest.raises(BenchmarkError, match="^a, a: no translated message is left"):
        list(table(Copies(), [nothing, nothing], "de"))
