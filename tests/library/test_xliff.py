"""XLIFF: units without a target get one, and nothing else changes."""

import io
import re
from xml.etree import ElementTree

import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.xliff import xliff_parts
from tests.support.documents import capitals, through, translated

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
            '<target state="needs-review-translation">A &amp; &lt;B&gt; C</target>', '<target state="new"/>'
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
    file = "<xliff version='2.0' trgLang='de'><file><unit id='1'><segment>{}</segment></unit></file></xliff>"
    assert through("xliff", file.format(before), capitals) == file.format(after)


def backwards(line):
    return " ".join(reversed(line.split()))


UNIT_7 = "<xliff version='2.0' trgLang='de'><file><unit id='u7'><segment>{}</segment></unit></file></xliff>"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a big dog|%n% big dogs", "dog big a|dogs big %n%"),  # of Symfony
        ("{0}no dog|[1,Inf[%n% big dogs &amp; cats", "dog {0}no|cats &amp; dogs big [1,Inf[%n%"),
        ("the file &quot;a|b&quot; is", "is &quot;a|b&quot; file the"),
        ("see [[page|text]] now", "now [[page|text]] see"),
    ],
)
def test_each_form_of_a_text_for_a_number_is_a_text(source, target):
    output = through("xliff", UNIT_7.format(f"<source>{source}</source><target></target>"), backwards)
    assert output.replace('"', "&quot;").endswith(f"<target>{target}</target></segment></unit></file></xliff>")


@pytest.mark.parametrize(
    ("source", "translation", "is_lost"),
    [
        ("%d of %@", "%d von %@", False),
        ("%d of %@", "%@ von %d", True),  # of Apple
        ("%1$@ of <x id='1'/> %2$@", "%2$@ von %1$@", False),
        ("{{ x }} dogs", "Hunde", True),
        ("a <ph id='1'>%s</ph> dog", "ein Hund", False),  # the element comes through by itself
        ("a dog", "ein Hund", False),
    ],
)
def test_a_unit_whose_translation_lacks_what_is_filled_in_is_named(source, translation, is_lost, caplog):
    through("xliff", UNIT_7.format(f"<source>{source}</source>"), lambda line: translation)
    named = [message for message in caplog.messages if "has not what a program fills in" in message]
    assert len(named) == is_lost and all(message.startswith("file, unit u7: ") for message in named)


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


@pytest.mark.parametrize(
    "attributes, is_left",
    [
        ('mq:locked="locked"', True),  # memoQ
        ('mq:locked="no"', False),
        ('m:locked="true" m:confirmed="0"', True),  # Phrase
        ('m:locked="false"', False),
    ],
)
def test_a_unit_that_a_program_for_translators_has_locked_stays(attributes, is_left):
    unit = f'<trans-unit xmlns:m="m" xmlns:mq="MQXliff" {attributes}><source>a</source>{{}}</trans-unit>'
    for target in ("<target></target>", "<target>b</target>"):
        output = through("xliff", UNIT.format(unit.format(target)), capitals, everything=True)
        assert output == UNIT.format(unit.format(target if is_left else "<target>A</target>"))


@pytest.mark.parametrize("encoding", ["UTF-8", "utf-8"])
def test_names_may_have_a_namespace(encoding):
    file = f'\ufeff<?xml version="1.0" encoding="{encoding}"?><x:xliff version="2.0" trgLang="de">{{}}</x:xliff>'
    unit = "<x:segment><x:source>a</x:source>{}</x:segment>"
    assert through("xliff", file.format(unit.format("")), capitals) == file.format(
        unit.format("<x:target>A</x:target>")
    )


def targets(units, **options):
    """The targets of the units of an XLIFF 1.2 file, after it was translated."""
    result = translated(xliff_parts(io.BytesIO(UNIT.format(units).encode()), "file", (), **options), capitals)
    assert re.sub("<target.*?</target>|<target[^>]*/>", "", result) == re.sub(
        "<target.*?</target>|<target[^>]*/>", "", UNIT.format(units)
    )
    ElementTree.fromstring(result)
    return [
        re.findall("<target[^>]*/>|<target.*?</target>", unit)
        for unit in re.findall("<trans-unit.*?</trans-unit>", result)
    ]


