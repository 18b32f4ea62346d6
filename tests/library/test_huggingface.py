"""What MarianMTModel computes with random weights, the imported model computes too: logits, greedy and beam search."""

import json
import shutil

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.ground.tokens import BOS, PAD
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.huggingface import import_huggingface
from keras_transformer.models.imported.torch_file import read_torch
from keras_transformer.runs.kinds import incremental_decoder
from tests.support.huggingface import marian_mt, padded, random_ids
from tests.support.marian import marian_pieces
from tests.support.searches import search

pytestmark = pytest.mark.release
CLOSE = 5e-5
TARGET_PIECES = ["</s>", "<unk>", "of", "the", "target", *marian_pieces()[40:120]]
KINDS = {
    "swish": {},
    "relu": {"activation_function": "relu"},
    "gelu": {"activation_function": "gelu"},
    "untied": {"tie_word_embeddings": False, "share_encoder_decoder_embeddings": False},
    "separate": {"share_encoder_decoder_embeddings": False, "target_pieces": TARGET_PIECES},
    "half": {"dtype": "float16"},
    "bfloat16": {"dtype": "bfloat16"},
    "one_and_three": {"encoder_layers": 1, "decoder_layers": 3},
}


@pytest.fixture(autouse=True, scope="module")
def peers():
    pytest.importorskip("torch", reason="`make peers` installs PyTorch")
    pytest.importorskip("transformers", reason="`make peers` installs transformers")


class Pair:
    """A model of Hugging Face, the same imported, and which id of the one is which of the other."""

    def __init__(self, folder, positions=None, **settings):
        self.theirs = marian_mt(folder, **settings)
        self.imported = import_folder(folder, positions)
        self.ours = self.imported.transformer()
        vocabularies = [json.loads((folder / name).read_text(encoding="utf-8")) for name in ("vocab.json",) * 2]
        if (folder / "target_vocab.json").exists():
            vocabularies[1] = json.loads((folder / "target_vocab.json").read_text(encoding="utf-8"))
        names = {piece: number for number, piece in enumerate(self.imported.tokenizer.pieces())}
        self.source_ids, self.target_ids = ([names[piece] for piece in vocabulary] for vocabulary in vocabularies)
        self.pads = [len(vocabulary) - 1 for vocabulary in vocabularies]

    def logits(self, sources, targets):
        """Of both models, for the classes that Hugging Face has, at real positions."""
        import torch

        source, target = padded(sources, self.pads[0]), padded(targets, self.pads[1])
        shifted = np.concatenate([np.full((len(target), 1), self.pads[1]), target[:, :-1]], axis=1)
        is_source, is_target = source != self.pads[0], target != self.pads[1]
        with torch.no_grad():
            theirs = self.theirs(
                input_ids=torch.tensor(source),
                attention_mask=torch.tensor(is_source),
                decoder_input_ids=torch.tensor(shifted),
            ).logits.numpy()
        inputs = np.take(self.target_ids, shifted)
        inputs[:, 0] = BOS
        ours = self.ours(
            {
                "source_ids": np.take(self.source_ids, source),
                "source_segments": is_source.astype(np.int32),
                "target_ids": inputs,
                "target_segments": is_target.astype(np.int32),
            }
        )
        return theirs[is_target], np.asarray(ours)[is_target]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_hugging_face(tmp_path, kind):
    pair = Pair(tmp_path / kind, **KINDS[kind])
    sources, targets = random_ids(12, pair.pads[0] + 1, seed=1), random_ids(12, pair.pads[1] + 1, seed=2)
    theirs, ours = pair.logits(sources, targets)
    np.testing.assert_allclose(ours[:, pair.target_ids], theirs, atol=CLOSE)
    others = sorted(set(range(ours.shape[1])) - set(pair.target_ids))  # BOS, and pieces of the source alone
    assert ours[:, others].max() < -50


@pytest.mark.parametrize("kind", ["swish", "untied"])
def test_the_pickle_has_the_same_weights(tmp_path, kind):
    import torch

    model = marian_mt(tmp_path / kind, **KINDS[kind])
    expected = import_huggingface(tmp_path / kind)
    values = dict(expected.values)  # read now: the file goes
    tensors = read_safetensors(tmp_path / kind / "model.safetensors")
    (tmp_path / kind / "model.safetensors").unlink()
    for is_archive in (True, False):
        path = tmp_path / kind / "pytorch_model.bin"
        torch.save(model.state_dict(), path, _use_new_zipfile_serialization=is_archive)
        assert tensors.keys() <= read_torch(path).keys()
        imported = import_huggingface(tmp_path / kind)
        assert imported.config == expected.config
        for name, value in values.items():
            np.testing.assert_array_equal(imported.values[name], value)


