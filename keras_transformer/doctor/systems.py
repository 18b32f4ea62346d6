"""Which operating system this is, and what cannot be had there."""

import platform

from keras_transformer.doctor.finding import Finding, missing, note, ok

WSL = "microsoft"  # in the release of a kernel of WSL


def system() -> Finding:
    """Return the finding on the operating system and the kind of processor, by which packages have wheels or none."""
    name, kind = platform.system(), platform.machine()
    if name == "Linux":
        where = ", in WSL" if WSL in platform.release().lower() else ""
        return ok(f"Linux on {kind}{where}")
    if name == "Darwin" and kind == "arm64":
        return note(
            f"macOS on {kind}: every package has a wheel, but nobody has run the tests here",
            "make check shows what holds; /proc is missing, so training makes no estimate of what fits into memory",
        )
    if name == "Darwin":
        return missing(
            f"macOS on {kind}: TensorFlow from 2.17 on, tensorflow-text and ai-edge-litert have no wheel for it",
            "a Mac with Apple silicon, Linux, or a container with Linux",
        )
    if name == "Windows":
        return note(
            "Windows without WSL: tensorflow-text has no wheel, so no SavedModel can be exported, and training needs "
            "fcntl, which Windows lacks",
            "WSL 2 (wsl --install), where everything is as on Linux",
        )
    return note(f"{name} on {kind}: not tested", "Linux, macOS on Apple silicon, or WSL 2 on Windows")