REVIEWED = 'state="needs-review-translation"'


@pytest.mark.parametrize(
    "target, expected",
    [
        ('<target state="new"/>', f"<target {REVIEWED}>A B</target>"),
        ('<target state="new">a b</target>', f"<target {REVIEWED}>A B</target>"),
        ('<target state="new">c</target>', '<target state="new">c</target>'),
        ("<target>a b</target>", "<target>a b</target>"),  # a name may be the same in both languages
        ('<target state="needs-translation">c</target>', f"<target {REVIEWED}>A B</target>"),
        ("<target state='needs-adaptation'>c</target>", "<target state='needs-adaptation'>c</target>"),
        (
            "<target state='x-mine' state-qualifier='y'>c</target>",
            f"<target {REVIEWED} state-qualifier='y'>A B</target>",
        ),
    ],
)
def test_a_target_is_translated_if_its_state_says_that_it_is_none(target, expected):
    unit = f"<trans-unit><source>a b</source>{target}</trans-unit>"
    assert targets(unit, states=["x-mine"]) == [[expected]]


SEGMENTS = '<mrk mtype="seg" mid="0">a <g>b</g>.</mrk> <mrk mid="1" mtype="seg">c</mrk>'
UPPER = SEGMENTS.replace("b", "B").replace(">c", ">C").replace(">a", ">A")


@pytest.mark.parametrize(
    "target, expected",
    [
        ("", f'<target {REVIEWED} state-qualifier="mt-suggestion">{UPPER}</target>'),
        ("<target/>", f"<target>{UPPER}</target>"),
        (
            '<target><mrk mid="0" mtype="seg" x="y"/> - <mrk mid="1" mtype="seg"></mrk></target>',
            '<target><mrk mid="0" mtype="seg" x="y">A <g>B</g>.</mrk> - <mrk mid="1" mtype="seg">C</mrk></target>',
        ),
        (
            '<target><g id="7"><mrk mid="1" mtype="seg"/></g><mrk mid="0" mtype="seg">d</mrk></target>',
            '<target><g id="7"><mrk mid="1" mtype="seg">C</mrk></g><mrk mid="0" mtype="seg">d</mrk></target>',
        ),
        (
            '<target state="needs-translation"><mrk mid="1" mtype="seg">d</mrk></target>',
            f'<target {REVIEWED}><mrk mid="1" mtype="seg">C</mrk></target>',
        ),
        ('<target><mrk mid="1" mtype="seg">d</mrk></target>',) * 2,
        ('<target><mrk mid="9" mtype="seg"/>d</target>',) * 2,
    ],
)
def test_each_segment_has_its_own_translation(target, expected):
    unit = f"<trans-unit><source>a <g>b</g>. c</source><seg-source>{SEGMENTS}</seg-source>{target}</trans-unit>"
    assert targets(unit) == [[expected]]


@pytest.mark.parametrize(
    "target, locked, expected",
    [
        ("<target/>", ["1"], f"<target>{UPPER.replace('>C', '>c')}</target>"),
        (
            '<target><mrk mid="0" mtype="seg"/><mrk mid="1" mtype="seg"/></target>',
            ["0"],
            '<target><mrk mid="0" mtype="seg"/><mrk mid="1" mtype="seg">C</mrk></target>',
        ),
        (f"<target>{SEGMENTS}</target>", ["0"], f"<target>{SEGMENTS.replace('>c', '>C')}</target>"),
        (f"<target>{SEGMENTS}</target>", ["0", "1"], f"<target>{SEGMENTS}</target>"),
        ("<target/>", ["0", "1"], "<target/>"),
    ],
)
def test_a_segment_that_trados_has_locked_stays(target, locked, expected):
    definitions = "".join(f'<sdl:seg id="{each}" locked="{str(each in locked).lower()}"/>' for each in "01")
    unit = f"<trans-unit><source>a</source><seg-source>{SEGMENTS}</seg-source>{{}}"
    unit += f'<sdl:seg-defs xmlns:sdl="sdl">{definitions}</sdl:seg-defs></trans-unit>'
    output = through("xliff", UNIT.format(unit.format(target)), capitals, everything=True)
    assert output == UNIT.format(unit.format(expected))


