"""`keras-transformer multi30k`: put the Multi30k corpus into data/multi30k, each file checked by its SHA-256.

Multi30k (Elliott et al. 2016; French: Elliott et al. 2017), task 1: one English, German and French description of each
of 31,014 images of Flickr30k, for non-commercial research and education. Task 2 has five captions in English and five
in German of each of them, none of which is a translation.
"""

import gzip
import hashlib
import logging
import pathlib
import zlib
from collections.abc import Mapping
from typing import Annotated

import typer

from keras_transformer.commands.console import command_app, exit_codes, program
from keras_transformer.commands.signals import end_on_interrupt
from keras_transformer.ground.errors import UserError, message_of
from keras_transformer.ground.files import unpacked_lines, write_atomically

from .files import CAPTIONS, MULTI30K

REPOSITORY = "https://github.com/multi30k/dataset"
COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
DOWNLOADS = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw"
CAPTION_DOWNLOADS = DOWNLOADS.replace("task1", "task2")
BESIDE = pathlib.Path("../shared/data/multi30k")  # a copy beside the checkout, which needs no network
TIMEOUT = 30  # seconds without an answer or without data
RETRIES = 3

# SHA-256 of the unpacked text, so that a file that was packed again is the same file.
SUMS = {
    "train.en.gz": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.de.gz": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.fr.gz": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "val.en.gz": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.de.gz": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.fr.gz": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "test_2016_flickr.en.gz": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.de.gz": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.fr.gz": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
}
CAPTION_SUMS = {  # of task 2: the i-th caption of each image of the training text
    "train.1.en.gz": "636e949e8a5ae49bf4643e5566cd5400359328003937db2840d0910d85a820d8",
    "train.2.en.gz": "18088d31a798cae6c90ae89bedd0c0e60601f9411438f38103036f830b3f9f72",
    "train.3.en.gz": "03b7594e8a2145e2178d07342b776d006a8722aca298b415c4cb465afe217ed4",
    "train.4.en.gz": "6fc0e7b4b6b59e8e19af79b44fe28dd21f0258a58db290e34e96020df44e0f59",
    "train.5.en.gz": "4ad11df3e1a83e3785d8bab96b68668875ff7f6146744c28bf6766240e7fe9f5",
    "train.1.de.gz": "8372eef31ce1e3752305606ebea5c85184b693f8a97b242a5fa69846657c10c1",
    "train.2.de.gz": "94fd5a5e3be50f056eccf54612dbc129a2b387c185e7008a539f046fa4c17a30",
    "train.3.de.gz": "b73442caefe91d691493fb005cd4a9ebf8e42b35f7cd2e0e6a41938a75637df6",
    "train.4.de.gz": "cf016e3de76e074a639c4f904748c96268467b36c5085e8d54b3720cb8366319",
    "train.5.de.gz": "0d3645d0a8cec8150fa63d3e5879fb78eb21be1ea92bdb4094be556bfdab51f5",
}
WORDS, ENDS = range(3, 51), (".", "!", "?")  # of a caption that is kept
BY_HAND = (
    f"Or download the files from {REPOSITORY} (folders data/task1/raw and, for captions, data/task2/raw) by hand "
    "into one folder and run `make multi30k FROM=FOLDER`."
)

log = logging.getLogger("train")
app = command_app()


@app.command()
def multi30k(
    place: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FOLDER|URL",
            help=f"Where the .gz files are; by default {BESIDE} if that folder exists, else {REPOSITORY}.",
        ),
    ] = "",
    to: Annotated[pathlib.Path, typer.Option(help="The folder to put them into.")] = MULTI30K,
    captions: Annotated[
        bool,
        typer.Option(
            "--captions",
            help="And captions.en and captions.de: the captions of task 2, five in each language for an image "
            "of the training text, none a translation of another. Those are kept that are written as a sentence, of "
            f"{WORDS[0]} to {WORDS[-1]} words, and are no line of the nine files; each once.",
        ),
    ] = False,
) -> None:
    """Put the Multi30k corpus into a folder.

    It has the nine files that the configurations read.

    Files that are there already and intact are kept, so the same command continues after an error.
    """
    with exit_codes():
        put_files(place or (str(BESIDE) if BESIDE.is_dir() else DOWNLOADS), to, SUMS)
        if captions:
            put_files(place or CAPTION_DOWNLOADS, to, CAPTION_SUMS)
            write_captions(to)
        log.info(f"{to} is complete. Multi30k is for non-commercial research and education only.")


