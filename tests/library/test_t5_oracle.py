"""T5, T5 1.1, mT5 and MADLAD-400 compute, divide text and translate as in transformers: random weights."""

import functools

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.vocabulary import renamed
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.translation.translator import Translator
from tests.support.huggingface import padded
from tests.support.m2m import SCRIPTS
from tests.support.marian import lines
from tests.support.runs import SENTENCES
from tests.support.t5 import BYT5, KINDS, MADLAD, MT5, STRONG, T5, V11, pieces_of, spm, t5_folder
from tests.support.texts import TEXTS, random_texts

pytestmark = pytest.mark.release
CLOSE = 1e-4


@pytest.fixture(autouse=True, scope="module")
def peers():
    pytest.importorskip("torch", reason="`make peers` installs PyTorch")
    pytest.importorskip("transformers", reason="`make peers` installs transformers")


class Both:
    """A folder in transformers, and imported."""

    def __init__(self, folder, kind):
        from transformers import AutoTokenizer, MT5ForConditionalGeneration, T5ForConditionalGeneration

        self.kind, self.folder = kind, folder
        model_class = MT5ForConditionalGeneration if kind == MT5 else T5ForConditionalGeneration
        self.theirs = model_class.from_pretrained(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.imported = import_folder(folder)
        self.ours = self.imported.transformer()
        self.processor = processor = sentencepiece.SentencePieceProcessor(model_proto=spm(kind))
        settings = self.theirs.config
        self.pad, self.eos, self.unk = settings.pad_token_id, settings.eos_token_id, processor.unk_id()
        self.start = settings.decoder_start_token_id
        pieces = pieces_of(kind)
        pieces += [f"madeupword{number:04}" for number in range(settings.vocab_size - len(pieces))]
        here = {piece: number for number, piece in enumerate(self.imported.tokenizer.pieces())}
        special = {self.eos: EOS, self.pad: PAD, self.unk: UNK}
        self.here = np.array([special.get(number, here.get(renamed(each))) for number, each in enumerate(pieces)])


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    def opened(kind, strength=1.2):
        return Both(t5_folder(tmp_path_factory.mktemp("t5") / kind, kind, strength), kind)

    return functools.cache(opened)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_hugging_face(both, kind):
    import torch

    model, chance = both(kind), np.random.default_rng(1)
    rows = len(model.here)
    for number in range(3):
        ids = model.tokenizer(" ".join(SENTENCES[: 1 + 20 * number]))["input_ids"]  # up to some hundred tokens
        output = [model.start, *chance.integers(3, rows, 12 + 60 * number).tolist()]
        with torch.no_grad():
            theirs = model.theirs(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([output])).logits
        target_ids = np.array([[BOS, *model.here[output[1:]]]])
        ours = model.ours(
            {
                "source_ids": model.here[[ids]],
                "source_segments": np.ones((1, len(ids)), "int32"),
                "target_ids": target_ids,
                "target_segments": np.ones(target_ids.shape, "int32"),
            }
        )
        ours = np.asarray(ours)[0]
        assert ours.std() > 0.1
        np.testing.assert_allclose(ours[:, model.here], theirs[0].numpy(), atol=CLOSE)
        assert ours[:, BOS].max() < -50  # which no model of theirs has


def hard_lines():
    """200 lines in many scripts, with spaces, emoji and signs, that have no special tokens in them."""
    found = [*TEXTS, *SCRIPTS, *random_texts(60), *lines("test.en"), *lines("test.de"), *SENTENCES]
    special = "<pad>", "<unk>", "<s>", "</s>", "<extra_id"
    return [line for line in found if not any(piece in line for piece in special)][:200]


@pytest.mark.parametrize("kind", KINDS)
def test_lines_are_divided_as_by_sentencepiece_and_the_real_tokenizer(both, kind):
    model, texts = both(kind), hard_lines()
    processor, ours = model.processor, model.imported.tokenizer
    found = ours.encode_batch(texts)
    assert found == [model.here[ids].tolist() for ids in processor.encode(texts)]
    graph = graph_tokenizer(ours.model_bytes)
    assert graph.encode(tf.constant(texts)).to_list() == found
    bytes_there = {number for number in range(len(processor)) if processor.is_byte(number) and kind != BYT5}
    # T5Tokenizer of transformers 5 reads no bytes, and MADLAD's <unk> as </s>
    texts = [text for text in texts if not bytes_there & {*processor.encode(text)}]
    assert len(texts) == 200 if kind in (T5, V11, BYT5) else len(texts) > 120
    for text, ids in zip(texts, ours.encode_batch(texts), strict=True):
        assert model.here[model.tokenizer(text, add_special_tokens=False)["input_ids"]].tolist() == ids, text


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_sentencepiece_in_python_and_in_the_graph(both, kind):
    model, chance, texts = both(kind), np.random.default_rng(3), hard_lines()
    processor = model.processor
    rows = [chance.integers(3, len(processor), length).tolist() for length in chance.integers(0, 12, 100)]
    rows = processor.encode(texts) + ([] if kind == BYT5 else rows)  # bytes by chance are no text
    rows = [[number for number in row if number != model.unk] for row in rows]
    ours = model.imported.tokenizer
    found = [ours.decode(model.here[row]) for row in rows]
    assert found == [processor.decode(row).strip() for row in rows]
    assert ours.decode(list(ours.silent)) == ""
    graph = graph_tokenizer(ours.model_bytes)
    of_graph = graph.decode(tf.ragged.constant([model.here[row].tolist() for row in rows], tf.int32)).numpy()
    assert [text.decode() for text in of_graph] == found


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
    import torch

    model, extra = both(kind, STRONG), 40
    options = kt.SearchOptions(beam_size, 0.0, extra, length_normalization="tokens")
    translator = Translator(model.ours, model.imported.tokenizer, options, languages=model.imported.languages)
    compared = same = 0
    for before, languages in told(kind):
        texts = lines("test.en")[:100] if len(told(kind)) == 1 else lines("test.en")[:50]
        found = translator.translate_n_best(texts, **languages)
        rows = [[*ids, model.eos] for ids in model.processor.encode([before + text for text in texts])]
        batch = torch.tensor(padded(rows, model.pad))
        with torch.no_grad():
            outputs = model.theirs.generate(
                batch,
                attention_mask=batch != model.pad,
                num_beams=beam_size,
                do_sample=False,
                max_new_tokens=batch.shape[1] + extra,
                bad_words_ids=[[model.pad], [model.unk]],
                length_penalty=0.0,
            )
        for row, output, (best, *_) in zip(rows, outputs.tolist(), found, strict=True):
            expected = output[1 : output.index(model.eos) + 1] if model.eos in output else []  # the end fills rows, too
            if expected and len(expected) < len(row) + extra - 1:
                same += list(best.ids) == model.here[expected].tolist()
                compared += 1
    assert same == compared > 20
