"""XLIFF: units without a target get one, and nothing else changes."""

import re

import pytest

from tests.support.documents import capitals, through

UNITS = (
    '<xliff version="1.2"><file source-language="en"><body>\n  <trans-unit id="1">\n    <source>A <g id="1">big</g> '
    'dog &amp; <x id="2"/> <ph id="3">{0}</ph>cat. Two.</source>\n  </trans-unit>\n'
    '  <trans-unit id="4"><source><![CDATA[a & <b> c]]></source><target state="new"/></trans-unit>\n'
    "</body></file></xliff>"
)


def test_units_without_a_target_get_one():
    output = through("xliff", UNITS, capitals)
    assert (
        re.sub(r"\n    <target.*?</target>", "", output, count=1).replace(
            '<target state="new">A &amp; &lt;B&gt; C</target>', '<target state="new"/>'
        )
        == UNITS
    )
    [first, _] = re.findall("<target[^>]*>(.*?)</target>", output)
    assert first == 'A <g id="1">BIG</g> DOG &amp; <x id="2"/> <ph id="3">{0}</ph>CAT. TWO.'


@pytest.mark.parametrize(
    "before, after",
    [
        ("<source>a</source><target></target>", "<source>a</source><target>A</target>"),
        ("<source>a</source>", "<source>a</source><target>A</target>"),
        ("x\n <source>a</source>\n", "x\n <source>a</source>\n <target>A</target>\n"),
        ("<source>a</source><seg-source/>.", "<source>a</source><seg-source/><target>A</target>."),
        ("<source>a</source> <target\n/>.", "<source>a</source> <target>A</target>."),
        ("<source>a</source><target x='/>' />", "<source>a</source><target x='/>'>A</target>"),
        (
            "<source>a</source>\n <seg-source>a</seg-source>",
            "<source>a</source>\n <seg-source>a</seg-source><target>A</target>",
        ),
        ("<source>a</source><x:note xmlns:x='y'/>", "<source>a</source><target>A</target><x:note xmlns:x='y'/>"),
        ("<source>a</source> <target> \n</target>", "<source>a</source> <target>A</target>"),
    ],
)
def test_a_unit_gets_one_target_behind_its_source_and_nothing_else(before, after):
    file = "<xliff version='2.0'><file><unit id='1'><segment>{}</segment></unit></file></xliff>"
    assert through("xliff", file.format(before), capitals) == file.format(after)


@pytest.mark.release
def test_translate_toolkit_reads_the_targets():
    xliff = pytest.importorskip("translate.storage.xliff")
    namespace = UNITS.replace("<xliff ", '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" ')
    store = xliff.xlifffile.parsestring(through("xliff", namespace, capitals).encode())
    assert [str(unit.target) for unit in store.units][1] == "A & <B> C"
    assert [unit.source.lower() for unit in store.units] == [str(unit.target).lower() for unit in store.units]


UNIT = "<xliff version='1.2'><file><body>{}</body></file></xliff>"
ONE = "<trans-unit><source>a</source></trans-unit>"
DONE = "<trans-unit><source>a</source><target>A</target></trans-unit>"


@pytest.mark.parametrize(
    "source, target",
    [
        ('a <mrk mtype="protected">b</mrk> c', 'A <mrk mtype="protected">b</mrk> C'),
        ('a <mrk mtype="term">b</mrk> c', 'A <mrk mtype="term">B</mrk> C'),
        ('a <g translate="no">b <x/></g> c', 'A <g translate="no">b <x/></g> C'),
        ("a <ph>b <sub>c</sub></ph> d", "A <ph>b <sub>c</sub></ph> D"),
        ("<![CDATA[A & <B>]]> b &amp; c", "A &amp; &lt;B&gt; B &amp; C"),
        ("<![CDATA[A & <B> C]]>", "A &amp; &lt;B&gt; C"),
        ("a &#38; <![CDATA[b]]>&lt;", "A &amp; B&lt;"),
    ],
)
def test_code_and_what_is_not_to_translate_stay_and_what_cdata_holds_is_escaped(source, target):
    unit = f"<trans-unit><source>{source}</source>{{}}</trans-unit>"
    output = through("xliff", UNIT.format(unit.format("<target ></target >")), capitals)
    assert output == UNIT.format(unit.format(f"<target >{target}</target >"))


@pytest.mark.parametrize(
    "before, after",
    [
        (f"<group translate='no'>{ONE}</group>{ONE}", f"<group translate='no'>{ONE}</group>{DONE}"),
        (f"<trans-unit translate='no'><g>{ONE}</g></trans-unit>",) * 2,
        (DONE.replace(">A<", ">Alt<") + ONE, DONE.replace(">A<", ">Alt<") + DONE),
        ("<trans-unit><source></source></trans-unit>",) * 2,
        ("<trans-unit><source><x/></source></trans-unit>",) * 2,
        ("<trans-unit><source>a</source><target><x/></target></trans-unit>",) * 2,
    ],
)
def test_a_unit_gets_a_target_if_it_may_be_translated_has_text_and_has_none_of_its_own(before, after):
    review = ' state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert through("xliff", UNIT.format(before), capitals).replace(review, "") == UNIT.format(after)


@pytest.mark.parametrize("encoding", ["UTF-8", "utf-8"])
def test_names_may_have_a_namespace(encoding):
    file = f'\ufeff<?xml version="1.0" encoding="{encoding}"?><x:xliff version="2.0">{{}}</x:xliff>'
    unit = "<x:segment><x:source>a</x:source>{}</x:segment>"
    assert through("xliff", file.format(unit.format("")), capitals) == file.format(
        unit.format("<x:target>A</x:target>")
    )
