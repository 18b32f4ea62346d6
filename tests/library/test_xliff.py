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
    assert re.sub(r"\n    <target.*?</target>", "", output, count=1).replace(
        '<target state="new">A &amp; &lt;B&gt; C</target>', '<target state="new"/>'
    ) == UNITS  # fmt: skip
    [first, _] = re.findall("<target[^>]*>(.*?)</target>", output)
    assert first == 'A <g id="1">BIG</g> DOG &amp; <x id="2"/> <ph id="3">{0}</ph>CAT. TWO.'


@pytest.mark.parametrize(
    "before, after",
    [
        ("<source>a</source><target></target>", "<source>a</source><target>A</target>"),
        ("<source>a</source>", "<source>a</source><target>A</target>"),
        ("x\n <source>a</source>\n", "x\n <source>a</source>\n <target>A</target>\n"),
        ("<source>a</source><seg-source/>.", "<source>a</source><seg-source/><target>A</target>."),
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
