"""Which worker this process is: the environment variable TF_CONFIG, read and checked."""

import dataclasses
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.notations import json_of

EXPECTED = (
    'it must be {"cluster": {"worker": ["HOST:PORT", ...]}, "task": {"type": "worker", "index": N}}, with the same '
    "list on every worker and N from 0"
)


@dataclasses.dataclass(frozen=True)
class Worker:
    """Worker `index`, counted from 0, of `count`. Worker 0 is the chief."""

    index: int = 0
    count: int = 1

    @property
    def is_chief(self) -> bool:
        return self.index == 0


ONLY_WORKER = Worker()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """All workers in their order, and which of them this process is."""

    addresses: tuple[str, ...] = ("localhost:0",)  # "host:port"; worker 0, the chief, first
    worker: Worker = ONLY_WORKER

    @property
    def others(self) -> dict[str, tuple[str, int]]:
        """From "worker 1 (host:port)" to (host, port), for every worker but this one."""
        return {
            f"worker {index} ({address})": split_address(address)
            for index, address in enumerate(self.addresses)
            if index != self.worker.index
        }


ALONE = Cluster()


def read_cluster(text: str | None) -> Cluster:
    """The Cluster that `text`, the environment variable TF_CONFIG, describes; one worker alone if it is None or empty.

    Raises ConfigError with what was found and what is expected.
    """
    if not text:
        return ALONE
    try:
        values = json_of(text)
        jobs, task = values["cluster"], values["task"]
        kind, index = str(task["type"]), whole_number(task["index"])
        addresses = {job: tuple(map(str, jobs[job])) for job in jobs}
        unknown = {*addresses, kind} - {"chief", "worker"}
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"TF_CONFIG is {text}: {type(error).__name__}, {error}; {EXPECTED}.") from None
    if unknown:
        raise ConfigError(f"TF_CONFIG names {', '.join(sorted(unknown))}; only worker and chief are supported.")
    if kind not in addresses or not 0 <= index < len(addresses[kind]):
        raise ConfigError(
            f"TF_CONFIG makes this process {kind} {index}, but its cluster has no address for it; {EXPECTED}."
        )
    chiefs = addresses.get("chief", ())
    everyone = chiefs + addresses.get("worker", ())
    if len(chiefs) > 1 or len(set(everyone)) < len(everyone):
        raise ConfigError(f"TF_CONFIG names two chiefs, or one address twice: {', '.join(everyone)}.")
    for address in everyone:
        split_address(address)
    if kind == "worker":
        index += len(chiefs)
    return Cluster(everyone, Worker(index, len(everyone)))


def split_address(address: str) -> tuple[str, int]:
    """ "host:port" -> (host, port). Raises ConfigError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 2**16:
        raise ConfigError(
            f"TF_CONFIG has the address {address!r}; it must be HOST:PORT, for example 10.0.0.1:2222, with a port from "
            "1 to 65535."
        )
    return host.strip("[]"), int(port)


def whole_number(value: Any) -> int:
    """Return an index, which may be text. Raises ValueError if it is not a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"the index {value!r} is not a whole number")
    return int(value)
