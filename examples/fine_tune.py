"""Go on from a run folder: load it, train on other pairs with stock `fit`, translate, write a new run folder.

    python examples/fit.py runs/fit
    python examples/fine_tune.py [RUN [NEW_RUN]]        EPOCHS=1 makes it short

RUN (runs/fit, or any run of `keras-transformer train configs/numbers.toml`) writes "einhundertsieben" for 107. Here it
learns a house style from its own translations: "hundertsieben", with every other number as before. On 2 CPU cores it
takes 45 s of processor time; the end of its output:

    one hundred and twenty-three -> hundertdreiundzwanzig
    two hundred and ninety-four -> zweihundertvierundneunzig
    three hundred and eighty-seven -> dreihundertsiebenundachtzig
    35 of 36 unseen numbers are in the house style
"""

import os
import pathlib
import random
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"  # with which a Translator searches, whatever ~/.keras says

import keras

import keras_transformer as kt

EPOCHS = int(os.environ.get("EPOCHS", 4))
run = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "runs/fit")
new_run = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else f"{run}_house_style")
if new_run.exists():
    sys.exit(f"{new_run} exists already: name another folder, or remove it.")

keras.utils.set_random_seed(1)
transformer, tokenizer = kt.load_run(run)
ones = "one two three four five six seven eight nine".split()
tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
sources = [f"{hundreds} hundred and {ten}-{one}" for hundreds in ones[:3] for ten in tens for one in ones]
random.Random(1).shuffle(sources)
translations = kt.Translator(transformer, tokenizer).translate(sources)
pairs = [
    (source, translation.text.replace("einhundert", "hundert") or "?")
    for source, translation in zip(sources, translations, strict=True)
]
training, unseen = pairs[:180], pairs[180:]

transformer.compile(
    keras.optimizers.Adam(5e-4),  # no warm-up: the weights are good already
    loss=kt.LabelSmoothedCrossentropy(0.1),
    metrics=[kt.TokenAccuracy()],
)
dataset = kt.dataset_from_pairs(training, tokenizer, rows=16, skip_unusable=True)  # logs how many are too long
transformer.fit(dataset, epochs=EPOCHS, verbose=2)

kt.save_run(transformer, tokenizer, new_run, check_lines=[source for source, _ in unseen])

found = kt.Translator.load(new_run).translate([source for source, _ in unseen])
for (source, _), translation in list(zip(unseen, found, strict=True))[:3]:
    print(f"{source} -> {translation.text}")
right = sum(translation.text == target for (_, target), translation in zip(unseen, found, strict=True))
print(f"{right} of {len(unseen)} unseen numbers are in the house style")
