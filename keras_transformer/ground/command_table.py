"""The commands of `keras-transformer`: of each its name, its module and the first line of its help.

A table of strings, so that `keras-transformer --help` imports no command. A command imports TensorFlow when it runs.
"""

from typing import NamedTuple

DISTRIBUTION = "keras-transformer-mt"  # what pip installs


class Command(NamedTuple):
    """One row of the table.

    module: has `main(prog_name, arguments)`, which runs the command, and `app`, its Typer application. Its name is that
    in a checkout: an installed program has "train.evaluate" as "keras_transformer.train.evaluate".
    extra: of this distribution, the one that brings what the command imports; "" if it needs none.
    """

    module: str
    extra: str
    help: str


GROUPS = {
    "Train": {
        "train": Command("train.__main__", "train", "Train a model as CONFIG says, or continue its run."),
        "evaluate": Command("train.evaluate", "train", "Translate a test set with a run and score the translations."),
        "compare": Command("train.compare", "train", "Print where runs differ: settings, scores, speed, minutes."),
        "distil": Command("train.distil", "train", "Write the translations nearest to the references of a text."),
        "calibrate": Command("train.calibrate", "train", "Fit to validation text how sure a run's translations are."),
        "projector": Command("train.projector", "train", "Write a run's embeddings for TensorBoard's tab PROJECTOR."),
        "multi30k": Command("train.data.multi30k", "train", "Put the Multi30k corpus into a folder."),
        "software": Command("train.data.software.command", "train", "Make a corpus of the text of free software."),
    },
    "Translate": {
        "translate": Command(
            "keras_transformer.commands.translate",
            "",
            "Translate lines, paragraphs or a file with a trained run.",
        ),
        "score": Command("keras_transformer.commands.score", "", "Print how probable a run finds given translations."),
        "explain": Command(
            "keras_transformer.commands.explain", "", "Write a page that shows how a run translates a sentence."
        ),
        "shortlist": Command(
            "keras_transformer.commands.shortlist",
            "",
            "Build the shortlist with which a run translates faster.",
        ),
        "align": Command("keras_transformer.commands.align", "", "Choose the attention with which a run aligns words."),
    },
    "Import": {
        "import": Command(
            "keras_transformer.commands.import_model",
            "",
            "Make a run folder of OPUS-MT, M2M-100, NLLB, mBART or T5.",
        ),
    },
    "Export and serve": {
        "export": Command("export.__main__", "serve", "Export a run, and check that the export translates alike."),
        "translate-export": Command(
            "export.translate",
            "serve",
            "Translate lines, paragraphs or a file with an export alone.",
        ),
        "serve": Command("export.serve", "serve", "Serve exports over HTTP and gRPC, with a page to try them."),
        "query": Command("export.query", "serve", "Translate lines, paragraphs or a file with a server."),
    },
    "On many machines": {
        "cluster": Command("cluster.__main__", "cluster", "Translate a corpus on Spark."),
    },
    "Look after it": {
        "doctor": Command("keras_transformer.commands.doctor", "", "Print what is missing here, and what to do."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
