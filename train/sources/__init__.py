"""Where sentence pairs come from: one module a source, each handing over its Splits."""
