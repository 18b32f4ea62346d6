"""What one changed character does: each change changes a sentence, and the rules of a tokenizer undo it."""

import types

import pytest

from benchmarks.recipes.changed_characters import changes, normalising, table
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from tests.support.places import ROOT
from tests.support.texts import SENTENCES

SOURCES = [sentence for sentence in SENTENCES[:4] if " " in sentence]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """One of a run of before there were rules, and the same with the rules of "nfc" and "nfkc"."""
    folder = tmp_path_factory.mktemp("tokenizers")
    train_tokenizer(SENTENCES, folder / "own.model", 400, normalization="identity")
    own = Tokenizer(folder / "own.model")
    return {"identity": own} | {name: normalising(own.model_bytes, name, folder) for name in ("nfc", "nfkc")}


def test_the_rules_change_neither_pieces_nor_ids(tokenizers):
    own, *others = tokenizers.values()
    for name, tokenizer in zip(("nfc", "nfkc"), others, strict=True):
        assert tokenizer.normalization == name and tokenizer.pieces() == own.pieces()
        assert tokenizer.encode_batch(SENTENCES) == own.encode_batch(SENTENCES)


def test_each_change_is_another_text_that_the_rules_read_as_the_plain_one(tokenizers):
    for change in changes():
        for source in SOURCES:
            plain = change.plain(source)
            for character in change.characters:
                changed = change.changed(source, character)
                assert changed != plain
                read = {name for name, one in tokenizers.items() if one.encode(changed) == one.encode(plain)}
                names = {"nfkc"} if "full-width" in change.name else {"nfc", "nfkc"}
                if character == SPACE:  # SentencePiece's own sign
                    names = set(tokenizers)
                assert read == names, (change.name, hex(ord(character[0])))


def test_the_page_has_the_rows_of_the_table(tokenizers):
    def translator(tokenizer):
        def translate(lines):
            return [types.SimpleNamespace(text=tokenizer.decode(tokenizer.encode(line))) for line in lines]

        return types.SimpleNamespace(tokenizer=tokenizer, translate=translate)

    copying = {name: translator(tokenizer) for name, tokenizer in tokenizers.items()}
    head, line, none, *rows, note = table(copying, SOURCES, SOURCES)
    page = (ROOT / "benchmarks" / "results" / "changed_characters.md").read_text(encoding="utf-8")
    assert f"{head}\n{line}\n" in page and note.strip() in page
    assert none.count("100.00") == 3
    for row in rows:
        assert "|".join(row.split("|")[:3]) in page
