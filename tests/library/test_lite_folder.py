"""litert.json: what is written is read, and a file that cannot translate every sentence is refused in one sentence."""

import json

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.lite_folder import Description, Room

ROOMS = (Room(1, 64), Room(1, 32, 12), Room(8, 32, 12))
DESCRIPTION = Description({"beam_size": 2}, ROOMS, "int8")


def test_what_is_written_is_read(tmp_path):
    DESCRIPTION.save(tmp_path / "litert.json")
    assert Description.load(tmp_path / "litert.json") == DESCRIPTION


def test_the_longest_source_is_that_of_a_room_for_any_translation():
    assert DESCRIPTION._replace(rooms=(Room(1, 16), Room(4, 24), Room(1, 32, 12))).max_source_tokens == 24


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"rooms": [[4, 16, None]]}, "it has no room for one sentence and any translation"),
        ({"rooms": [[1, 16, 12], [8, 16, None]]}, "it has no room for one sentence and any translation"),
        ({"rooms": []}, "it has no room for one sentence and any translation"),
        ({"rooms": [["1", 16, None]]}, "the size of a room is no number"),
        ({"rooms": [[1, 16, None, 3]]}, ""),
        ({"rooms": None}, ""),
        ({"search": {"beam": 3}}, "search has beam; it may have beam_size"),
        ({"search": {"beam_size": 0}}, "beam_size is 0"),
        ({"quantization": ...}, "'quantization'"),
    ],
)
def test_a_description_by_which_nothing_can_be_translated_is_refused(values, cause, tmp_path):
    path, whole = tmp_path / "litert.json", DESCRIPTION._asdict()
    path.write_text(json.dumps({name: value for name, value in (whole | values).items() if value is not ...}))
    with pytest.raises(ConfigError, match=rf"litert\.json is damaged: [^\n]*{cause}[^\n]*\. Restore it"):
        Description.load(path)


def test_what_is_no_json_or_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"litert\.json cannot be read: No such file"):
        Description.load(tmp_path / "litert.json")
    for content in (b"", b"{", b"[]", b"3", b"\xff"):
        (tmp_path / "litert.json").write_bytes(content)
        with pytest.raises(ConfigError, match=r"litert\.json is damaged: [^\n]*\. Restore it"):
            Description.load(tmp_path / "litert.json")
