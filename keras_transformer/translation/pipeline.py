"""The translation pipeline of transformers 4, by the models and searches of this project.

transformers 5 has none (huggingface/transformers, pull request 43256). Importing this module imports neither TensorFlow
nor Keras.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.pieces.batching import BATCH_SIZE, list_of_lines
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.search.options import OPTIONS
from keras_transformer.text.asks import SOURCE_LANGUAGE, TARGET_LANGUAGE
from keras_transformer.text.road import Engine, refusal
from keras_transformer.translation.generation import NAMES, READ, Asked, read
from keras_transformer.translation.opening import FLOAT32, open_engine

TASK = re.compile(r"translation(_(?P<source>.+)_to_(?P<target>.+))?")
PRECISIONS = {"None": FLOAT32, "auto": FLOAT32, "float32": FLOAT32, "bfloat16": "bfloat16"}
BEFORE_PUNCTUATION, BEFORE_SHORTHAND = re.compile(r" (?=[.?!,])"), re.compile(r" (?=n't|'m|'s|'ve|'re)")
KEPT_SEARCHES = 8  # of a pipeline, by their options: each one is compiled when it first translates
Found = dict[str, str]


def pipeline(
    task: str = "translation",
    model: str | os.PathLike | Engine | None = None,
    *,
    tokenizer: Any = None,
    revision: str | None = None,
    device: Any = None,
    dtype: Any = None,
    torch_dtype: Any = None,
    **arguments: Any,
) -> "TranslationPipeline":
    """Return what translates as the translation pipeline of transformers 4 did.

        translate = kt.pipeline("translation", model="Helsinki-NLP/opus-mt-en-de")
        translate("Good morning.")                      # [{"translation_text": "Guten Morgen."}]
        translate(["Good morning.", "Thank you."], num_beams=6)

    Args:
        task: "translation", or "translation_XX_to_YY", which names the languages.
        model: a run folder, a preset, an export, a LiteRT model, a folder of MarianMT, OPUS-MT or Marian;
            "hf://USER/MODEL", or "USER/MODEL" on the Hugging Face hub; or what has opened one, such as kt.Translator.
        revision: of a model on the hub.
        dtype, or torch_dtype: "float32" or "bfloat16", or a dtype of torch of that name.
        arguments: those of a call, for all calls: see `TranslationPipeline`.

    `tokenizer` and `device` may be the model's own. Raises UserError for what is not to be had or not understood.
    """
    match = TASK.fullmatch(task) if isinstance(task, str) else None
    if match is None:
        raise ConfigError(f"The task is {task!r:.60}; it must be 'translation' or 'translation_XX_to_YY'.")
    if model is None or (isinstance(model, str) and not model):
        raise ConfigError("A pipeline has no model of its own: name one, such as model='Helsinki-NLP/opus-mt-en-de'.")
    if not isinstance(model, str | os.PathLike | Engine):
        raise ConfigError(f"The model is {model!r:.60}; it must be a name, a folder, or what has opened one here.")
    if tokenizer is not None and tokenizer != model:
        raise ConfigError(f"A model has its own tokenizer: leave tokenizer={tokenizer!r:.60} out.")
    precision = precision_of(torch_dtype if dtype is None else dtype)
    read(arguments, beam_size=LARGEST_BEAM)  # before a model is opened, which takes time
    if isinstance(model, Engine):
        if revision is not None or precision != FLOAT32:
            raise ConfigError("The model is open already: leave revision and dtype out.")
        engine = model
    else:
        name = model if revision is None else f"{os.fspath(model)}@{revision}"
        engine = open_engine(name, arguments.get("batch_size") or BATCH_SIZE, precision)
    check_device(device)
    return TranslationPipeline(engine, task, {**languages_in(match, arguments), **arguments})


LARGEST_BEAM = int(OPTIONS["beam_size"].highest)


def precision_of(dtype: Any) -> str:
    """Return the precision that a dtype names. Raises ConfigError for another one than there is."""
    name = str(dtype).removeprefix("torch.")
    if name not in PRECISIONS:
        raise ConfigError(f"dtype is {name:.60}; it must be float32 or bfloat16.")
    return PRECISIONS[name]


def check_device(device: Any) -> None:
    """Raises ConfigError if a GPU is named and TensorFlow sees none; it computes on the one that it sees."""
    if str(device) in ("None", "-1", "cpu", "cpu:0"):
        return
    from keras_transformer.translation.parallel import sees_gpu

    if not sees_gpu():
        raise ConfigError(f"device is {str(device):.60}, but TensorFlow sees no GPU here: leave it out.")


def languages_in(match: re.Match[str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the languages in the name of a task, as arguments, unless one of them is an argument already."""
    if match["source"] is None or arguments.get("src_lang") or arguments.get("tgt_lang"):
        return {}
    return {"src_lang": match["source"], "tgt_lang": match["target"]}