@pytest.mark.parametrize(
    "units, expected",
    [
        (f"<group translate='no'>{ONE}<group translate='yes'>{ONE}</group></group>", [0, 1]),
        ("<trans-unit translate='no'><source>a</source></trans-unit>" + ONE, [0, 1]),
    ],
)
def test_the_inner_value_of_translate_counts(units, expected):
    assert [len(each) for each in targets(units)] == expected


def test_what_is_to_translate_in_what_is_not_is_a_text_of_its_own():
    source = 'a <mrk mtype="protected">b <mrk mtype="x" translate="yes">c <x/> d</mrk> e <ph>f</ph></mrk> g'
    [[target]] = targets(f"<trans-unit><source>{source}</source><target></target></trans-unit>")
    assert target == (
        '<target>A <mrk mtype="protected">b <mrk mtype="x" translate="yes">C <x/> D</mrk> e <ph>f</ph></mrk> G</target>'
    )


SECOND = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en"{}><file id="1">{}</file></xliff>'
)


@pytest.mark.parametrize(
    "state, target, expected",
    [
        ("", "", "<target>A</target>"),
        (' state="initial"', "<target>a</target>", "<target>A</target>"),
        (' state="initial"', "<target>b</target>", "<target>b</target>"),
        (' state="translated"', "<target>a</target>", "<target>a</target>"),
    ],
)
def test_a_file_with_targets_tells_their_language(state, target, expected):
    unit = f'<unit id="1"><segment{state}><source>a</source>{{}}</segment></unit>'
    for told, language in (("", "und"), ("", "de"), (' trgLang="de"', "de"), (" trgLang=''", "de")):
        option = "" if language == "und" else language
        file = io.BytesIO(SECOND.format(told, unit.format(target)).encode())
        result = translated(xliff_parts(file, "file", (), target_language=option), capitals)
        is_changed = expected != target
        assert result == SECOND.format(f' trgLang="{language}"' if is_changed else told, unit.format(expected))


def test_the_first_version_tells_it_for_each_file_if_it_is_known():
    files = '<xliff version="1.2">{}</xliff>'
    one = f'<file source-language="en"{{}} original="x"><body>{ONE}</body></file>'
    content = files.format(one.format("") + one.format(" target-language='de'") + one.format(""))
    for language in ("", "de"):
        result = translated(xliff_parts(io.BytesIO(content.encode()), "file", (), target_language=language), capitals)
        assert result.count('source-language="en" target-language="de" ') == 2 * bool(language)
        assert result.count("target-language") == 1 + 2 * bool(language)
    with pytest.raises(InputError, match="tells target-language='de', and --target-language is fr"):
        list(xliff_parts(io.BytesIO(content.encode()), "file", (), target_language="fr"))


def test_what_is_left_is_counted_by_reason(caplog):
    units = (
        f"{ONE}<trans-unit translate='no'><source>a</source></trans-unit><trans-unit><source> </source></trans-unit>"
    )
    done = '<trans-unit><source>a</source><target state="final">b</target></trans-unit>'
    targets(units + done + done + DONE)
    assert caplog.messages == [
        "file: 1 unit translated, 5 left: 2 with a target in state final, 1 not to be translated, 1 without text, "
        "1 with a target"
    ]


