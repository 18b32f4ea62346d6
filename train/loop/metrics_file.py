"""The lines of metrics.jsonl: read, checked, and truncated when a run continues. Needs neither Keras nor TensorFlow."""

import json
import logging
import pathlib
import sys
from collections.abc import Collection

from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of

log = logging.getLogger("train")


def keep_records(path: pathlib.Path, last_step: int, replaced: Collection[str]) -> list[dict]:
    """Truncate metrics.jsonl after `last_step`, and return the records that stay.

    Records of `last_step` itself go if they have one of the names in `replaced`.
    Damaged lines are logged, and moved to metrics.jsonl.damaged: the last line of a process that was killed, or others.
    """
    if not path.exists():
        return []
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    records = [parse_record(line) for line in lines]
    if damaged := [number for number, record in enumerate(records) if record is None]:
        aside = path.with_name(path.name + ".damaged")
        with open(aside, "ab") as file:
            file.writelines(lines[number] + b"\n" for number in damaged)
        log.warning(
            "%s has %d damaged lines (the first is line %d); moved them to %s",
            path,
            len(damaged),
            damaged[0] + 1,
            aside.name,
        )
    kept = [
        record
        for record in records
        if record is not None
        and record["step"] <= last_step
        and not (record["step"] == last_step and record.keys() & replaced)
    ]
    write_atomically(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept))
    return kept


def parse_record(line: bytes) -> dict | None:
    """Return a line of metrics.jsonl as a dict from names to numbers, texts and None; None if it is damaged."""
    try:
        record = json_of(line.decode("utf-8"), parse_constant=lambda constant: b"")  # NaN is not JSON
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        return None
    if not isinstance(record.get("time", 0.0), int | float):
        return None
    return record if all(map(is_value, record.values())) else None


def is_value(value: object) -> bool:
    """Return whether a value is a number, a text or None. A whole number of hundreds of digits is no float."""
    is_number = isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)
    return value is None or isinstance(value, str) or is_number
