"""The record of the training text in a run folder: written at every start, compared when the run continues."""

import hashlib
import itertools
import json
import logging
import pathlib
from typing import Any

from keras_transformer.config import ConfigError
from keras_transformer.files import write_atomically
from keras_transformer.run_folder import RunFolder
from train.data.corpus import Split, own_shards
from train.data.encoding import EncodedPairs
from train.data.prepare import Data
from train.workers.broadcast import Broadcast
from train.workers.tf_config import ONLY_WORKER, Worker

log = logging.getLogger("train")


def record_training_text(
    folder: RunFolder, data: Data, worker: Worker = ONLY_WORKER, trained_steps: int | None = None
) -> None:
    """Write into the run folder which text this worker's shards are made of.

    If the run has a checkpoint and was trained on other pairs, log a warning that names the changed files. The run
    continues, since a change may be intended; but it is no longer bit for bit the run that it would have been. With
    another number of workers than before, the chief has more shards, or fewer: then those are compared that it has both
    times, which are the first ones.

    trained_steps: those of a run that has no others left. Raises ConfigError then: its weights are of the other text.
    """
    splits = own_shards(data.corpus.train, worker)
    record = {
        "pairs": len(data.train),
        "shards": [_digest(pairs) for pairs in data.train.shards],
        "files": _files(splits),
    }
    before = _read(folder.training_text) if folder.has_begun() else None
    both = slice(min(len(before["shards"]), len(record["shards"])) if before else None)
    if before is not None and before["shards"][both] != record["shards"][both]:
        counts = f"{before['pairs']:,} pairs before, {record['pairs']:,} now"
        found = "; ".join([counts, *_changed_files(before, record)])
        if trained_steps is not None:
            raise ConfigError(
                f"{folder.path} has been trained for {trained_steps} steps, and nothing would be trained on this text, "
                f"which is another one: {found}. Restore the old one, or set another run_folder."
            )
        log.warning(
            "the training text is not the one that this run was trained on so far: %s. Training continues on the new "
            "text; restore the old one, or use another run_folder, for a run that can be repeated.",
            found,
        )
    write_atomically(folder.training_text, json.dumps(record, indent=1))


def check_same_text_on_all_workers(data: Data, broadcast: Broadcast) -> None:
    """Raises ConfigError on a worker whose training pairs are not the chief's.

    If the text has several shards, each worker has its own pairs, and nothing is compared.
    """
    if broadcast.worker.count == 1 or len(data.corpus.train.shards) > 1:
        return
    (pairs,) = data.train.shards
    own = {"pairs": len(pairs), "digest": _digest(pairs)}
    chief = json.loads(broadcast.text(json.dumps(own)))
    if own != chief:
        raise ConfigError(
            f"This worker's training text is not that of worker 0: it has {len(pairs):,} pairs here and "
            f"{chief['pairs']:,} there, and not the same ones in the same order. Give every worker the same files, or "
            "divide them among the workers with data.shards."
        )


def _digest(pairs: EncodedPairs) -> str:
    """A hash of all pairs in their order. It needs no reading of the text, since `keys` are hashes of the pairs."""
    return hashlib.sha256(pairs.keys).hexdigest()


def _files(splits: tuple[Split, ...]) -> dict[str, list[int]]:
    """From the path of each file that the splits are read from to its size and modification time."""
    entries = itertools.chain.from_iterable(split.fingerprint().get("files", []) for split in splits)
    return {path: stamp for path, *stamp in itertools.chain.from_iterable(entries)}


def _changed_files(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    paths = before["files"].keys() | now["files"].keys()
    if len(before["shards"]) != len(now["shards"]):  # files of the other shards belong to another worker
        paths = before["files"].keys() & now["files"].keys()
    paths = sorted(paths)
    return [f"{path} has changed" for path in paths if before["files"].get(path) != now["files"].get(path)]


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """The record at `path`; None if there is none, or if it is damaged, which is logged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {"pairs": int(record["pairs"]), "shards": list(record["shards"]), "files": dict(record["files"])}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        log.warning("%s is damaged (%s): whether the training text has changed is not known", path, error)
        return None
