"""Train a translating model with stock `model.fit`, from sentence pairs to translations.

    python examples/fit.py [RUN]        EPOCHS=1 makes it short

It learns spelled-out numbers from English to German, trains on every GPU of this machine (without one, on the CPU) and
needs nothing but the library. It leaves a run folder, RUN or runs/fit, which `keras-transformer translate` opens. On
2 CPU cores it takes 1 min 40 s of processor time; the end of its output:

    two hundred and forty-eight -> zweihundertachtundvierzig  (zweihundertachtundvierzig)
    four hundred and ninety-one -> vierhundertneunundneunzig  (vierhunderteinundneunzig)
    thirty-five -> fünfunddreißig  (fünfunddreißig)
    96 of 100 unseen numbers are right
"""

import os
import pathlib
import random
import sys

import keras
import tensorflow as tf

import keras_transformer as kt

EPOCHS = int(os.environ.get("EPOCHS", 20))
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

run = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "runs/fit")
run.mkdir(parents=True, exist_ok=True)
kt.train_tokenizer((sentence for pair in training for sentence in pair), run / "tokenizer.model", vocab_size=320)
tokenizer = kt.Tokenizer(run / "tokenizer.model")
batches = kt.dataset_from_pairs(training, tokenizer, rows=32, lengths=(16, 32))
validation = kt.dataset_from_pairs(unseen, tokenizer, rows=32, lengths=(16, 32), shuffle=False)

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

translator = kt.Translator.load(run)
translations = translator.translate([source for source, _ in unseen])
for (source, target), translation in list(zip(unseen, translations, strict=True))[:3]:
    print(f"{source} -> {translation.text}  ({target})")
right = sum(translation.text == target for (_, target), translation in zip(unseen, translations, strict=True))
print(f"{right} of {len(unseen)} unseen numbers are right")
