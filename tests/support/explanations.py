"""An explanation that is made up: small, and with numbers that tell every layer, head and token apart."""

from keras_transformer.page import page

SOURCE = ["▁A", "▁dog", "▁run", "s", "</s>"]
TARGET = ["▁Ein", "▁Hund", "▁läuft", "</s>"]
LAYERS, HEADS = 3, 2
BEAM = [  # step, parent, slot, piece, log_probability
    (0, 0, 0, "▁Ein", -0.1), (0, 0, 1, "▁Der", -2.4), (0, 0, -1, "▁Hund", -3.5),
    (1, 0, 0, "▁Hund", -0.3), (1, 1, 1, "▁Hund", -2.6), (1, 0, -1, "▁Tier", -4.0),
    (2, 1, 0, "</s>", -2.8), (2, 0, 1, "▁läuft", -0.5), (2, 0, -1, "▁rennt", -4.2),
    (3, 1, 1, "</s>", -0.6), (3, 1, -1, "▁.", -5.0),
]  # fmt: skip


def attention(rows, columns):
    """Return weights [layer][head][row][column] that are all different; they need not sum to 1."""
    count = LAYERS * HEADS * rows * columns
    numbers = iter(round((number + 1) / (count + 1), 6) for number in range(count))
    return [
        [[[next(numbers) for _ in range(columns)] for _ in range(rows)] for _ in range(HEADS)] for _ in range(LAYERS)
    ]


def explanation(source="A dog runs", text="Ein Hund läuft"):
    """Return what `keras_transformer.page.page` shows as a file."""
    return {
        "source": source,
        "options": {"beam_size": 2, "length_penalty": 0.6, "target_prefix": ""},
        "source_pieces": SOURCE,
        "truncated": False,
        "translations": [
            translation(text, TARGET, [-0.1, -0.2, -0.296, -0.004], 0.93),
            translation("Der Hund", ["▁Der", "▁Hund", "</s>"], [-2.4, -0.2, -0.2], 0.21, is_cut=True, is_forced=True),
        ],
        "attention": {
            "memory": attention(len(TARGET), len(SOURCE)),
            "encoder": attention(len(SOURCE), len(SOURCE)),
            "decoder": attention(len(TARGET), len(TARGET)),
        },
        "beam": [dict(zip(("step", "parent", "slot", "piece", "log_probability"), row, strict=True)) for row in BEAM],
    }


def translation(text, pieces, log_probabilities, confidence, is_cut=False, is_forced=False):
    total = sum(log_probabilities)
    return {
        "text": text,
        "score": total / ((5 + len(pieces)) / 6) ** 0.6,
        "log_probability": total,
        "pieces": pieces,
        "piece_log_probabilities": log_probabilities,
        "is_cut": is_cut,
        "is_forced": is_forced,
        "confidence": confidence,
    }


def rows_of(shown):
    """Return an explanation as the server gives it: a row of the signature `translate`, and one of `explain`."""
    translations = shown["translations"]
    translate = {
        "translations": [each["text"] for each in translations] + [""],
        "scores": [each["score"] for each in translations] + [-1e9],
        "log_probabilities": [each["log_probability"] for each in translations] + [0.0],
        "pieces": [joined(each["pieces"]) for each in translations] + [""],
        "piece_log_probabilities": [joined(each["piece_log_probabilities"]) for each in translations] + [""],
        "alignments": ["", "", ""],
        "is_cut": [each["is_cut"] for each in translations] + [False],
        "is_forced": [each["is_forced"] for each in translations] + [False],
        "confidences": [each["confidence"] for each in translations] + [0.0],
        "truncated": shown["truncated"],
    }
    explain = {
        "source_pieces": joined(shown["source_pieces"]),
        "pieces": joined(translations[0]["pieces"]),
        "heads": HEADS,
        **{f"{kind}_attention": joined(flat(weights)) for kind, weights in shown["attention"].items()},
        **{
            f"beam_{name}s": joined(node[name] for node in shown["beam"])
            for name in ("step", "parent", "slot", "piece")
        },
        "beam_log_probabilities": joined(node["log_probability"] for node in shown["beam"]),
    }
    return translate, explain


def joined(items):
    return " ".join(map(str, items))


def flat(values):
    """Return the numbers of nested lists."""
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]


ABOUT = {"help": "What it does.", "group": "Search"}
OPTIONS = [
    {"name": "beam_size", "default": 3, "lowest": 1, "highest": 3, "is_whole": True, **ABOUT},
    {"name": "n_best", "default": 1, "lowest": 1, "highest": 3, "is_whole": True, **ABOUT},
    {
        "name": "temperature",
        "default": 0.0,
        "lowest": 0,
        "highest": 100,
        "is_whole": False,
        "help": "",
        "group": "Other",
    },
    {"name": "target_prefix", "default": "", **ABOUT},
]
DATA = {"model": "made up", "options": OPTIONS, "has_explain": True, "explanation": None}


def written(folder, shown):
    """The address of a page with this explanation, as a file in `folder`."""
    path = folder / "page.html"
    path.write_text(page(DATA | {"explanation": shown}), encoding="utf-8")
    return path.as_uri()
