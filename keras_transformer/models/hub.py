"""Models on the Hugging Face hub: hf://USER/MODEL[@REVISION] as a folder of files in the hub's cache.

The package huggingface-hub downloads, caches and resumes. What it reads from the environment holds here too: HF_HOME
(the cache), HF_TOKEN, HF_ENDPOINT (another hub), HF_HUB_OFFLINE=1 (the cache alone).
"""

import contextlib
import os
import pathlib
import re
from collections.abc import Iterator

from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.notations import json_of
from keras_transformer.models.imported.families import FAMILIES, INDEX, NAMES, WEIGHTS, why_not
from keras_transformer.runs.run_folder import RUN_MODEL, holds_preset

NAME = re.compile(r"hf:/{1,2}(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")  # a Path has one slash
SMALL_FILES = (  # by their whole names: a pattern with * would match ../ too
    # of a preset and of a run folder of this project
    *("config.json", "model.json", "inference.json", "validation.src.txt", "shortlist.npz"),
    *("tokenizer.model", "tokenizer.model.sha256"),
    *("assets/tokenizer/tokenizer.model", "assets/tokenizer/tokenizer.model.sha256"),
    # of a model of Hugging Face
    *("generation_config.json", "tokenizer_config.json"),
    *(name for family in FAMILIES.values() for name in (*family.needed, *family.either, *family.optional)),
)
OUR_WEIGHTS = ("model.weights.h5",)


class HubError(UserError):
    """A model that cannot be had from the hub; the message gives the reason, and what to do."""


def is_on_hub(name: str | os.PathLike) -> bool:
    """Return whether a name is meant for the hub: "hf://..."."""
    return os.fspath(name).startswith("hf:/")


def download(name: str | os.PathLike) -> pathlib.Path:
    """Return the folder in the hub's cache with the files of a model. Only files that models here have are downloaded.

    The name of the folder is the commit. What is in the cache is not downloaded again. Weights are downloaded last, and
    not of a model of another kind. Raises HubError if the package huggingface-hub is not installed, and if the model is
    not to be had: there is none of this name, it is not shown to everybody, the network fails, or HF_HUB_OFFLINE is set
    and the cache does not have it.
    """
    match = NAME.fullmatch(os.fspath(name))
    if match is None:
        raise HubError(f"{name} is not a name on the hub: write hf://USER/MODEL or hf://USER/MODEL@REVISION.")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise HubError(
            f"{name} needs the package huggingface-hub, which is not installed: "
            "pip install 'keras-transformer-mt[hub]'."
        ) from None
    repository = match["repository"]

    def fetched(revision: str | None, *files: str) -> pathlib.Path:
        with explained(name, repository):
            return pathlib.Path(snapshot_download(repository, revision=revision, allow_patterns=[*files]))

    folder = fetched(match["revision"], *SMALL_FILES)
    for weights in weights_of(folder, name):  # a pickle only if there is nothing better
        index = fetched(folder.name, weights, weights + INDEX) / (weights + INDEX)
        if (folder / weights).exists():
            break
        if index.exists():
            from keras_transformer.models.imported.weight_files import files_of_arrays  # it imports NumPy

            fetched(folder.name, *sorted(set(files_of_arrays(index).values())))
            break
    return folder


def weights_of(folder: pathlib.Path, name: str | os.PathLike) -> tuple[str, ...]:
    """Return the files that may hold the weights of a model, the best first. Raises HubError if it is of another kind.

    folder: where its small files are.
    """
    if holds_preset(folder) or (folder / RUN_MODEL).exists():
        return OUR_WEIGHTS
    try:
        model_type = json_of((folder / "config.json").read_text("utf-8")).get("model_type")
    except FileNotFoundError:
        raise HubError(f"{name} holds no model that can be opened here: it has no config.json.") from None
    except (ValueError, AttributeError):
        raise HubError(f"{name} holds no model that can be opened here: its config.json is no JSON object.") from None
    if model_type not in list(FAMILIES):  # a list, since a stranger's model_type may have no hash
        raise HubError(
            f"{name} holds no model that can be opened here: its config.json has the model_type {model_type!r:.60}. "
            f"Models of {NAMES} can be, and presets and run folders of this project.{why_not(model_type)}"
        )
    return WEIGHTS


@contextlib.contextmanager
def explained(name: str | os.PathLike, repository: str) -> Iterator[None]:
    """Turn an error of huggingface-hub into a HubError that tells what to do."""
    from huggingface_hub import constants, errors

    try:
        yield
    except errors.GatedRepoError:
        raise HubError(
            f"{name} is gated: accept its terms at {constants.ENDPOINT}/{repository}, and give your token by "
            "`hf auth login` or in HF_TOKEN."
        ) from None
    except errors.RepositoryNotFoundError:
        raise HubError(
            f"{constants.ENDPOINT} has no model {repository}, or does not show it to you: check the name; if it is "
            "private, give your token by `hf auth login` or in HF_TOKEN."
        ) from None
    except errors.RevisionNotFoundError:
        raise HubError(
            f"{name} does not exist: {repository} has no such branch, tag or commit. Without @REVISION it is "
            "the newest."
        ) from None
    except errors.LocalEntryNotFoundError as error:
        if constants.HF_HUB_OFFLINE:
            raise HubError(
                f"{name} is not in the cache {constants.HF_HUB_CACHE}, or not all of it, and HF_HUB_OFFLINE is set: "
                "unset it once where there is a network, or give the folder of a run."
            ) from None
        cause = error.__cause__ or error
        raise HubError(
            f"{name} is not in the cache {constants.HF_HUB_CACHE}, or not all of it, and {constants.ENDPOINT} cannot "
            f"be reached ({type(cause).__name__}: {first_line_of(cause)[:-1]}): try again, or give the folder of a run."
        ) from None
    except Exception as error:  # of several libraries: HTTP, TLS, hf-xet; a full disk, a download that was cut
        raise HubError(
            f"{name} could not be downloaded ({type(error).__name__}: {first_line_of(error)[:-1]}): try again. "
            f"What has arrived is in {constants.HF_HUB_CACHE}."
        ) from error
