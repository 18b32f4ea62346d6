"""mBART and BART compute, divide text and translate here as in transformers: random weights, real tokenizers."""

import functools

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models.imported.fairseq import FAIRSEQ
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.vocabulary import renamed
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.translation.translator import Translator
from tests.support.huggingface import padded
from tests.support.m2m import SCRIPTS, STRONG
from tests.support.marian import lines
from tests.support.mbart import BART, FIFTY, KINDS, ONE_TARGET, PAIR, all_pieces, mbart_folder
from tests.support.peers import Peer, needs
from tests.support.runs import SENTENCES
from tests.support.texts import TEXTS, random_texts

pytestmark = [pytest.mark.release, needs("transformers", "torch")]
transformers, torch = Peer("transformers"), Peer("torch")
CLOSE = 1e-4
PAD_THERE, EOS_THERE, UNK_THERE = 1, 2, 3


class Both:
    """A folder in transformers, and imported."""

    def __init__(self, folder, kind):
        name = "BartForConditionalGeneration" if kind == BART else "MBartForConditionalGeneration"
        self.kind, self.folder = kind, folder
        self.theirs = getattr(transformers, name).from_pretrained(folder).eval()
        self.imported = import_folder(folder)
        self.ours = self.imported.transformer()
        here = {piece: number for number, piece in enumerate(self.imported.tokenizer.pieces())}
        special = {EOS_THERE: EOS, PAD_THERE: PAD, UNK_THERE: UNK}
        self.there = all_pieces(kind)
        self.here = np.array([special.get(number, here.get(renamed(each))) for number, each in enumerate(self.there)])

    def tokenizer(self, source, target):
        name = "MBart50Tokenizer" if len(self.imported.languages.source) > 25 else "MBartTokenizer"
        return getattr(transformers, name).from_pretrained(self.folder, src_lang=source, tgt_lang=target)

    def opening(self, target):
        """What the decoder reads before the words: theirs, and ours after BOS."""
        piece = self.there.index(target)
        return ([piece], []) if self.kind == ONE_TARGET else ([EOS_THERE, piece], [self.here[piece]])

    def logits_here(self, source_ids, target_ids):
        inputs = {"source_ids": np.array([source_ids]), "target_ids": np.array([target_ids])}
        segments = {name.replace("ids", "segments"): np.ones_like(ids) for name, ids in inputs.items()}
        return np.asarray(self.ours(inputs | segments))[0]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    def opened(kind, strength=1.2):
        return Both(mbart_folder(tmp_path_factory.mktemp("mbart") / kind, kind, strength), kind)

    return functools.cache(opened)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_hugging_face(both, kind):
    model, chance = both(kind), np.random.default_rng(1)
    pairs = [PAIR] if kind == ONE_TARGET else [PAIR, ("de_DE", "zh_CN"), ("zh_CN", "ar_AR")]
    for source, target in pairs:
        ids, (before, before_here) = model.tokenizer(source, target)(SENTENCES[0])["input_ids"], model.opening(target)
        words = chance.integers(4, len(model.here), 12)
        with torch.no_grad():
            output = torch.tensor([[*before, *words]])
            theirs = model.theirs(input_ids=torch.tensor([ids]), decoder_input_ids=output).logits[0].numpy()
        ours = model.logits_here(model.here[ids], [BOS, *before_here, *model.here[words]])
        np.testing.assert_allclose(ours[:, model.here], theirs, atol=CLOSE)
        assert ours[:, BOS].max() < -50  # which no model of theirs has


def hard_lines():
    """200 lines in many scripts, with spaces, emoji and signs, that have no special tokens in them."""
    found = [*TEXTS, *SCRIPTS, *random_texts(60), *lines("test.en"), *lines("test.de"), *SENTENCES]
    return [line for line in found if not any(piece in line for piece in FAIRSEQ)][:200]


