"""`keras-transformer software`: make a corpus of what free programs say, from Debian packages.

LibreOffice's help and the messages of its programs (MPL-2.0), by default; catalogues of other packages if asked for.
"""

import json
import logging
import pathlib
import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.signals import end_on_interrupt
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import write_atomically
from keras_transformer.pieces.languages import CODE

from .corpus import is_wanted, split_pairs
from .packages import Package, download, packages_in
from .split import AlignedText

log = logging.getLogger("train")
app = command_app()


@app.command()
def software(
    to: Annotated[pathlib.Path, typer.Option(help="The folder to write into.")] = pathlib.Path("data/software"),
    languages: Annotated[str, typer.Option(metavar="CODES", help="Target languages, such as de,fr.")] = "de",
    place: Annotated[
        pathlib.Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="A folder with .deb files, or with the contents of packages; by default they are downloaded by apt.",
        ),
    ] = None,
    packages: Annotated[
        str, typer.Option(metavar="NAMES", help="More packages to download, for their catalogues: git,wget.")
    ] = "",
) -> None:
    """Make a corpus of the text of free software.

    It has English beside each of the languages: LibreOffice's help and the messages of its programs.

    Each split is a file of three columns: source, target, and the page or catalogue that they are from.
    """
    with exit_codes():
        codes = [code.strip() for code in languages.split(",")]
        if wrong := next((code for code in codes if not CODE.fullmatch(code)), None):
            raise ConfigError(f"--languages has {wrong!r}, which is no code of a language: give codes such as de,fr.")
        more = [name.strip() for name in packages.split(",") if name.strip()]
        make_corpus(to, codes, read_packages(place, [*default_packages(codes), *more]))


def default_packages(codes: Sequence[str]) -> list[str]:
    """The names of LibreOffice's packages of these languages."""
    names = [f"libreoffice-{part}-{code.lower()}" for code in codes for part in ("help", "l10n")]
    return ["libreoffice-help-en-us", *names]


def read_packages(place: pathlib.Path | None, names: Sequence[str]) -> list[Package]:
    """The packages in a folder, or those of these names, downloaded into a temporary folder."""
    if place is not None:
        return packages_in(place, is_wanted)
    with tempfile.TemporaryDirectory() as folder:
        log.info("apt-get download %s", " ".join(names))
        download(names, pathlib.Path(folder))
        return packages_in(pathlib.Path(folder), is_wanted)


def make_corpus(folder: pathlib.Path, codes: Sequence[str], packages: Sequence[Package]) -> None:
    """Write en-CODE/SPLIT.tsv for each language, and record.json: packages, licences, counts."""
    record: dict = {
        "packages": [{key: getattr(each, key) for key in Package._fields if key != "files"} for each in packages]
    }
    for code in codes:
        counts: Counter = Counter()
        splits = split_pairs(packages, code, counts)
        (folder / f"en-{code}").mkdir(parents=True, exist_ok=True)
        for name, pairs in splits.items():
            path = folder / f"en-{code}" / f"{name}.tsv"
            write_atomically(path, "".join("\t".join(pair) + "\n" for pair in pairs))
            log.info("%s: %s", path, sizes_sentence(pairs))
        record[f"en-{code}"] = {
            "splits": {name: sizes_of(pairs) for name, pairs in splits.items()},
            "counts": {reason: count for reason, count in sorted(counts.items()) if count},
        }
        for reason, count in sorted(counts.items()):
            if count:
                log.info("en-%s: %s %s", code, f"{count:,}", reason)
    for package in packages:
        log.info("%s %s: %s", package.name, package.version, package.licence)
    write_atomically(folder / "record.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def sizes_of(pairs: Sequence[AlignedText]) -> dict[str, int]:
    """How many pairs, documents and words a split has."""
    return {
        "pairs": len(pairs),
        "documents": len({pair.document for pair in pairs}),
        "source_words": sum(len(pair.source.split()) for pair in pairs),
        "target_words": sum(len(pair.target.split()) for pair in pairs),
    }


def sizes_sentence(pairs: Sequence[AlignedText]) -> str:
    sizes = sizes_of(pairs)
    return f"{sizes['pairs']:,} pairs of {sizes['documents']:,} documents, {sizes['source_words']:,} source words"


main = program(app, is_long=True, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