def write_captions(folder: pathlib.Path) -> None:
    """Write captions.en and captions.de from the files of SUMS and CAPTION_SUMS in `folder`."""
    for language in ("en", "de"):
        pairs, captions = (
            [
                " ".join(line.split())
                for name in sums
                if name.endswith(f".{language}.gz")
                for line in unpacked_lines(folder / name)
            ]
            for sums in (SUMS, CAPTION_SUMS)
        )
        known = set(pairs)
        new = [line for line in dict.fromkeys(captions) if line not in known and is_sentence(line)]
        path = folder / f"{CAPTIONS}.{language}"
        write_atomically(path, "".join(f"{line}\n" for line in new))
        log.info(f"{path}: {len(new):,} captions")


def is_sentence(line: str) -> bool:
    """Whether a caption begins with a capital letter, has an end and is neither very short nor very long.

    Others are written in haste, often without any capitals: a model that learns them leaves out full stops.
    """
    return line[:1].isupper() and line.endswith(ENDS) and len(line.split()) in WORDS


def put_files(place: str, folder: pathlib.Path, sums: Mapping[str, str]) -> None:
    """Copy or download every file of `sums` from `place`, a folder or a URL, into `folder`, one after the other.

    Raises UserError for the first file that cannot be had or is not the one that `sums` describes.
    """
    is_url = place.startswith(("http://", "https://"))
    if not is_url and not pathlib.Path(place).is_dir():
        raise UserError(f"--from is {place}, which is neither a folder nor a URL. {BY_HAND}")
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, expected) in enumerate(sums.items(), start=1):
        target = folder / name
        if target.is_file() and sum_of_text(target.read_bytes()) == expected:
            log.info(f"{number} of {len(sums)}: {target} is there already")
            continue
        origin = f"{place.rstrip('/')}/{name}"
        content = download(origin) if is_url else read_file(pathlib.Path(origin))
        check_sum(content, expected, origin)
        write_atomically(target, content)
        log.info(f"{number} of {len(sums)}: {target}, {len(content):,} bytes from {origin}")


def read_file(path: pathlib.Path) -> bytes:
    """The content of a file. Raises UserError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. --from must be a folder with all files.") from None


def download(url: str) -> bytes:
    """The content of a URL. Raises UserError if the server cannot be reached, refuses, or breaks off."""
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3 import Retry

    logging.getLogger("urllib3").setLevel(logging.ERROR)  # else each retry is a warning with addresses of objects
    retries = Retry(RETRIES, backoff_factor=0.3, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False)
    with requests.Session() as session:
        session.mount(url, HTTPAdapter(max_retries=retries))
        try:
            response = session.get(url, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"})
        except requests.RequestException as error:
            raise UserError(
                f"{url} cannot be downloaded: {reason_of(error)}. Check the network and run the same command again; "
                f"complete files are kept. {BY_HAND}"
            ) from None
    if not response.ok:
        raise UserError(
            f"{url} cannot be downloaded: the server answers {response.status_code} {response.reason}. {BY_HAND}"
        )
    return response.content


def reason_of(error: BaseException) -> str:
    """The innermost cause of an exception, in one line: the outer ones repeat it with addresses of objects."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return f"{type(error).__name__}: {message_of(error)}".replace("\n", " ")


def sum_of_text(content: bytes) -> str | None:
    """SHA-256 of the text that is packed in `content`, None if it is not a complete gzip stream."""
    try:
        return hashlib.sha256(gzip.decompress(content)).hexdigest()
    except (OSError, EOFError, zlib.error):
        return None


def check_sum(content: bytes, expected: str, origin: str) -> None:
    """Raises UserError if `content` is damaged or another text."""
    digest = sum_of_text(content)
    if digest is None:
        raise UserError(
            f"{origin} ({len(content):,} bytes) is not a complete gzip file: run the same command again. {BY_HAND}"
        )
    if digest != expected:
        raise UserError(
            f"{origin} is not the file of Multi30k: the SHA-256 of its unpacked text is {digest}, expected {expected}. "
            f"{BY_HAND}"
        )


main = program(app, is_long=True, ends=end_on_interrupt)


if __name__ == "__main__":
    main()
