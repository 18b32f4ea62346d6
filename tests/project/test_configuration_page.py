"""docs/configuration.md: every key that a configuration may have, with its default, and no other."""

import dataclasses
import json
import re

import pydantic
import pytest

from keras_transformer.config import PRESETS, TransformerConfig
from keras_transformer.recurrent.config import RecurrentConfig
from tests.support.places import ROOT
from train.config.augmentation import AugmentationConfig
from train.config.cleaning import CleaningConfig
from train.config.model import SET_ELSEWHERE
from train.config.run import SECTIONS, SOURCES, RunConfig

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
OF_DATA = {section.model_fields["source"].annotation.__args__[0]: section for section in SOURCES}


def rows_after(begin):
    """The cells of each row about a key, by that key, from the line that begins so to the next heading."""
    _, found, text = f"\n{PAGE}".partition(f"\n{begin}")
    assert found, f"{begin} is not there"
    table = [line for line in re.split(r"\n(?:## |\*\*`)", text)[0].splitlines() if line.startswith("|")]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    rows = {cells[0].strip("`"): cells[1:] for cells in lines if cells[0].startswith("`")}
    assert len(rows) == len(lines) - 2, "a key stands there twice, or a row is about none"
    return rows, lines[0][1:]


def written(value):
    """A default as the page writes it: nothing if the key must be given."""
    if value is pydantic.fields.PydanticUndefined:
        return ""
    return "none" if value is None else f"`{json.dumps(value)}`"


def defaults_of(section, *others):
    """The keys of a class of a section, with their defaults as the page writes them, but for `others`."""
    fields = section.model_fields.items()
    return {name: written(field.get_default()) for name, field in fields if name not in others}


@pytest.mark.parametrize(
    ("begin", "section", "others"),
    [
        ("# Every key", RunConfig, SECTIONS),
        *((f'**`source = "{name}"`**', section, ("source",)) for name, section in OF_DATA.items()),
        ("## [data.clean]", CleaningConfig, ()),
        ("## [training.augment]", AugmentationConfig, ()),
        *((f"## [{name}]", *SECTIONS[name], ()) for name in ("tokenizer", "training", "translation")),
    ],
)
def test_every_key_is_there_with_its_default(begin, section, others):
    rows, _ = rows_after(begin)
    assert {key: cells[0] for key, cells in rows.items()} == defaults_of(section, *others)


def test_the_presets_of_a_transformer_are_there_with_their_values():
    rows, header = rows_after('**`kind = "transformer"`**')
    names = [cell.strip('`"') for cell in header[:3]]
    assert rows.pop("preset")[0] == '`"base"`' and set(names) == {"base", "big", "tiny"}
    assert {key: cells[:3] for key, cells in rows.items()} == {
        field.name: [written(getattr(PRESETS[name], field.name)) for name in names]
        for field in fields_of(TransformerConfig)
    }


def test_the_fields_of_a_recurrent_model_are_there_with_their_defaults():
    rows, _ = rows_after('**`kind = "recurrent"`**')
    defaults = {field.name: written(field.default) for field in fields_of(RecurrentConfig)}
    assert {key: cells[0] for key, cells in rows.items()} == defaults


def fields_of(config):
    """The fields of a model's configuration that are keys of [model]."""
    return [field for field in dataclasses.fields(config) if field.name not in SET_ELSEWHERE]
