"""Text to ids and back: SentencePiece byte-pair encoding, the same in Python and in a TensorFlow graph.

Importing this module imports no TensorFlow; `graph_tokenizer` does, when it is called.
"""

import functools
import io
import pathlib
import re

import sentencepiece

from keras_transformer.errors import UserError
from keras_transformer.files import write_atomically
from keras_transformer.tokens import BOS, EOS, PAD, UNK

SPECIAL_IDS = {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}
CHARACTER_COVERAGE = 0.9999  # share of the text's characters with a piece of their own; the rest are spelled in bytes
TRAINING_CHARACTERS = 4_000  # longest stretch handed to the trainer, which drops longer lines without a word
TRAINING_SENTENCES = 5_000_000  # how many of them it samples from a larger corpus, to stay within memory


class TokenizerError(UserError):
    """A vocabulary that cannot be made, or a model file that cannot be used; the message says why."""


def train_tokenizer(sentences, path, vocab_size):
    """Learn one joint vocabulary from all `sentences` (Vaswani et al. 2017, section 5.1) and write it to `path`.

    Byte-pair encoding (Sennrich et al. 2016) with byte fallback and without normalisation: every Unicode string
    comes back from its ids as it was, whether or not its characters were in the training text. The one exception
    is U+2581, SentencePiece's own sign for a space, which comes back as a space.

    The same sentences in the same order make the same file.
    Raises TokenizerError where the sentences do not carry `vocab_size` pieces, or need more.
    """
    model = io.BytesIO()
    stretches = (
        sentence[start : start + TRAINING_CHARACTERS]
        for sentence in sentences
        for start in range(0, len(sentence), TRAINING_CHARACTERS)
    )
    sentencepiece.set_random_generator_seed(1)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=stretches,
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            byte_fallback=True,
            character_coverage=CHARACTER_COVERAGE,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            max_sentence_length=4 * TRAINING_CHARACTERS,  # bytes; UTF-8 has at most four a character
            input_sentence_size=TRAINING_SENTENCES,
            minloglevel=2,
            **{f"{name}_id": special_id for name, special_id in SPECIAL_IDS.items()},
        )
    except RuntimeError as error:
        raise TokenizerError(_training_sentence(str(error), vocab_size)) from None
    write_atomically(path, model.getvalue())


def _training_sentence(error, vocab_size):
    """What SentencePiece's error means to whoever asked for the vocabulary."""
    if largest := re.search(r"size too high .* <= (\d+)", error):
        return (
            f"tokenizer.vocab_size is {vocab_size}, but the training text is too small for so many pieces: "
            f"the largest possible size is {largest[1]}."
        )
    if smallest := re.search(r"smaller than required_chars. \d+ vs (\d+)", error):
        return (
            f"tokenizer.vocab_size is {vocab_size}, but the 4 special ids, the 256 bytes and the characters "
            f"of the training text alone need {smallest[1]}: ask for at least that."
        )
    if "sentences_.empty()" in error:
        return "There is no text to train a tokenizer on: every sentence is empty."
    return f"SentencePiece could not train a vocabulary of {vocab_size} pieces: {error}"


class Tokenizer:
    """A SentencePiece model whose special ids are those of `tokens.py`.

    `Tokenizer(path)` reads a .model file. Raises TokenizerError where there is none, or where its ids differ.
    """

    def __init__(self, path):
        path = pathlib.Path(path)
        try:
            self.model_bytes = path.read_bytes()
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.model_bytes)
        except OSError as error:
            raise TokenizerError(f"The tokenizer {path} cannot be read: {error.strerror}.") from None
        except RuntimeError:
            raise TokenizerError(f"{path} is not a SentencePiece model.") from None
        found = {name: getattr(self._processor, f"{name}_id")() for name in SPECIAL_IDS}
        if found != SPECIAL_IDS:
            raise TokenizerError(
                f"{path} has the special ids {_listed(found)}, but this model needs {_listed(SPECIAL_IDS)}: "
                "train it with these ids, or leave tokenizer.model out to have one trained."
            )

    @property
    def vocab_size(self):
        return self._processor.get_piece_size()

    @property
    def pieces(self):
        """The written form of every id, in order: `pieces[EOS]` is "</s>"."""
        return [self._processor.id_to_piece(piece_id) for piece_id in range(self.vocab_size)]

    def encode(self, text):
        """The ids of `text`, without BOS and EOS."""
        return self._processor.encode(text)

    def encode_batch(self, texts):
        """One list of ids for each of `texts`."""
        return self._processor.encode(list(texts))

    def decode(self, ids):
        """The text that `ids` spell; PAD, BOS and EOS spell nothing."""
        return self._processor.decode([int(i) for i in ids if i not in (PAD, BOS, EOS)])

    @functools.cached_property
    def graph(self):
        """The same tokenizer as a tf.Module; see `graph_tokenizer`."""
        return graph_tokenizer(self.model_bytes)

    def graph_encode(self, texts):
        """texts, tf.string (batch,) -> ids, int32 RaggedTensor (batch, None): those of `encode`, in the graph."""
        return self.graph.encode(texts)

    def graph_decode(self, ids):
        """ids, integer Tensor or RaggedTensor (batch, length) -> tf.string (batch,): `decode`, in the graph."""
        return self.graph.decode(ids)


def graph_tokenizer(model_bytes):
    """A tf.Module with `encode` and `decode` that a SavedModel can hold: the model travels inside the graph."""
    import tensorflow
    import tensorflow_text

    class GraphTokenizer(tensorflow.Module):
        def __init__(self):
            super().__init__(name="tokenizer")
            self.sentencepiece = tensorflow_text.SentencepieceTokenizer(model=model_bytes, out_type=tensorflow.int32)

        def encode(self, texts):
            return self.sentencepiece.tokenize(texts)

        def decode(self, ids):
            if not isinstance(ids, tensorflow.RaggedTensor):
                ids = tensorflow.RaggedTensor.from_tensor(ids)
            ids = tensorflow.cast(ids, tensorflow.int32)
            spells = (ids != PAD) & (ids != BOS) & (ids != EOS)
            return self.sentencepiece.detokenize(tensorflow.ragged.boolean_mask(ids, spells))

    return GraphTokenizer()


def _listed(ids):
    return ", ".join(f"{name} {special_id}" for name, special_id in ids.items())