@pytest.mark.parametrize("kind", [FIFTY, ONE_TARGET])
def test_lines_are_divided_as_by_the_real_tokenizer_in_python_and_in_the_graph(both, kind):
    model, texts = both(kind), hard_lines()
    theirs, ours = model.tokenizer(*PAIR), model.imported.tokenizer
    normalized = texts
    if kind == ONE_TARGET:  # MBartTokenizer of transformers 5 leaves out the normalisation of the SentencePiece model
        processor = sentencepiece.SentencePieceProcessor(model_proto=ours.source_spm)
        normalized = [processor.normalize(text).replace("▁", " ") for text in texts]
    expected = [model.here[theirs(text, add_special_tokens=False)["input_ids"]].tolist() for text in normalized]
    found, space = ours.encode_batch(texts), ours.ids["▁"]  # which theirs keeps at an end, and training did not have
    expected = [ids[:-1] if ids[-1:] == [space] else ids for ids in expected]
    different = [(text, a, b) for text, a, b in zip(texts, found, expected, strict=True) if a != b]
    assert not different
    assert graph_tokenizer(ours.model_bytes).encode(tf.constant(texts)).to_list() == found


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokens_of_a_source_are_those_of_the_real_tokenizer(both, kind):
    model = both(kind)
    source, target = PAIR
    translator = Translator(model.ours, model.imported.tokenizer, languages=model.imported.languages)
    marks = translator._mark_reader.marks(source, target)
    for text in SENTENCES:
        expected = model.here[model.tokenizer(source, target)(text)["input_ids"]].tolist()
        assert marks.around(model.imported.tokenizer.encode(text)) == expected


@pytest.mark.parametrize("kind", [FIFTY, ONE_TARGET])
def test_texts_are_those_of_the_real_tokenizer_in_python_and_in_the_graph(both, kind):
    model, chance = both(kind), np.random.default_rng(3)
    theirs, ours = model.tokenizer(*PAIR), model.imported.tokenizer
    rows = [chance.integers(0, len(model.here), length) for length in chance.integers(0, 12, 100)]
    expected = [theirs.decode(row[row != UNK_THERE], skip_special_tokens=True).strip() for row in rows]
    found = [ours.decode(model.here[row]) for row in rows]
    assert found == expected and ours.decode(list(ours.silent)) == ""
    graph = graph_tokenizer(ours.model_bytes).decode(tf.ragged.constant([model.here[row] for row in rows]))
    assert [text.decode() for text in graph.numpy()] == found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("beam_size", "penalty"), [(1, 0.0), (4, 0.0), (4, 1.0)])
def test_translations_are_those_of_generate(both, kind, beam_size, penalty):
    model, extra = both(kind, STRONG), 20
    options = kt.SearchOptions(beam_size, penalty, extra, length_normalization="tokens")
    translator = Translator(model.ours, model.imported.tokenizer, options, languages=model.imported.languages)
    compared = same = 0
    for source, target in [PAIR] if kind == ONE_TARGET else [PAIR, ("de_DE", "zh_CN"), ("zh_CN", "ar_AR")]:
        tokenizer, texts = model.tokenizer(source, target), lines("test.en")[: 100 if kind == ONE_TARGET else 34]
        found = translator.translate_n_best(texts, source_language=source, target_language=target)
        rows, (before, _) = [tokenizer(text)["input_ids"] for text in texts], model.opening(target)
        batch = torch.tensor(padded(rows, PAD_THERE))
        forced = {} if kind == ONE_TARGET else {"forced_bos_token_id": before[1]}
        with torch.no_grad():
            outputs = model.theirs.generate(
                batch,
                attention_mask=batch != PAD_THERE,
                num_beams=beam_size,
                do_sample=False,
                max_length=None,
                max_new_tokens=batch.shape[1] + extra,
                bad_words_ids=[[PAD_THERE], [UNK_THERE]],
                length_penalty=penalty,
                **forced,
            )
        for row, output, (best, *_) in zip(rows, outputs.tolist(), found, strict=True):
            expected = [number for number in output[1:] if number != PAD_THERE]
            if expected[-1] == EOS_THERE and len(expected) < len(row) + extra - 1:
                same += list(best.ids) == model.here[expected].tolist()
                compared += 1
    # with a penalty, a beam of transformers goes on when hypotheses have finished, and keeps others
    assert compared > 25 and same >= (0.97 * compared if penalty else compared)
