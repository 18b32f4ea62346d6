"""`keras-transformer import FOLDER RUN`: a model of Marian, or of a family of Hugging Face's, as a run folder.

The command imports Keras itself, so that `--help` answers at once.
"""

import enum
import logging
import math
import pathlib
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import lines_of
from keras_transformer.ground.imports import UNUSED_IN_TRANSLATION, quiet_imports
from keras_transformer.models.hub import download, is_on_hub
from keras_transformer.pieces.language_marks import named

if TYPE_CHECKING:  # it imports NumPy
    from keras_transformer.models.imported.model import ImportedModel

log = logging.getLogger("keras_transformer")
app = command_app()
TAGS_NAMED = 5  # at most, in the log


class Positions(enum.StrEnum):
    """Whose function a folder of Hugging Face is to compute."""

    HUGGINGFACE = "huggingface"
    MARIAN = "marian"


@app.command("import")
def import_model(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of the model, the path of a model.npz in one, or hf://USER/MODEL on the Hugging Face hub.",
            show_default=False,
        ),
    ],
    run: Annotated[
        pathlib.Path, typer.Argument(metavar="RUN", help="The run folder to write: a new one.", show_default=False)
    ],
    check: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Source sentences, one per line, on which `export` compares what it writes.", show_default="none"
        ),
    ] = None,
    positions: Annotated[
        Positions | None,
        typer.Option(
            help="Compute a folder of Hugging Face as Hugging Face does, or as Marian, which trained it and has other "
            "sinusoids.",
            show_default="huggingface",
        ),
    ] = None,
    add_language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE=LIKE",
            help="Add a language to M2M-100, NLLB-200 or mBART-50, for training to start from: CODE begins as LIKE, "
            "one that the model has. May be repeated.",
            show_default="none",
        ),
    ] = None,
):
    """Make a run folder of OPUS-MT, M2M-100, NLLB, mBART or T5.

    FOLDER is one of Marian, with an .npz, decoder.yml, the vocabularies and both .spm or .bpe, or with a vocab.spm; or
    one of Hugging Face's MarianMT, with config.json, model.safetensors or pytorch_model.bin, vocab.json and both .spm;
    or one of its M2M100 or MBart, with the same weights, sentencepiece.bpe.model, and vocab.json or tokenizer.json.

    The run folder works with every command but `train`, which begins from it with training.start_from. Its defaults of
    a search are those of the model.
    """
    with exit_codes():
        began = time.monotonic()
        with quiet_imports(without=UNUSED_IN_TRANSLATION):
            import keras_transformer.runs.saved_run  # noqa: F401  (Keras, which writing needs)
            from keras_transformer.models.imported.folder import import_folder, refuse_existing, write_run
            from keras_transformer.models.imported.grown import with_languages

        refuse_existing(run)
        lines = lines_of(check) if check else []
        model = import_folder(download(folder) if is_on_hub(folder) else folder, positions)
        if add_language:
            model = with_languages(model, map(code_and_like, add_language))
        for line in described(model):
            log.info(line)
        write_run(model, run, lines)
        log.info("%s: written in %.1f seconds", run, time.monotonic() - began)
        print(run)


def code_and_like(addition: str) -> tuple[str, str]:
    """Return both codes of a value of --add-language. Raises ConfigError if these are not two."""
    code, _, like = addition.partition("=")
    if not (code and like):
        raise ConfigError(f"--add-language is {addition!r:.60}; give CODE=LIKE, such as gsw=de.")
    return code, like


def described(model: "ImportedModel") -> Iterable[str]:
    """Yield the lines of the log about a model: its shape, its vocabulary, how it searches, and what was chosen."""
    from keras_transformer.model import embedding_names
    from keras_transformer.models.imported.names import weights_of, weights_of_tokens
    from keras_transformer.models.imported.t5_names import weights_of_blocks

    config, tags, codes = model.config, model.tags(), list(model.languages.target)
    is_t5 = config.positions == "relative"
    weights = [*weights_of_tokens(config), *weights_of_blocks(config)] if is_t5 else weights_of(config)
    parameters = sum(math.prod(weight.shape(config)) for weight in weights if weight.ours in model.values)
    yield (
        f"{model.kind}: {config.encoder_layers} + {config.decoder_layers} layers, d_model {config.d_model}, d_ff "
        f"{config.d_ff}, {config.num_heads} heads, {config.activation}, {config.norm}-norm; {parameters:,} parameters"
    )
    first = ", ".join(tags[:TAGS_NAMED]) + (", ..." if len(tags) > TAGS_NAMED else "")
    targets = f"{len(tags)} tags of target languages: {first}" if tags else "no tags of target languages"
    matrices = len({*embedding_names(config)})
    embeddings = "one matrix" if matrices == 1 else f"{matrices} matrices"
    yield (
        f"{config.vocab_size:,} pieces, {embeddings} of embeddings and logits; "
        + (f"{len(codes)} languages: {named(codes)}" if codes else targets)
    )
    limit = config.position_limit
    positions = f"learned positions: {limit:,}" if limit else f"sinusoids: {config.sinusoids}"
    positions = "relative positions" if is_t5 else positions
    yield f"{positions}, epsilon of {'RMSNorm' if is_t5 else 'LayerNorm'}: {config.norm_epsilon:g}"
    yield "defaults of a search: " + ", ".join(f"{name} {value}" for name, value in model.search.items())
    yield from model.notes


main = program(app, is_long=True)
