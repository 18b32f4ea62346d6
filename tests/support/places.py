"""Where things are that tests read: the checkout, and Multi30k if this machine has it."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
MULTI30K = next(filter(pathlib.Path.is_dir, [ROOT / "data/multi30k", ROOT.parent / "shared/data/multi30k"]), None)
TREEBANK = next(
    filter(
        pathlib.Path.is_file,
        [folder / "data/penn_treebank_sample.zip" for folder in (ROOT, ROOT.parent / "shared")],
    ),
    None,
)