@pytest.mark.parametrize(
    "source, target",
    [
        ('a <sm id="1" translate="no"/>b<em startRef="1"/> c', 'A <sm id="1" translate="no"/>b<em startRef="1"/> C'),
        (
            'a <sm id="1" translate="no"></sm>b<em startRef="1"></em>',
            'A <sm id="1" translate="no"></sm>b<em startRef="1"></em>',
        ),
        ('a <mrk id="1" translate="no">b</mrk> c', 'A <mrk id="1" translate="no">b</mrk> C'),
        ('<sm id="1" translate="no"/>b<em startRef="1"/>', '<sm id="1" translate="no"/>b<em startRef="1"/>'),
        ('<sm id="1" type="term"/>a<em startRef="1"/> b', '<sm id="1" type="term"/>A<em startRef="1"/> B'),
        # the inner value counts, and what tells nothing is as what is around it
        (
            '<sm id="1" translate="no"/>b <mrk id="2" translate="yes">c</mrk> d<em startRef="1"/> e',
            '<sm id="1" translate="no"/>b <mrk id="2" translate="yes">C</mrk> d<em startRef="1"/> E',
        ),
        (
            '<sm id="1" translate="no"/>b <sm id="2" translate="yes"/>c<em startRef="2"/> d<em startRef="1"/> e',
            '<sm id="1" translate="no"/>b <sm id="2" translate="yes"/>C<em startRef="2"/> d<em startRef="1"/> E',
        ),
        (
            '<mrk id="1" translate="no">b <sm id="2" translate="yes"/>c<em startRef="2"/> d</mrk> e',
            '<mrk id="1" translate="no">b <sm id="2" translate="yes"/>C<em startRef="2"/> d</mrk> E',
        ),
        # regions that cross each other, and elements
        (
            'a <sm id="1" translate="no"/>b <mrk id="2" type="term">c<em startRef="1"/> d</mrk> e',
            'A <sm id="1" translate="no"/>b <mrk id="2" type="term">c<em startRef="1"/> D</mrk> E',
        ),
        (
            'a <pc id="1">b <sm id="2" translate="no"/>c</pc> d<em startRef="2"/> e',
            'A <pc id="1">B <sm id="2" translate="no"/>c</pc> d<em startRef="2"/> E',
        ),
        (
            'a <sm id="1" translate="no"/>b <sm id="2" translate="yes"/>c <em startRef="1"/>d <em startRef="2"/>e',
            'A <sm id="1" translate="no"/>b <sm id="2" translate="yes"/>C <em startRef="1"/>D <em startRef="2"/>E',
        ),
        ('a <em startRef="9"/>b <sm id="1" translate="no"/>c', 'A <em startRef="9"/>B <sm id="1" translate="no"/>c'),
    ],
)
@pytest.mark.parametrize("translate", [capitals, lambda line: " ".join(reversed(capitals(line).split()))])
def test_a_region_that_is_not_to_translate_stays(source, target, translate):
    file = SECOND.format(' trgLang="de"', f'<unit id="1"><segment><source>{source}</source>{{}}</segment></unit>')
    result = through("xliff", file.format(""), translate)
    ElementTree.fromstring(result)
    kept = "".join(re.findall("[a-z]", re.sub("<[^>]*>", "", re.findall("<target>(.*)</target>", result)[0])))
    assert kept == "".join(re.findall("[a-z]", re.sub("<[^>]*>", "", target)))
    if translate is capitals:
        assert result == file.format(f"<target>{target}</target>")


def test_a_region_may_reach_over_segments_and_ends_with_its_unit():
    region = ['a <sm id="1" translate="no"/>b', "c", 'd<em startRef="1"/> e', "f"]
    open_region = ['<sm id="1" translate="no"/>a', "b"]

    def units(fill):
        return "".join(
            f'<unit id="{number}">'
            + "".join(f"<segment><source>{source}</source>{fill(source)}</segment>" for source in sources)
            + "</unit>"
            for number, sources in enumerate([region, open_region, ["a"]])
        )

    file = SECOND.format(' trgLang="de"', "{}")
    expected = {"a": "A", region[0]: region[0].replace("a <", "A <"), region[2]: region[2][:-1] + "E", "f": "F"}
    result = through("xliff", file.format(units(lambda source: "")), capitals)
    assert result == file.format(units(lambda source: f"<target>{expected.get(source, source)}</target>"))
