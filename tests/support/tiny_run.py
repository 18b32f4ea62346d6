"""A run folder as training leaves it, with a small random model whose translations differ and end."""

import functools
import pathlib
import tempfile

import numpy as np

from export.saved_model import write_saved_model
from export.serving import ServedTranslator
from keras_transformer.config import SearchOptions, TransformerConfig
from keras_transformer.model import Transformer
from keras_transformer.tokenizer import train_tokenizer
from keras_transformer.tokens import EOS
from keras_transformer.translator import Translator, load_run

SENTENCES = [
    "the cat sat on the mat",
    "a dog runs across the green field",
    "Zwei Männer kochen in der Küche .",
    "two hundred and forty-one",
    "a",
    "forty-one dogs",
    "der Küche",
    "kochen",
    "hundred",
]
FIRST_PIECE = 260  # after special ids and bytes
OPTIONS = SearchOptions(extra_length=12)
SMALL = TransformerConfig(
    vocab_size=330, encoder_layers=1, decoder_layers=1, d_model=32, d_ff=48, num_heads=4, dropout=0.5
)


def make_run(folder, **changes):
    """Write model.json, tokenizer.model, model.weights.h5 and validation.src.txt. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = SMALL.replace(**changes)
    config.save(folder / "model.json")
    (folder / "tokenizer.model").write_bytes(tokenizer_bytes())
    decisive(Transformer(config)).save_weights(str(folder / "model.weights.h5"))
    (folder / "validation.src.txt").write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    return folder


@functools.cache
def tokenizer_bytes():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.model"
        train_tokenizer(SENTENCES * 5, path, SMALL.vocab_size)
        return path.read_bytes()


def decisive(transformer, seed=7, end=6.0):
    """Weights so wide that hypotheses are far apart, not ties; few bytes, and EOS likelier by `end` in its logit."""
    config, generator = transformer.transformer_config, np.random.default_rng(seed)
    for weight in transformer.trainable_weights:
        drawn = generator.normal(0.0, 0.5, weight.shape)
        if weight.path.endswith("/matrix"):
            drawn[EOS + 1 : FIRST_PIECE] *= 0.02
        if weight.name != "gamma":
            weight.assign(drawn)
    table = transformer.get_layer("embedding" if config.shared_embeddings else "logits").matrix
    end_vector = np.array(table)[EOS]
    beta = (
        transformer.get_layer("decoder_norm").beta
        if config.norm == "pre"
        else transformer.get_layer(f"decoder_block_{config.decoder_layers}").feed_forward_residual.norm.beta
    )
    beta.assign(np.array(beta) + end * end_vector / (end_vector @ end_vector))
    return transformer


def write_version(run, folder, options=OPTIONS, max_source_tokens=512):
    """Export a run into `folder` as it is, unnumbered and unchecked. Returns a Translator of the same run."""
    transformer, tokenizer = load_run(run)
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens, xla=False)
    write_saved_model(
        ServedTranslator(transformer, tokenizer, options, translator.max_source_tokens), tokenizer, folder
    )  # fmt: skip
    return translator
