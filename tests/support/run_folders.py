"""A run folder as training leaves it, with random weights."""

from keras_transformer.tokenizer import train_tokenizer
from tests.support.tables import LIVELY, lively_transformer

SENTENCES = ["the quick brown fox jumps over the lazy dog", "one two three four five", "a dog, a fox and 21 hens"]
CONFIG = LIVELY.replace(vocab_size=300, encoder_layers=1, decoder_layers=1)


def make_run(folder, config=CONFIG):
    """Fill `folder` with what translation needs. Returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    train_tokenizer(SENTENCES, folder / "tokenizer.model", CONFIG.vocab_size)
    config.save(folder / "model.json")
    lively_transformer(config).save_weights(folder / "model.weights.h5")
    return folder
