"""A local server of tests: at any free ports, with other options by name."""

from export.server.options import ServerOptions
from export.server.process import local_server


def serving(folder, **options):
    """The `local_server` of a folder, which gives its Address."""
    return local_server(folder, ServerOptions(port=0, grpc_port=0, **options))