class TranslationPipeline:
    """Translates a text, a list of texts, or as many as an iterable has.

    Returns a list with a dictionary {"translation_text": ...} for a text; for a list of texts a list of such
    dictionaries, or with `num_return_sequences` above 1 a list of such lists. Of another iterable, such as a generator
    or a dataset, it returns an iterator over lists of them, which reads as many texts at once as `batch_size` says,
    when the first of them is asked for.

    Arguments of a call, which win over those of `pipeline`: src_lang, tgt_lang, batch_size,
    clean_up_tokenization_spaces, num_beams, num_return_sequences, length_penalty, do_sample, temperature, top_k, top_p,
    max_length, max_new_tokens, min_length, min_new_tokens, no_repeat_ngram_size, repetition_penalty, as transformers
    means them, and seed, of samples. docs/from_transformers.md has the others, and what differs.

    Raises ConfigError for an argument that is not understood, and InputError for a text that cannot be read.
    """

    def __init__(self, engine: Engine, task: str, arguments: Mapping[str, Any]):
        self.engine, self.task, self._arguments = engine, task, dict(arguments)
        self._engines: dict[tuple[tuple[str, Any], ...], Engine] = {}

    def __call__(self, texts: str | Iterable[str], **arguments: Any) -> list | Iterator[list[Found]]:
        own = self.engine.option
        asked = read({**self._arguments, **arguments}, own("beam_size", self.engine.beam_size), own("extra_length", 0))
        engine = self._engine_of(asked.search)
        asked = of_model(asked, engine)
        if isinstance(texts, str):
            return translated(engine, [texts], asked, 1)[0]
        if isinstance(texts, list | tuple):
            found = translated(engine, texts, asked, 1)
            return found if asked.n_best > 1 else [best for best, *_ in found]
        return in_batches(engine, items_of(texts), asked)

    def _engine_of(self, search: Mapping[str, Any]) -> Engine:
        """Return an engine with these options, which is made once."""
        key = tuple(sorted(search.items()))
        if key not in self._engines:
            while len(self._engines) >= KEPT_SEARCHES:
                del self._engines[next(iter(self._engines))]
            self._engines[key] = searching(self.engine, search)
        return self._engines[key]


def searching(engine: Engine, search: Mapping[str, Any]) -> Engine:
    """Return an engine that searches with these options, as far as they are not its own.

    An export has a longest output of its own, which is lowered alone. Raises ConfigError, with the names of arguments,
    for what an engine does not take.
    """
    options = {name: value for name, value in search.items() if value != engine.own_option(name)}
    if not options:
        return engine
    taken = engine.searches
    if "extra_length" not in taken:
        options.pop("extra_length", None)
    if "length_normalization" in options.keys() - taken:
        raise ConfigError(
            f"{engine.name} does not take length_penalty as transformers means it, since it divides log P by another "
            "power than tokens^alpha, or does not tell. The folder of the run takes it."
        )
    able = {NAMES.get(name, name) for name in taken} & set(READ)
    if sentence := refusal(engine.name, {NAMES.get(name, name) for name in options.keys() - taken}, able):
        raise ConfigError(f"{sentence} The folder of the run takes all.")
    return engine.with_options(options) if options else engine


def of_model(asked: Asked, engine: Engine) -> Asked:
    """Return what is asked without a language of a side whose languages the model does not tell.

    transformers ignores the languages of a model of one pair, too. A language that a model does tell that it lacks is
    refused when it translates.
    """
    known = engine.languages
    inputs = engine.abilities if known == NO_LANGUAGES else frozenset()  # of a server, which checks them
    return asked._replace(
        source_language=asked.source_language if known.source or SOURCE_LANGUAGE in inputs else "",
        target_language=asked.target_language if known.target or TARGET_LANGUAGE in inputs else "",
    )


def items_of(texts: Any) -> Iterator[str]:
    """Return an iterator over a dataset, or anything else that yields texts. Raises ConfigError for anything else."""
    if isinstance(texts, bytes | Mapping) or not (hasattr(texts, "__iter__") or hasattr(texts, "__getitem__")):
        raise ConfigError(
            f"A pipeline translates a text, a list of texts or an iterable of them. Received: {texts!r:.60}"
        )
    if hasattr(texts, "__iter__"):
        return iter(texts)
    return (texts[number] for number in range(len(texts)))


def in_batches(engine: Engine, texts: Iterator[str], asked: Asked) -> Iterator[list[Found]]:
    """Yield the translations of each text, in their order; texts are read in batches."""
    first = 1
    while batch := list(itertools.islice(texts, asked.batch_size or BATCH_SIZE)):
        yield from translated(engine, batch, asked, first)
        first += len(batch)


def translated(engine: Engine, texts: Sequence[str], asked: Asked, first: int) -> list[list[Found]]:
    """Return the translations of each text, best first; the first text has this number in warnings."""
    if wrong := [number for number, text in enumerate(texts) if not isinstance(text, str)]:
        raise InputError(f"Text {first + wrong[0]} is {texts[wrong[0]]!r:.60}; it must be a string.")
    found = engine.translate_n_best(
        list_of_lines(texts, "Text"),
        first_line=first,
        source_language=asked.source_language,
        target_language=asked.target_language,
    )
    clean = without_spaces if asked.cleans_up else str.strip  # as MarianTokenizer decodes
    return [[{"translation_text": clean(each.text)} for each in of_text[: asked.n_best]] for of_text in found]


def without_spaces(text: str) -> str:
    """Return a text without the spaces that a tokenizer of words leaves before punctuation and in English shorthand."""
    return BEFORE_SHORTHAND.sub("", BEFORE_PUNCTUATION.sub("", text.strip()).replace(" ' ", "'"))