def test_what_transformers_writes_as_several_files_is_the_same_model(tmp_path):
    model = marian_mt(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "several")
    (tmp_path / "several/model.safetensors").unlink()
    model.save_pretrained(tmp_path / "several", max_shard_size="20KB")
    assert len(list((tmp_path / "several").glob("model-*.safetensors"))) > 2
    one, several = (import_huggingface(tmp_path / name) for name in ("one", "several"))
    assert one.config == several.config and one.values.keys() == several.values.keys()
    for name, value in one.values.items():
        np.testing.assert_array_equal(several.values[name], value)


def searched(pair, sources, options):
    """The best translation of each source by our search, in ids of Hugging Face, and its score."""
    import tensorflow as tf

    decoder, found = incremental_decoder(pair.ours), []
    signature = [tf.TensorSpec((None, None), tf.int32)]
    compiled = tf.function(lambda ids: tuple(search(decoder, ids, options)), signature, autograph=False)
    for row in sources:
        ids, scores, *_ = compiled(np.take(pair.source_ids, [row]).astype(np.int32))
        best = [number for number in np.asarray(ids)[0, 0].tolist() if number != PAD]
        found.append(([pair.target_ids.index(number) for number in best], float(np.asarray(scores)[0, 0])))
    return found


def generated(pair, sources, beam_size, extra_length):
    """The same by `generate`, which may not write <unk> either."""
    import torch

    found = []
    for row in sources:
        with torch.no_grad():
            output = pair.theirs.generate(
                torch.tensor([row]),
                num_beams=beam_size,
                do_sample=False,
                max_new_tokens=len(row) + extra_length,
                bad_words_ids=[[pair.pads[1]], [1]],
                length_penalty=0.0,
                return_dict_in_generate=True,
                output_scores=True,
            )
        ids = output.sequences[0].tolist()[1:]
        ids = ids[: ids.index(0) + 1] if 0 in ids else ids
        found.append((ids, float(output.sequences_scores[0]) if beam_size > 1 else None))
    return found


@pytest.mark.parametrize("kind", ["swish", "separate"])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_those_of_generate(tmp_path, kind, beam_size):
    pair = Pair(tmp_path / kind, **KINDS[kind])
    sources, extra = random_ids(50, pair.pads[0] + 1, seed=3), 20
    options = kt.SearchOptions(beam_size=beam_size, length_penalty=0.0, extra_length=extra)
    theirs, ours = generated(pair, sources, beam_size, extra), searched(pair, sources, options)
    below_the_limit = [
        number
        for number, row in enumerate(sources)
        if len(theirs[number][0]) < len(row) + extra and len(ours[number][0]) < len(row) + extra
    ]
    assert len(below_the_limit) > 25
    assert [ours[number][0] for number in below_the_limit] == [theirs[number][0] for number in below_the_limit]
    if beam_size > 1:
        for number in below_the_limit:
            assert abs(ours[number][1] - theirs[number][1]) < CLOSE


def test_marians_function_differs_in_sinusoids_epsilon_and_pad(tmp_path):
    pair = Pair(tmp_path / "swish", positions="marian")
    config = pair.imported.config
    assert (config.sinusoids, config.norm_epsilon) == ("tensor2tensor", 1e-6)
    assert pair.imported.values["embedding/bias"][PAD] == -100
    theirs, ours = pair.logits(random_ids(12, 150, seed=1), random_ids(12, 150, seed=2))
    assert np.abs(ours[:, pair.target_ids] - theirs).max() > 0.05


def test_separate_vocabularies_divide_text_as_mariantokenizer(tmp_path):
    from transformers import MarianTokenizer

    folder = tmp_path / "separate"
    pair = Pair(folder, **KINDS["separate"])
    settings = {"separate_vocabs": True, "source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    theirs = MarianTokenizer.from_pretrained(folder)
    for text in ("two hundred and six", "thirty-one target", "the unknown ☃"):
        expected = np.take(pair.source_ids, theirs(text)["input_ids"][:-1]).tolist()
        assert pair.imported.tokenizer.encode(text) == expected
