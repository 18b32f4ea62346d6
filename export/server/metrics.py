"""What an operator watches: counts and times of requests and batches, as Prometheus reads them.

Names and labels that begin with ":tensorflow:" are those of TensorFlow Serving (servables/tensorflow/util.cc), at its
path, so that its dashboards show this server too; its times are microseconds.
"""

import asyncio
from collections.abc import Callable, Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .errors import Code, RequestError
from .model_folder import State
from .models import Models
from .request_log import LOGGED
from .version import Version

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
LATENCIES = tuple(10 * 1.8**power for power in range(33))  # microseconds: the bounds of TensorFlow Serving
SECONDS = tuple(0.001 * 2**power for power in range(16))
ROWS = tuple(2**power for power in range(11))
OURS = "keras_transformer"
OK = "OK"  # the status of a request that was answered

prometheus_client.disable_created_metrics()  # the time at which each counter began: nobody asks for it


class Metrics(Collector):
    """The metrics of one server."""

    def __init__(self, models: Models):
        self._models = models
        self._answers: dict[tuple[str, str], int] = {}
        registry = self.registry = CollectorRegistry()
        self.registry.register(self)
        self._latency = Histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from the arrival of a request to its answer.",
            ["model_name", "API", "entrypoint"],
            buckets=LATENCIES,
            registry=registry,
        )
        of_version = ["model_name", "version"]
        self._rows = Counter(f"{OURS}_rows", "Rows that were computed: lines of text.", of_version, registry=registry)
        self._batch_rows = Histogram(
            f"{OURS}_batch_rows", "Rows of a batch.", of_version, buckets=ROWS, registry=registry
        )
        self._batch_seconds = Histogram(
            f"{OURS}_batch_seconds", "Seconds of a batch.", of_version, buckets=SECONDS, registry=registry
        )
        self._cut = Counter(
            f"{OURS}_cut",
            "Translations that their limit ended, of those asked for is_cut.",
            of_version,
            registry=registry,
        )

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Show a value as it is when Prometheus asks."""
        Gauge(f"{OURS}_{name}", meaning, registry=self.registry).set_function(value)

    def answered(self, model: str, api: str, entrypoint: str, error: BaseException | None, seconds: float) -> None:
        """Count a request. model: which was asked for. error: what ended it, None if it was answered.

        Requests for a model that is not here count under the only one, or under no name: a client cannot add names.
        """
        if model not in self._models.names:
            model = self._models.names[0] if len(self._models.names) == 1 else ""
        self._latency.labels(model, api, entrypoint).observe(1e6 * seconds)
        if api in LOGGED:
            self._answers[model, outcome(error)] = self._answers.get((model, outcome(error)), 0) + 1

    def refused(self, entrypoint: str) -> None:
        """Count a prediction of somebody without an API key."""
        self.answered("", "Predict", entrypoint, RequestError(Code.UNAUTHENTICATED, ""), 0.0)

    def computed(self, version: Version, rows: int, seconds: float) -> None:
        """Count a batch."""
        self._rows.labels(version.model, version.number).inc(rows)
        self._batch_rows.labels(version.model, version.number).observe(rows)
        self._batch_seconds.labels(version.model, version.number).observe(seconds)

    def cut(self, version: Version, translations: int) -> None:
        """Count translations that are cut."""
        self._cut.labels(version.model, version.number).inc(translations)

    def collect(self) -> Iterable[Metric]:
        """Yield what the classes of prometheus-client cannot name or do not know."""
        # "unknown": the classes for counters would add _total to the name
        requests = Metric(":tensorflow:serving:request_count", "The total number of requests.", "unknown")
        known = {(name, OK): 0 for name in self._models.names}
        for (name, status), count in sorted((known | self._answers).items()):
            labels = {"model_name": name, "status": status}
            requests.add_sample(":tensorflow:serving:request_count", labels, count)
        yield requests
        versions = Metric(f"{OURS}_version_state", "1 for the state that a version is in.", "gauge")
        for folder in self._models:
            for number, version in sorted(folder.status.items()):
                for state in State:
                    labels = {"model_name": folder.name, "version": str(number), "state": state.name}
                    versions.add_sample(f"{OURS}_version_state", labels, float(version.state is state))
        yield versions

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return prometheus_client.generate_latest(self.registry)


def outcome(error: BaseException | None) -> str:
    """Return the status of a request, by what ended it: "OK", or the name of a code."""
    return OK if error is None else code_of(error).name


def code_of(error: BaseException) -> Code:
    """Return the status code of what ended a request."""
    if isinstance(error, RequestError):
        return error.code
    if isinstance(error, TimeoutError):
        return Code.DEADLINE_EXCEEDED
    is_of_the_client = isinstance(error, (asyncio.CancelledError, ConnectionError, GeneratorExit))
    return Code.CANCELLED if is_of_the_client else Code.INTERNAL
