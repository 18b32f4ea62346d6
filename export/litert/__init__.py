"""`keras-transformer export --format litert`."""
