"""M2M-100 and NLLB-200 compute, divide text and translate here as in transformers: random weights, real tokenizers."""

import functools

import numpy as np
import pytest

from keras_transformer.ground.tokens import EOS, PAD, UNK
from keras_transformer.models.imported.folder import import_folder
from tests.support.imported import Both, hard_lines
from tests.support.m2m import (
    FAIRSEQ,
    KINDS,
    LEGACY,
    M2M,
    NLLB_CODES,
    STRONG,
    UNNAMED,
    added_pieces,
    m2m_folder,
    text_pieces,
)
from tests.support.marian import lines
from tests.support.peers import Peer, needs
from tests.support.runs import SENTENCES

pytestmark = [pytest.mark.release, needs("transformers", "torch")]
transformers, torch = Peer("transformers"), Peer("torch")
PAIRS = {M2M: [("en", "de"), ("de", "zh"), ("zu", "af")]}
OF_NLLB = [("eng_Latn", "deu_Latn"), ("zho_Hans", "ace_Arab"), ("zul_Latn", "eng_Latn")]
EOS_THERE, UNK_THERE = 2, 3


class M2MBoth(Both):
    def __init__(self, folder, kind):
        pieces, special = [*text_pieces(), *added_pieces(kind)], {1: PAD, UNK_THERE: UNK, EOS_THERE: EOS}
        super().__init__(folder, transformers.M2M100ForConditionalGeneration, pieces, special)
        self.kind = kind

    def ids_of(self, tokenizer, text, **kwargs):
        """The ids of its pieces in the model: without a tokenizer.json, transformers 5 numbers languages otherwise."""
        return [self.there[piece] for piece in tokenizer.convert_ids_to_tokens(tokenizer(text, **kwargs)["input_ids"])]

    def opening(self, target):
        return self.there[self.imported.languages.target[target]]

    def tokenizer(self, source, target):
        if self.kind == M2M:
            return transformers.M2M100Tokenizer.from_pretrained(self.folder, src_lang=source, tgt_lang=target)
        return transformers.NllbTokenizer.from_pretrained(
            self.folder,
            src_lang=source,
            tgt_lang=target,
            extra_special_tokens=NLLB_CODES,
            legacy_behaviour=self.kind == LEGACY,
        )


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    def opened(kind, strength=1.2):
        return M2MBoth(m2m_folder(tmp_path_factory.mktemp("m2m") / kind, kind, strength), kind)

    return functools.cache(opened)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_hugging_face(both, kind):
    model, chance = both(kind), np.random.default_rng(1)
    for source, target in PAIRS.get(kind, OF_NLLB):
        ids = model.ids_of(model.tokenizer(source, target), SENTENCES[0])
        words = chance.integers(4, len(model.here), 12)
        model.assert_same_logits(ids, [EOS_THERE, model.opening(target), *words])


@pytest.mark.parametrize("kind", KINDS)
def test_lines_are_divided_as_by_the_real_tokenizer_in_python_and_in_the_graph(both, kind):
    model, texts = both(kind), hard_lines(*FAIRSEQ)
    theirs = model.tokenizer(*PAIRS.get(kind, OF_NLLB)[0])
    expected = [model.here[model.ids_of(theirs, text, add_special_tokens=False)].tolist() for text in texts]
    model.assert_divided(texts, expected, keeps_spaces=kind != M2M)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_the_real_tokenizer_in_python_and_in_the_graph(both, kind):
    model, chance = both(kind), np.random.default_rng(3)
    theirs = model.tokenizer(*PAIRS.get(kind, OF_NLLB)[0])
    named = len(model.here) - UNNAMED
    rows = [chance.integers(0, named, length) for length in chance.integers(0, 12, 100)]
    expected = [theirs.decode(row[row != UNK_THERE], skip_special_tokens=True).strip() for row in rows]
    assert model.texts_of(rows) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("beam_size", "penalty"), [(1, 0.0), (4, 0.0), (4, 1.0)])
def test_translations_are_those_of_generate(both, kind, beam_size, penalty):
    model, extra, agreement = both(kind, STRONG), 20, 0
    translator = model.translator(beam_size, penalty, extra)
    for source, target in PAIRS.get(kind, OF_NLLB):
        tokenizer, texts = model.tokenizer(source, target), lines("test.en")[:34]
        found = translator.translate_n_best(texts, source_language=source, target_language=target)
        rows, opening = [model.ids_of(tokenizer, text) for text in texts], model.opening(target)
        how = {"num_beams": beam_size, "length_penalty": penalty, "forced_bos_token_id": opening}
        agreement += model.agreement(rows, found, extra, **how)
    compared, same = agreement
    # with a penalty, a beam of transformers goes on when hypotheses have finished, and keeps others
    assert compared > 25 and same >= (0.97 * compared if penalty else compared)


@pytest.mark.parametrize("is_archive", [True, False])
def test_the_pickle_of_pytorch_has_the_same_weights(both, tmp_path, is_archive):
    model, folder = both(M2M), m2m_folder(tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    torch.save(model.theirs.state_dict(), path, _use_new_zipfile_serialization=is_archive)
    found = import_folder(folder)
    assert found.config == model.imported.config
    for name, value in model.imported.values.items():
        np.testing.assert_array_equal(found.values[name], value)
