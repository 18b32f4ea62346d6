"""A graph that writes what it reads in capitals, as the local server computes one."""

import numpy as np


def capitals(names, inputs):
    """Two columns, of which the second is empty; words are aligned with themselves, but for a line with "alone"."""
    texts = [text.decode() for text in inputs["text"]]
    aligned = ["" if "alone" in t else " ".join(f"{n}-{n}" for n in range(len(t.split()))) for t in texts]
    columns = {"translations": [t.upper() for t in texts], "alignments": aligned}
    found = {
        name: np.array([[c.encode(), b""] for c in column] + [[b"", b""]], object)[:-1]
        for name, column in columns.items()
    }
    found["scores"] = np.array([[-1.0, -1e9]] * len(texts)).reshape(-1, 2)
    assert set(inputs) <= {"text", "required", "forbidden"}
    return {name: found[name] for name in names}


def firsts(column):
    return [value.decode() for value in column[:, 0]]
