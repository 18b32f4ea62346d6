"""What tests of imported models share: a folder here and in transformers, hard lines, and files that are damaged."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.errors import UserError
from keras_transformer.ground.tokens import BOS
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.vocabulary import renamed
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator

from .huggingface import padded
from .m2m import SCRIPTS
from .marian import lines
from .marian_files import safetensors
from .peers import Peer
from .runs import SENTENCES
from .texts import TEXTS, random_texts

torch = Peer("torch")


class Both:
    """A folder in transformers, `theirs`, and imported, `ours`. `here` has our id of each id there.

    pieces: those there by id. special: our id of each special id there, `pad`, `unk` and `eos`.
    """

    def __init__(self, folder, theirs, pieces, special):
        self.folder = folder
        self.theirs = theirs.from_pretrained(folder).eval()
        self.imported = import_folder(folder)
        self.ours = self.imported.transformer()
        self.pad, self.unk, self.eos = special
        pieces = [*pieces, *(f"madeupword{number:04}" for number in range(self.theirs.config.vocab_size - len(pieces)))]
        self.there = {piece: number for number, piece in enumerate(pieces)}
        here = {piece: number for number, piece in enumerate(self.imported.tokenizer.pieces())}
        self.here = np.array([special.get(number, here.get(renamed(each))) for number, each in enumerate(pieces)])

    def assert_same_logits(self, source_ids, output, tolerance=1e-4):
        """The logits after each id of `output` are the same; its first is the start of the decoder. Returns ours."""
        with torch.no_grad():
            ids = {"input_ids": torch.tensor([source_ids]), "decoder_input_ids": torch.tensor([output])}
            theirs = self.theirs(**ids).logits[0].numpy()
        ours = logits(self.ours, self.here[source_ids], [BOS, *self.here[output[1:]]])
        np.testing.assert_allclose(ours[:, self.here], theirs, atol=tolerance)
        assert ours[:, BOS].max() < -50  # which no model of theirs has
        return ours

    def assert_divided(self, texts, expected, keeps_spaces=False):
        """Texts have the expected ids of ours, in Python and in the graph.

        keeps_spaces: whether the tokenizer there keeps a space at an end, which its model's training did not have.
        """
        tokenizer = self.imported.tokenizer
        if keeps_spaces:
            space = tokenizer.ids["▁"]
            expected = [ids[:-1] if ids[-1:] == [space] else ids for ids in expected]
        found = tokenizer.encode_batch(texts)
        assert not [each for each in zip(texts, found, expected, strict=True) if each[1] != each[2]]
        assert graph_tokenizer(tokenizer.model_bytes).encode(tf.constant(texts)).to_list() == found

    def texts_of(self, rows):
        """The texts of rows of ids there, in Python, which are those in the graph; special pieces have none."""
        tokenizer, rows = self.imported.tokenizer, [self.here[row].tolist() for row in rows]
        found = [tokenizer.decode(row) for row in rows]
        of_graph = graph_tokenizer(tokenizer.model_bytes).decode(tf.ragged.constant(rows, tf.int32)).numpy()
        assert [text.decode() for text in of_graph] == found and tokenizer.decode(list(tokenizer.silent)) == ""
        return found

    def translator(self, beam_size, penalty, extra):
        """A Translator of ours that searches as `generate` does."""
        options = SearchOptions(beam_size, penalty, extra, length_normalization="tokens")
        return Translator(self.ours, self.imported.tokenizer, options, languages=self.imported.languages)

    def agreement(self, rows, translations, extra, **options):
        """How many outputs of `generate` for rows of ids end before the limit, and how many of these are ours."""
        batch = torch.tensor(padded(rows, self.pad))
        limits = {"max_length": None, "max_new_tokens": batch.shape[1] + extra}
        banned = {"bad_words_ids": [[self.pad], [self.unk]], "do_sample": False}
        with torch.no_grad():
            outputs = self.theirs.generate(batch, attention_mask=batch != self.pad, **limits, **banned, **options)
        same = []
        for row, (_, *output), (best, *_) in zip(rows, outputs.tolist(), translations, strict=True):
            expected = output[: output.index(self.eos) + 1] if self.eos in output else []
            if expected and len(expected) < len(row) + extra - 1:
                same.append(list(best.ids) == self.here[expected].tolist())
        return np.array([len(same), sum(same)])


def logits(transformer, source_ids, target_ids):
    """The logits of a model of ours after each id of one target."""
    inputs = {"source_ids": np.array([source_ids]), "target_ids": np.array([target_ids])}
    segments = {name.replace("ids", "segments"): np.ones(ids.shape, "int32") for name, ids in inputs.items()}
    return np.asarray(transformer(inputs | segments))[0]


def hard_lines(*special):
    """200 lines in many scripts, with spaces, emoji and signs, that have no special pieces in them."""
    found = [*TEXTS, *SCRIPTS, *random_texts(60), *lines("test.en"), *lines("test.de"), *SENTENCES]
    return [line for line in found if not any(piece in line for piece in special)][:200]


def remove(folder, name):
    (folder / name).unlink()


def cut(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])


def with_arrays(folder, **arrays):
    """Give the model in a folder other arrays, or take those away that are None."""
    old = dict(read_safetensors(folder / "model.safetensors")) | arrays
    (folder / "model.safetensors").write_bytes(safetensors({k: v for k, v in old.items() if v is not None}))


def assert_refused(folder, sentence):
    """The folder is not imported, for one sentence that has these parts, with ` .* ` between them."""
    with pytest.raises(UserError) as error:
        import_folder(folder)
    assert "\n" not in str(error.value)
    for part in sentence.split(" .* "):
        assert part in str(error.value)
