"""The arguments and options that the commands share, each written once."""

import pathlib
from typing import Annotated, Literal

import typer

from keras_transformer.commands.options import option_of, takes
from keras_transformer.text.asks import Ask

from .job import Place

Export = Annotated[
    pathlib.Path,
    typer.Argument(metavar="EXPORT", help="The folder of an export, for its newest version; or a LiteRT model."),
]
Source = Annotated[
    str,
    typer.Option("--from", metavar="IN", help="A file, a folder of files or a pattern, on any file system of Spark."),
]
Target = Annotated[str, typer.Option("--to", metavar="OUT", help="A new folder for the output, as OUT/part-*.")]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark's master: spark://HOST:PORT, k8s://https://HOST:PORT or yarn.",
        show_default="the cores of this machine",
    ),
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="A setting of Spark, such as spark.executor.memory=4g; may be repeated.",
        default_factory=list,
        show_default="none",
    ),
]
PartBytes = Annotated[int, typer.Option(min=1, help="Bytes of the input in one part, which a worker computes alone.")]
FileFormat = Annotated[
    Literal["text", "jsonl", "tsv", "parquet"] | None,
    typer.Option(help="Of the input and the output.", show_default="as the name ends"),
]
Column = Annotated[
    str, typer.Option(metavar="NAME", help="The column of sentences; of TSV its number.", show_default="text, or 1")
]
SecondColumn = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="The column of the other side; of TSV its number.", show_default="its name, or 2"
    ),
]
Scripts = Annotated[
    list[str],
    typer.Option(
        metavar="NAME",
        help="Letters of that side that are mostly of no such script, as LATIN; may be repeated.",
        default_factory=list,
        show_default="none",
    ),
]
SourceLanguage = Annotated[str, typer.Option(help="As --from of `translate`.", show_default="the only one")]
TargetLanguage = Annotated[str, typer.Option(help="As --to of `translate`.", show_default="the only one")]
WithConfidence = Annotated[
    bool,
    typer.Option(
        "--confidence",
        help="A column of how likely each translation is good, from 0 to 1; of the export of a calibrated run.",
    ),
]
PART_BYTES = 2**20

# Give a command the options of a Place in place of its parameter `place`
takes_place = takes(
    "place",
    [
        option_of("source", Source),
        option_of("target", Target),
        option_of("settings", Settings),
        option_of("master", Master, None),
        option_of("part_bytes", PartBytes, PART_BYTES),
    ],
    Place,
)
# Give a command the options of languages in place of its parameter `ask`, which names them
takes_languages = takes(
    "ask", [option_of("source_language", SourceLanguage, ""), option_of("target_language", TargetLanguage, "")], Ask
)
