"""Imports of large packages: quiet, and without what nobody needs."""

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence

from keras_transformer.ground.errors import UserError
from keras_transformer.ground.files import stderr_into

UNUSED_IN_TRANSLATION = ("jax", "matplotlib")  # TensorFlow and Keras import them if installed: two seconds for nothing


@contextlib.contextmanager
def quiet_imports(without: Sequence[str] = ()) -> Iterator[None]:
    """Within, hide what native libraries print to stderr while they load, and collect no garbage.

    No import finds the packages in `without`. Modules leave hardly any garbage, and looking for it takes a fifth of the
    time of importing TensorFlow and Keras. If an exception is raised that does not name its cause, as UserError and
    ModuleNotFoundError do, what was hidden is printed after all.

    TensorFlow 2.21 prints lines at its import that no log level silences.
    """
    was_collecting = gc.isenabled()
    gc.disable()
    with tempfile.TemporaryFile() as held, unavailable(without):
        try:
            with stderr_into(held):
                yield
        except (UserError, ModuleNotFoundError):
            raise
        except Exception:  # any: it is raised again
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            gc.freeze()  # what was imported stays: later searches for garbage need not look at it
            if was_collecting:
                gc.enable()


@contextlib.contextmanager
def unavailable(packages: Sequence[str]) -> Iterator[None]:
    """Within, no import finds these packages; those that are imported already stay."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # Python takes None, which its stubs do not know
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
