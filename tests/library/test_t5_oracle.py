"""T5, T5 1.1, mT5 and MADLAD-400 compute, divide text and translate as in transformers: random weights."""

import functools
import json

import numpy as np
import pytest
import sentencepiece

from keras_transformer.ground.tokens import EOS, PAD, UNK
from tests.support.imported import Both, hard_lines
from tests.support.marian import lines
from tests.support.peers import Peer, needs
from tests.support.runs import SENTENCES
from tests.support.t5 import BYT5, KINDS, MADLAD, MT5, STRONG, T5, V11, pieces_of, spm, t5_folder

pytestmark = [pytest.mark.release, needs("transformers", "torch")]
transformers = Peer("transformers")


class T5Both(Both):
    def __init__(self, folder, kind):
        name = "MT5ForConditionalGeneration" if kind == MT5 else "T5ForConditionalGeneration"
        self.kind, self.processor = kind, sentencepiece.SentencePieceProcessor(model_proto=spm(kind))
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        pad, eos, self.start = (settings[f"{name}_token_id"] for name in ("pad", "eos", "decoder_start"))
        special = {pad: PAD, self.processor.unk_id(): UNK, eos: EOS}
        super().__init__(folder, getattr(transformers, name), pieces_of(kind), special)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    def opened(kind, strength=1.2):
        return T5Both(t5_folder(tmp_path_factory.mktemp("t5") / kind, kind, strength), kind)

    return functools.cache(opened)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_hugging_face(both, kind):
    model, chance = both(kind), np.random.default_rng(1)
    for number in range(3):
        ids = model.tokenizer(" ".join(SENTENCES[: 1 + 20 * number]))["input_ids"]  # up to some hundred tokens
        words = chance.integers(3, len(model.here), 12 + 60 * number)
        assert model.assert_same_logits(ids, [model.start, *words]).std() > 0.1


SPECIAL = "<pad>", "<unk>", "<s>", "</s>", "<extra_id"


@pytest.mark.parametrize("kind", KINDS)
def test_lines_are_divided_as_by_sentencepiece_and_the_real_tokenizer(both, kind):
    model, texts = both(kind), hard_lines(*SPECIAL)
    processor = model.processor
    model.assert_divided(texts, [model.here[ids].tolist() for ids in processor.encode(texts)])
    bytes_there = {number for number in range(len(processor)) if processor.is_byte(number) and kind != BYT5}
    # T5Tokenizer of transformers 5 reads no bytes, and MADLAD's <unk> as </s>
    texts = [text for text in texts if not bytes_there & {*processor.encode(text)}]
    assert len(texts) == 200 if kind in (T5, V11, BYT5) else len(texts) > 120
    for text, ids in zip(texts, model.imported.tokenizer.encode_batch(texts), strict=True):
        assert model.here[model.tokenizer(text, add_special_tokens=False)["input_ids"]].tolist() == ids, text


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_sentencepiece_in_python_and_in_the_graph(both, kind):
    model, chance, texts = both(kind), np.random.default_rng(3), hard_lines(*SPECIAL)
    processor = model.processor
    rows = [chance.integers(3, len(processor), length).tolist() for length in chance.integers(0, 12, 100)]
    rows = processor.encode(texts) + ([] if kind == BYT5 else rows)  # bytes by chance are no text
    rows = [[number for number in row if number != model.unk] for row in rows]
    found = model.texts_of(rows)
    expected = [processor.decode(row) for row in rows]
    without_halves = [[text.replace("\ufffd", "").strip() for text in each] for each in (found, expected)]
    assert without_halves[0] == without_halves[1]  # a byte of no whole character has no text here


def told(kind):
    """What stands before a line there, and the languages that are named here."""
    if kind == MADLAD:
        return [("<2de> ", {"target_language": "de"}), ("<2ru_Latn> ", {"target_language": "ru_Latn"})]
    if kind == T5:
        return [("translate English to German: ", {"source_language": "en", "target_language": "de"}), ("", {})]
    return [("", {})]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_those_of_generate(both, kind, beam_size):
    """Without a length penalty: with one, a beam of transformers goes on when hypotheses have finished."""
    model, extra, agreement = both(kind, STRONG), 40, 0
    translator = model.translator(beam_size, 0.0, extra)
    for before, languages in told(kind):
        texts = lines("test.en")[: 100 // len(told(kind))]
        found = translator.translate_n_best(texts, **languages)
        rows = [[*ids, model.eos] for ids in model.processor.encode([before + text for text in texts])]
        agreement += model.agreement(rows, found, extra, num_beams=beam_size, length_penalty=0.0)
    compared, same = agreement
    assert same == compared > 20
