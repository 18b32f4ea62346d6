"""The record of the training text in a run folder: written at every start, compared when the run continues."""

import hashlib
import itertools
import json
import logging
import pathlib
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of
from keras_transformer.runs.run_folder import RunFolder

from ..data.corpus import Split, own_shards
from ..data.encoding import EncodedPairs
from ..data.prepare import PreparedData
from ..workers.tf_config import Worker
from ..workers.workers import Workers
from .finished import Standing

log = logging.getLogger("train")


def record_training_text(folder: RunFolder, data: PreparedData, standing: Standing, worker: Worker) -> None:
    """Write into the run folder what `record_of_text` returns."""
    write_atomically(folder.training_text, json.dumps(record_of_text(folder, data, standing, worker), indent=1))


def record_of_text(folder: RunFolder, data: PreparedData, standing: Standing, worker: Worker) -> dict[str, Any]:
    """Return which text this worker's shards are made of, from which step on, and what the text was before.

    standing: of the run in `folder`. A record that begins no earlier than its step is of a process that trained
    nothing, and does not count.

    If the run has a checkpoint and was trained on other pairs, log a warning that names the changed files. The run
    continues, since a change may be intended, but no longer bit for bit as it would have on the old text. With
    another number of workers than before, the chief has more shards, or fewer: the first ones, which it has both times,
    are compared. Raises ConfigError for other pairs if no steps are left: config.toml would claim that the weights were
    trained on text they never saw.
    """
    step = standing.step
    splits = own_shards(data.corpus.train, worker)
    before = _read(folder.training_text) if folder.has_begun() else None
    while before and before["step"] >= step:
        before = before["before"]
    record: dict[str, Any] = {
        "step": step,
        "pairs": len(data.train),
        "shards": [_digest(pairs) for pairs in data.train.shards],
        "files": _files(splits),
        "before": before,
    }
    both = slice(min(len(before["shards"]), len(record["shards"])) if before else None)
    if before and before["shards"][both] == record["shards"][both]:
        record |= {"step": before["step"], "before": before["before"]}
    elif before:
        counts = f"{before['pairs']:,} pairs before, {record['pairs']:,} now"
        difference = "; ".join([counts, *_changed_files(before, record)])
        if standing.is_done:
            raise ConfigError(
                f"{folder.path} has been trained for {step} steps, and the training text has changed since: "
                f"{difference}. No step is left to train on it: restore the old text, or set another run_folder."
            )
        log.warning(
            "the training text has changed since this run was trained on it: %s. Training continues on the new text; "
            "for a run that can be repeated, restore the old text or use another run_folder.",
            difference,
        )
    return record


def check_same_text_on_all_workers(data: PreparedData, workers: Workers) -> None:
    """Raises ConfigError on a worker whose training pairs are not the chief's.

    If the text has several shards, each worker has its own pairs, and nothing is compared.
    """
    if workers.worker.count == 1 or len(data.corpus.train.shards) > 1:
        return
    (pairs,) = data.train.shards
    own = {"pairs": len(pairs), "digest": _digest(pairs)}
    chief = json_of(workers.text_of_chief(json.dumps(own)))
    if own != chief:
        raise ConfigError(
            f"This worker's training text is not that of worker 0: it has {len(pairs):,} pairs here and "
            f"{chief['pairs']:,} there, and not the same ones in the same order. Give every worker the same files, or "
            "divide them among the workers with data.shards."
        )


def _digest(pairs: EncodedPairs) -> str:
    """A hash of all pairs in their order. It needs no reading of the text, since `keys` are hashes of the pairs."""
    return hashlib.sha256(pairs.keys.data).hexdigest()


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


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    """The record with what one of former versions lacks. What is raised for a damaged one, `_read` names."""
    before = record.get("before")
    return {
        "step": int(record.get("step", 0)),
        "pairs": int(record["pairs"]),
        "shards": list(record["shards"]),
        "files": dict(record["files"]),
        "before": _checked(before) if before else None,
    }


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """The record at `path`; None if there is none, or if it is damaged, which is logged."""
    try:
        return _checked(json_of(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s is damaged (%s): whether the training text has changed is not known", path, error)
        return None
