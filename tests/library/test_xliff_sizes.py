"""XLIFF with sizes: a translation that has no room is written all the same, and named."""

import time

import pytest

from tests.support.documents import through

UNIT = "<xliff version='1.2'><file><body>{}</body></file></xliff>"
SECOND = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en"{}><file id="1">{}</file></xliff>'
)


@pytest.mark.parametrize(
    "unit, words",
    [
        ('<trans-unit id="7" maxwidth="3" size-unit="char"><source>a</source></trans-unit>', "4 characters, and 3"),
        ('<group maxwidth="3" size-unit="char"><trans-unit id="7"><source>a</source></trans-unit></group>', "4 char"),
        ('<trans-unit id="7" maxwidth="4" size-unit="char"><source>a<x/></source></trans-unit>', ""),
        (
            '<trans-unit id="7" maxwidth="2" size-unit="char"><source>a<x/></source></trans-unit>',
            "4 characters, and",
        ),
        ('<trans-unit id="7" maxwidth="4" size-unit="char"><source>a<x equiv-text="1>0"/></source></trans-unit>', ""),
        ('<trans-unit id="7" maxbytes="6"><source>a</source></trans-unit>', "7 bytes in UTF-8"),
        (
            '<trans-unit id="7" maxwidth="3" size-unit="char"><source>a<ph id="1">code</ph></source></trans-unit>',
            "has 4",
        ),
        ('<trans-unit id="7" maxwidth="6" size-unit="byte"><source>a</source></trans-unit>', "7 bytes in UTF-8"),
        ('<trans-unit id="7" maxwidth="1"><source>a</source></trans-unit>', "1 unit with a size in pixel"),
        ('<trans-unit id="7" maxwidth="1" size-unit="em"><source>a</source></trans-unit>', "1 unit with a size in em"),
        ('<trans-unit id="7" maxwidth="x" size-unit="char"><source>a</source></trans-unit>', "a size in x"),
        ('<trans-unit id="7" maxwidth="3" size-unit="char" translate="no"><source>a</source></trans-unit>', ""),
    ],
)
def test_a_translation_that_has_no_room_in_its_unit_is_named(unit, words, caplog):
    output = through("xliff", UNIT.format(unit), lambda line: "\u00e4&\u00f6\u00fc" if line else line)
    assert ("\u00e4&amp;\u00f6\u00fc" in output) == ('translate="no"' not in unit)  # it is written all the same
    told = [message for message in caplog.messages if "allow" in message or "not checked" in message]
    assert len(told) == bool(words) and all(words in message for message in told)
    assert all("unit 7" in message for message in told if "allow" in message)


SIZES = ' xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0"'
PROFILES = '<slr:profiles generalProfile="{}" storageProfile="{}"/>'


@pytest.mark.parametrize(
    "profiles, limit, words",
    [
        (("xliff:codepoints", ""), 'slr:sizeRestriction="8"', "9 characters, and 8"),
        (("xliff:codepoints", ""), 'slr:sizeRestriction="2,8"', "9 characters, and 8"),
        (("xliff:codepoints", ""), 'slr:sizeRestriction="9"', ""),
        (("xliff:codepoints", ""), 'slr:sizeRestriction="2,*"', ""),
        (("", "xliff:utf8"), 'slr:storageRestriction="16"', "17 bytes in UTF-8, and 16"),
        (("", "xliff:utf16"), 'slr:storageRestriction="17"', "18 bytes in UTF-16, and 17"),
        (("", "xliff:utf32"), 'slr:storageRestriction="36"', ""),
        (("x:pixels", ""), 'slr:sizeRestriction="2"', "1 unit with a size in x:pixels"),
        (("", ""), 'slr:sizeRestriction="2"', "1 unit with a size in no profile"),
    ],
)
def test_so_is_one_of_the_second_version_with_all_its_segments(profiles, limit, words, caplog):
    segments = "<segment><source>a</source></segment><ignorable><source> </source></ignorable>"
    done = "<segment><source>a</source><target>\u00e4\u00f6\u00fc\u00df</target></segment>"
    unit = f'<unit id="7" {limit}>{segments}{done}</unit>'
    file = SECOND.format(' trgLang="de"' + SIZES, PROFILES.format(*profiles) + unit)
    through("xliff", file, lambda line: "\u00e4\u00f6\u00fc\u00df")
    told = [message for message in caplog.messages if "allow" in message or "not checked" in message]
    assert len(told) == bool(words) and all(words in message for message in told)


