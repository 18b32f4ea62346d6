"""
Title: English numbers into German with a Transformer
Author: the authors of keras-transformer
Date created: 2026/11/21
Last modified: 2026/11/27
Description: Train the model of "Attention Is All You Need" with stock `model.fit`, and translate with it.
Accelerator: None
"""

"""
## Introduction

    python examples/fit.py [RUN]        EPOCHS=1 makes it short

A Transformer learns spelled-out numbers from English to German, from sentence pairs to translations. The script trains
on every GPU of this machine (without one, on the CPU) and needs nothing but the library. It leaves a run folder, RUN or
runs/fit, which `keras-transformer translate` opens. On 2 CPU cores it takes 1 min 40 s of processor time; the end of
its output:

    two hundred and forty-eight -> zweihundertachtundvierzig  (zweihundertachtundvierzig)
    four hundred and ninety-one -> vierhundertneunundneunzig  (vierhunderteinundneunzig)
    thirty-five -> fünfunddreißig  (fünfunddreißig)
    96 of 100 unseen numbers are right
"""

"""
## Setup
"""

import os
import pathlib
import random
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"  # with which a Translator searches, whatever ~/.keras says

import keras
import tensorflow as tf

import keras_transformer as kt

EPOCHS = int(os.environ.get("EPOCHS", 20))
"""
## The data

Numbers below 1,000 in words: line n of one side is the translation of line n of the other.
"""

ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
)
ENGLISH += "seventeen eighteen nineteen".split()
ENGLISH_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn".split()
)
GERMAN += "siebzehn achtzehn neunzehn".split()
GERMAN_TENS = ". . zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()


def english(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    tens, ones = divmod(rest, 10)
    below_100 = ENGLISH[rest] if rest < 20 else ENGLISH_TENS[tens] + (f"-{ENGLISH[ones]}" if ones else "")
    return f"{ENGLISH[hundreds]} hundred" + (f" and {below_100}" if rest else "") if hundreds else below_100


def german(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    tens, ones = divmod(rest, 10)
    below_100 = GERMAN[rest] if rest < 20 else (f"{GERMAN[ones]}und" if ones else "") + GERMAN_TENS[tens]
    below_100 += "s" if rest == 1 else ""
    return f"{GERMAN[hundreds]}hundert" + (below_100 if rest else "") if hundreds else below_100


keras.utils.set_random_seed(1)
pairs = [(english(number), german(number)) for number in range(1000)]
random.Random(1).shuffle(pairs)
training, unseen = pairs[:900], pairs[900:]

"""
## Words to pieces

One SentencePiece vocabulary for both sides. A batch has 32 rows; several pairs share a row, each a segment of its own,
so that little of a batch is padding.
"""

run = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "runs/fit")
run.mkdir(parents=True, exist_ok=True)
kt.train_tokenizer((sentence for pair in training for sentence in pair), run / "tokenizer.model", vocab_size=320)
tokenizer = kt.Tokenizer(run / "tokenizer.model")
batches = kt.dataset_from_pairs(training, tokenizer, rows=32, lengths=(16, 32))
validation = kt.dataset_from_pairs(unseen, tokenizer, rows=32, lengths=(16, 32), shuffle=False)

"""
## The model and its training

The model is a `keras.Model`: `compile` and `fit` are Keras' own. The learning rate is that of the paper: it grows for
200 updates, then falls with the square root of their number.
"""

config = kt.preset("tiny").replace(
    vocab_size=tokenizer.vocab_size, encoder_layers=2, decoder_layers=2, d_model=64, d_ff=128, dropout=0.1
)
with tf.distribute.MirroredStrategy().scope():
    transformer = kt.Transformer(config)
    transformer.compile(
        kt.paper_optimizer(config.d_model, warmup_steps=200, factor=1.0),
        loss=kt.LabelSmoothedCrossentropy(config.label_smoothing),
        metrics=[kt.TokenAccuracy(), kt.Perplexity()],
    )
transformer.fit(batches, validation_data=validation, epochs=EPOCHS, verbose=2)
kt.save_run(transformer, tokenizer, run, check_lines=[source for source, _ in unseen])

"""
## Translations

A beam search over numbers that the training has not seen.
"""

translator = kt.Translator.load(run)
translations = translator.translate([source for source, _ in unseen])
for (source, target), translation in list(zip(unseen, translations, strict=True))[:3]:
    print(f"{source} -> {translation.text}  ({target})")
right = sum(translation.text == target for (_, target), translation in zip(unseen, translations, strict=True))
print(f"{right} of {len(unseen)} unseen numbers are right")
