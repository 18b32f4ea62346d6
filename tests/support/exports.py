"""An exported version, written quickly: unnumbered, unchecked, of a model that never trained."""

import inspect

import numpy as np
import tensorflow as tf

from export.graph.served_graph import ServedGraph
from export.graph.version_folder import write_saved_model
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.shortlist.shortlist import shortlist_of
from keras_transformer.translation.translator import Translator

OPTIONS = SearchOptions(extra_length=12)


def write_version(run, folder, options=OPTIONS, max_source_tokens=512, names=("serving_default",)):
    """Export a run into `folder` as it is, unnumbered and unchecked. Returns a Translator of the same run.

    Each signature takes seconds to write; `names` are those that there shall be, () all.
    """
    transformer, tokenizer = load_run(run)
    shortlist = shortlist_of(RunFolder(run), options)
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens, shortlist=shortlist)
    graph = ServedGraph(transformer, tokenizer, options, translator.max_source_tokens, shortlist=shortlist)
    write_saved_model(graph, tokenizer, folder, names)
    return translator


def asker(served):
    """A function of a signature's name, lines and options, which fills in the defaults as a server does."""
    signatures = served.signatures()

    def answer(name, lines, **given):
        function = signatures[name]
        parameters = inspect.signature(function.python_function).parameters
        defaults = {
            key: one.default for key, one in parameters.items() if key != "text" and one.default is not one.empty
        }
        given = {
            key: tf.constant(np.reshape(value, -1), defaults[key].dtype if key in defaults else tf.string)
            for key, value in given.items()
        }
        found = function(text=tf.constant(lines, tf.string), **(defaults | given))
        return {key: value.numpy() for key, value in found.items()}

    return answer
