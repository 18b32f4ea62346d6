"""Whether an export is whole: a SavedModel with its versions, a LiteRT model, one for CTranslate2 or transformers."""

import pathlib
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from keras_transformer.doctor.finding import Finding, missing, note, ok
from keras_transformer.doctor.packages import tensorflow_name, version_of
from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.files import files_in
from keras_transformer.ground.notations import json_of
from keras_transformer.models.imported.families import FAMILIES
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.runs.lite_folder import DESCRIPTION, IDENTIFIER, Description, LiteFolder, why_damaged
from keras_transformer.runs.run_folder import SAVED_MODEL
from keras_transformer.runs.versions import CERTIFICATE, LITERT, UNFINISHED, WARM_UP_REQUESTS

AGAIN = "export the run again, or copy the folder again"


def saved_models(folder: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on a folder of numbered versions, as TensorFlow Serving watches it."""
    numbered = sorted((child for child in folder.iterdir() if child.name.isdigit()), key=lambda child: int(child.name))
    for path in numbered:
        yield from version(path)
    for path in sorted(folder.glob(f"{UNFINISHED}*")):
        yield note(f"{path.name} is an export that runs now or was killed", "the next export removes what was killed")


def version(path: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on one version: the graph, its variables, its assets, its certificate."""
    shards = sorted(path.glob("variables/variables.data-*"))  # each is called variables.data-NUMBER-of-COUNT
    count = int(shards[0].name.rpartition("-")[2]) if shards else 1
    names = [f"variables/variables.data-{number:05d}-of-{count:05d}" for number in range(count)]
    names += [SAVED_MODEL, "variables/variables.index", *(str(a.relative_to(path)) for a in path.glob("assets/*"))]
    problems = [f"{name} is missing or empty" for name in names if not has_content(path / name)]
    if problems:
        yield missing(f"version {path.name}: {'; '.join(problems)}", AGAIN)
        return
    size = sum(file.stat().st_size for file in files_in(path))
    yield ok(f"version {path.name} is a complete SavedModel of {size / 1e6:.1f} MB")
    yield from certificate(path)
    if not has_content(path / WARM_UP_REQUESTS):
        yield note(f"version {path.name} has no requests to warm up", "the first requests to a server take longer")
    if (path / LITERT).is_dir():
        yield from lite_model(path / LITERT)


def certificate(path: pathlib.Path) -> Iterator[Finding]:
    """Yield the finding on the certificate of a version: which TensorFlow runs it, and whether it is installed."""
    file = path / CERTIFICATE
    if not file.exists():
        yield note(
            f"version {path.name} has no {CERTIFICATE}: it was never compared with its run",
            "export again without --no-check",
        )
        return
    try:
        content = json_of(file.read_text("utf-8"))
        oldest, different = content["oldest_tensorflow"], sum(check["different"] for check in content["equality"])
        installed = version_of(tensorflow_name())
        is_too_old = installed is not None and Version(installed) < Version(oldest)
    except (OSError, ValueError, LookupError, TypeError, InvalidVersion):
        yield missing(f"version {path.name}: {CERTIFICATE} is damaged", AGAIN)
        return
    if is_too_old:
        yield missing(
            f"version {path.name} needs TensorFlow {oldest}; {installed} is installed",
            f"pip install 'tensorflow>={oldest}'",
        )
    else:
        yield ok(f"version {path.name} runs in TensorFlow {oldest} and later; {different} translations differed")


def lite_model(path: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on a LiteRT model."""
    folder = LiteFolder(path)
    try:
        description = Description.load(folder.description)
        open_tokenizer(folder.tokenizer)
        sums = {folder.model: description.sha256, folder.tokenizer: description.tokenizer_sha256}
        contents = {file: file.read_bytes() for file in sums}
    except (UserError, OSError) as error:
        yield missing(f"{path}: {first_line_of(error)[:-1]}", AGAIN)
        return
    for file, sha256 in sums.items():
        if why := why_damaged(contents[file], sha256):
            yield missing(f"{file} is damaged: {why[:-1]}", AGAIN)
            return
    if contents[folder.model][4:8] != IDENTIFIER:
        yield missing(f"{folder.model} is no LiteRT file", AGAIN)
        return
    yield ok(
        f"{DESCRIPTION}: a LiteRT model in {description.quantization or 'float32'}, for {len(description.rooms)} shapes"
    )


def ctranslate2_model(path: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on a model for CTranslate2."""
    yield from of_files(path, "a model for CTranslate2", ("model.bin", "config.json"))


def transformers_model(path: pathlib.Path) -> Iterator[Finding]:
    """Yield findings on a model of Hugging Face's transformers."""
    try:
        kind = json_of((path / "config.json").read_text("utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError):
        yield missing(f"{path / 'config.json'} is damaged", AGAIN)
        return
    if kind not in list(FAMILIES):  # a list, since a stranger's model_type may have no hash
        yield missing(
            f"{path} holds a model of the type {kind!r:.60}",
            f"give a run, an export, or a model of the type {', '.join(FAMILIES)}",
        )
        return
    family = FAMILIES[kind]
    there = [name for name in family.either if (path / name).exists()]
    yield from of_files(path, f"a model of {family.name}", (*family.needed, *(there or family.either)[:1]))
    weights = path / "model.safetensors"
    if not weights.exists() and not has_content(path / "pytorch_model.bin"):
        yield missing(f"{path} has neither {weights.name} nor pytorch_model.bin", AGAIN)
    elif weights.exists() and not is_complete(weights):
        yield missing(f"{weights.name} is damaged, or not all of it is there", AGAIN)
    else:
        yield ok("its weights are complete", "keras-transformer import makes a run folder of it")


def of_files(path: pathlib.Path, what: str, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield one finding: `what` the folder is, or which of its files are missing."""
    if lacking := [name for name in names if not has_content(path / name)]:
        yield missing(f"{path} lacks {', '.join(lacking)}", AGAIN)
    else:
        yield ok(f"{path} is {what}")


def is_complete(path: pathlib.Path) -> bool:
    """Return whether a file of safetensors is as long as its header says."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            header = json_of(file.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError):
            return False
    return path.stat().st_size == 8 + length + max(ends, default=0)


def has_content(path: pathlib.Path) -> bool:
    """Return whether there is such a file, and it is not empty."""
    return path.is_file() and path.stat().st_size > 0
