"""Small SentencePiece models that tests train."""

import io

import sentencepiece

from keras_transformer.pieces.tokenizer import SPECIAL_IDS

OUR_IDS = {f"{name}_id": number for name, number in SPECIAL_IDS.items()}


def trained_model(texts, **options):
    """The bytes of a model that is trained on texts, with SentencePiece's options."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, minloglevel=2, **options
    )
    return model.getvalue()