IN_SECOND = '<unit id="{}"{}><segment><source>{}</source></segment></unit>'
TWO = IN_SECOND.format(7, "{}", "a") + IN_SECOND.format(8, "", "a")
LONG = IN_SECOND.format(7, "{}", 'a <mrk id="m" type="generic" slr:sizeRestriction="{}">b</mrk>')


@pytest.mark.parametrize(
    "attributes, content, words",
    [
        (
            "",
            '<group id="g" slr:sizeRestriction="7">' + TWO.format("") + "</group>",
            ["group g: its translation has 8"],
        ),
        ("", '<group id="g" slr:sizeRestriction="8">' + TWO.format("") + "</group>", []),
        (
            "",
            '<group slr:sizeRestriction="0" id="g"><group id="h">' + TWO.format("") + "</group></group>",
            ["group g: "],
        ),
        (' slr:sizeRestriction="7"', TWO.format(""), ["file 1: its translation has 8 characters, and 7"]),
        (' slr:storageRestriction="15"', TWO.format(""), ["file 1: its translation has 16 bytes in UTF-8"]),
        (' slr:sizeRestriction="3"', TWO.format(' slr:sizeRestriction="3"'), ["unit 7: ", "file 1: "]),
        (' slr:sizeRestriction="3"', TWO.format(' translate="no"'), ["file 1: its translation has 5 characters"]),
        (' slr:sizeRestriction="3" translate="no"', TWO.format(""), []),
        ("", LONG.format("", 1), ["unit 7, mrk m: its translation has 2 characters, and 1 are allowed"]),
        ("", LONG.format("", 2), []),
        ("", LONG.format(' slr:sizeRestriction="3"', 1), ["unit 7, mrk m: ", "unit 7: its translation has 5"]),
    ],
)
def test_so_is_one_that_has_no_room_in_its_group_its_file_or_its_mark(attributes, content, words, caplog):
    content = PROFILES.format("xliff:codepoints", "xliff:utf8") + content
    file = SECOND.format(' trgLang="de"' + SIZES, content).replace('id="1"', 'id="1"' + attributes, 1)
    through(
        "xliff",
        file,
        lambda line: line.replace("a", "\u00e4\u00f6").replace("b", "\u00fc\u00df") if " " in line else 4 * "\u00e4",
    )
    told = [message for message in caplog.messages if "allow" in message]
    assert len(told) == len(words) and all(word in message for word, message in zip(words, told, strict=True))


@pytest.mark.parametrize(
    "kind, content",
    [
        ("group", '<group slr:sizeRestriction="1">' + TWO.format("") + "</group>"),
        ("unit", LONG.format("", 1)),
        ("file", '<group slr:sizeRestriction="*">' + TWO.format("") + "</group>"),
    ],
)
def test_a_room_whose_size_cannot_be_counted_is_logged_by_what_it_is(kind, content, caplog):
    file = SECOND.format(' trgLang="de"' + SIZES, PROFILES.format("x:pixels", "") + content)
    through(
        "xliff", file.replace('id="1"', 'id="1" slr:sizeRestriction="9"' if kind == "file" else 'id="1"'), str.upper
    )
    told = [message for message in caplog.messages if "not checked" in message]
    assert told == [f"file: 1 {kind} with a size in x:pixels, which is not checked"]


def test_groups_in_groups_take_no_longer_than_their_number():
    """Each adds its size to the one around it alone, and 3,000 of them are no deeper than Python's stack."""

    def seconds(depth):
        group = '<group id="g" slr:sizeRestriction="9">'
        unit = "<unit><segment><source>a</source></segment></unit>"
        file = SECOND.format(' trgLang="de"' + SIZES, group * depth + unit * depth + "</group>" * depth)
        begun = time.process_time()
        through("xliff", file, str.upper)
        return time.process_time() - begun

    assert min(seconds(3000) - 6 * seconds(1000) for _ in range(3)) <= 0.1
