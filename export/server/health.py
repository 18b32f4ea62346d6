"""grpc.health.v1: whether the server is well, asked without an API key and beside the limits of other calls."""

import asyncio
from collections.abc import Callable

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

SERVICES = ("", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService")  # "" is the server
SERVICE = "grpc.health.v1.Health"


class Health:
    """Answers `Check`. `Watch` is not implemented: whoever asks, without a key, would hold streams that do not end.

    is_well: says whether the server is. seconds: in which the message must come and the answer be taken. most: Checks
    that wait for either; beyond, the one that began first gives way. So nobody keeps a probe from its answer.
    """

    def __init__(self, is_well: Callable[[], bool], seconds: float, most: int):
        self.is_well, self.seconds, self.most = is_well, seconds, most
        self._waiting: dict[asyncio.Timeout, None] = {}  # oldest first

    def handler(self) -> grpc.GenericRpcHandler:
        """Return what a gRPC server answers with."""
        return grpc.method_handlers_generic_handler(
            SERVICE, {"Check": grpc.stream_stream_rpc_method_handler(self._check)}
        )

    async def _check(self, messages: object, context: grpc.aio.ServicerContext) -> None:
        reason: tuple[grpc.StatusCode, str] | None = None
        try:
            async with asyncio.timeout(self.seconds) as timeout:
                if len(self._waiting) >= self.most:
                    oldest = next(iter(self._waiting))
                    del self._waiting[oldest]
                    oldest.reschedule(asyncio.get_running_loop().time())
                self._waiting[timeout] = None
                try:
                    reason = await self._answer(context)
                finally:
                    self._waiting.pop(timeout, None)
        except TimeoutError:
            reason = grpc.StatusCode.DEADLINE_EXCEEDED, "The message did not arrive in time."
        if reason is not None:
            await context.abort(*reason)

    async def _answer(self, context: grpc.aio.ServicerContext) -> tuple[grpc.StatusCode, str] | None:
        """Answer a call. Returns why there is no answer, if there is none."""
        body = await context.read()
        try:
            service = HealthCheckRequest.FromString(b"" if body is grpc.aio.EOF else body).service
        except DecodeError:
            return grpc.StatusCode.INVALID_ARGUMENT, "The message is no HealthCheckRequest."
        if service not in SERVICES:
            return grpc.StatusCode.NOT_FOUND, f"There is no service {service[:60]!a}."
        is_well = self.is_well()
        status = HealthCheckResponse.SERVING if is_well else HealthCheckResponse.NOT_SERVING
        await context.write(HealthCheckResponse(status=status).SerializeToString())
        return None
