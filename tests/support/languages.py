"""Models of languages that translate at once: a sentence becomes "To de: " and itself, which shows its route."""

import functools
import json

import tensorflow as tf

COLUMNS = 3  # translations of a sentence, at most
LONGEST = 60  # bytes of a sentence
TEXT = tf.TensorSpec([None], tf.string, name="text")
ONE, NONE, ALL = tf.constant([1]), tf.constant([""]), tf.constant([COLUMNS])
NUMBERS = [tf.TensorSpec([None], tf.int32, name=name) for name in ("n_best", "beam_size")]


def translated(text, n_best, target):
    """The outputs of a signature `translate`: of rank 2 and 3, "To de2: " and "To de3: " stand before the sentence."""
    rows = tf.shape(text)[0]
    numbers = tf.constant(["", *map(str, range(2, COLUMNS + 1))])
    found = "To " + tf.broadcast_to(target, [rows])[:, None] + numbers[None] + ": " + text[:, None]
    is_asked = tf.range(COLUMNS)[None] < tf.broadcast_to(n_best, [rows])[:, None]
    tf.debugging.assert_less_equal(n_best, COLUMNS, f"n_best must be from 1 to {COLUMNS}")
    is_found = is_asked & (tf.strings.length(text) > 0)[:, None]
    scores = tf.where(is_found, -1.0 - tf.range(3.0)[None], -1e9)
    nothing = tf.fill([rows, COLUMNS], "")
    return {
        "translations": tf.where(is_found, found, ""),
        "scores": scores,
        "log_probabilities": scores,
        "alignments": nothing,
        "is_cut": tf.fill([rows, COLUMNS], False),
        "truncated": tf.strings.length(text) > LONGEST,
    }


class OfOnePair(tf.Module):
    """Translates into one language."""

    def __init__(self, target):
        super().__init__()
        self.target = tf.Variable(target)

    @tf.function(input_signature=[TEXT, *NUMBERS], autograph=False)
    def translate(self, text, n_best=ONE, beam_size=ALL):
        return translated(text, n_best, self.target)


class OfMany(tf.Module):
    """Translates into the language that it is told; "source-target" stands before each sentence."""

    @tf.function(
        input_signature=[
            TEXT,
            tf.TensorSpec([None], tf.int32, name="n_best"),
            tf.TensorSpec([None], tf.string, name="source_language"),
            tf.TensorSpec([None], tf.string, name="target_language"),
        ],
        autograph=False,
    )
    def translate(self, text, n_best=ONE, source_language=NONE, target_language=NONE):
        return translated(text, n_best, source_language + "-" + target_language)


def write_pair(folder, source, target):
    """Write a version that translates one language into another. Returns its path."""
    return written(OfOnePair(target), folder, [source], [target])


def write_many(folder, source, target):
    """Write a version that is told which of these languages it translates. Returns its path."""
    return written(OfMany(), folder, source, target)


def written(model, folder, source, target):
    tf.saved_model.save(model, str(folder), {"serving_default": model.translate, "translate": model.translate})
    tell(folder, source=dict.fromkeys(source, ""), target=dict.fromkeys(target, ""))
    return folder


def tell(folder, **languages):
    """Write what the local server reads of the languages of a version."""
    file = folder / "assets.extra" / "languages.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(languages), encoding="utf-8")


CONFIG = 'config {{ name: "{}" base_path: "{}" model_platform: "tensorflow" }}'


def write_models(folder, **written):
    """Write a file of models. `written`: of each, by its name, a function that writes a version into a folder."""
    for name, write in written.items():
        write(folder / name / "1")
    configs = " ".join(CONFIG.format(name, folder / name) for name in written)
    (folder / "models.config").write_text(f"model_config_list {{ {configs} }}", encoding="utf-8")
    return folder / "models.config"


def pair(source, target):
    return functools.partial(write_pair, source=source, target=target)


def many(source, target):
    return functools.partial(write_many, source=source, target=target)
