"""Models in CTranslate2's format, opened by CTranslate2 itself, and sentences as it takes them."""

from export.ctranslate2 import convert
from tests.support.peers import Peer

ctranslate2 = Peer("ctranslate2")


def exported(transformer, tokenizer, folder):
    folder.mkdir()
    convert.write_model(transformer, tokenizer, folder)
    return ctranslate2.Translator(str(folder))


def pieces_of(tokenizer, lines):
    pieces = tokenizer.pieces()
    return [[pieces[i] for i in tokenizer.encode(line)] for line in lines]
