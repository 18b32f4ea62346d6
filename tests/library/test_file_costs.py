"""A file costs time in proportion to its length, whatever repeats in it."""

import pytest

from keras_transformer.text.passages import Passage, Token
from tests.support.documents import capitals, through
from tests.support.growth import MOST_GROWTH, growth_of

UNIT = "<trans-unit><source>A <g>dog</g> runs.</source></trans-unit>"
SEGMENTS = "<mrk mtype='seg' mid='{}'>A dog runs.</mrk> "
XLIFF = "<xliff version='1.2'><file><body>{}</body></file></xliff>"
REGION = "a <sm id='{}' translate='no'/>b<em startRef='{}'/> c. "
SECOND = (
    "<xliff version='2.0' xmlns:slr='s'><file><slr:profiles generalProfile='xliff:codepoints'/>"
    "<unit slr:sizeRestriction='9'><segment><source>{}</source></segment>{}</unit></file></xliff>"
)


def segments(count):
    inside = "".join(SEGMENTS.format(number) for number in range(count))
    return XLIFF.format(f"<trans-unit><source>a</source><seg-source>{inside}</seg-source></trans-unit>")


FILES = {  # of about n characters
    "blocks": ("html", lambda n: "<p>A <b>dog</b> runs.</p>\n" * (n // 25)),
    "one block": ("html", lambda n: f"<p>{'A <b>dog</b> runs. ' * (n // 19)}</p>"),
    "items": ("html", lambda n: f"<ul>{'<li>A dog runs.' * (n // 15)}</ul>"),
    "depth": ("html", lambda n: "<div><b>" * (n // 18) + "x" + "</b></div>" * (n // 18)),
    "pictures": ("html", lambda n: f"<p>A <svg>{'<path/>' * (n // 7)}</svg> dog"),
    "icons": ("html", lambda n: f"<p>{'A <i></i> dog <b/>runs</b>. ' * (n // 28)}"),
    "attributes": ("html", lambda n: "<p title='A dog runs.'><img alt=Dog title='A cat'>" * (n // 48)),
    "attributes of a tag": ("html", lambda n: f"<img {' '.join(f'a{k}=b title=c' for k in range(n // 17))} alt=d>"),
    "names without values": ("html", lambda n: f"<img {'a ' * (n // 2)} alt=d>"),
    "one value": ("html", lambda n: f"<p>A <img alt='{'A dog &amp; a cat runs. ' * (n // 24)}'> dog.</p>"),
    "texts in a picture": ("html", lambda n: f"<svg title=a>{'<path title=b />' * (n // 17)}</svg>"),
    "units": ("xliff", lambda n: XLIFF.format(UNIT * (n // 60))),
    "segments": ("xliff", lambda n: segments(n // 45)),
    "regions": (
        "xliff",
        lambda n: SECOND.format("".join(REGION.format(k, k) for k in range(n // 60)), ""),
    ),
    "regions in regions": (
        "xliff",
        lambda n: SECOND.format("".join(f"<sm id='{k}' translate='yes'/>a " for k in range(n // 30)), ""),
    ),
    "a unit with a size": (
        "xliff",
        lambda n: SECOND.format("", "<segment><source>A dog.</source></segment>" * (n // 42)),
    ),
    "one unit": ("xliff", lambda n: XLIFF.format(UNIT.replace("runs.", "<g>runs</g>. A cat. " * (n // 20)))),
    "entries": ("po", lambda n: "".join(f'msgid "A dog {k}."\nmsgstr ""\n\n' for k in range(n // 33))),
    "one entry": ("po", lambda n: 'msgid ""\n' + '"A _dog &runs %s %(b)s.\\n"\n' * (n // 28) + 'msgstr ""\n'),
    "forms": (
        "po",
        lambda n: (
            'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n>1;\\n"\n'
            + "".join(f'msgid "{k}"\nmsgid_plural "dogs {k}"\nmsgstr[0] ""\nmsgstr[1] ""\n' for k in range(n // 60))
        ),
    ),
    "texts": ("json", lambda n: "{" + ", ".join(f'"{k}": "A dog."' for k in range(n // 20)) + "}"),
    "texts by number": (
        "json",
        lambda n: "{" + ", ".join(f'"{k}_one": "A dog.", "{k}_other": "dogs"' for k in range(n // 40)) + "}",
    ),
    "forms of a text": ("json", lambda n: '{"a": "' + "a dog|{n} dogs|" * (n // 15) + '"}'),
    "texts in texts": (
        "json",
        lambda n: '{"a": [' * min(n // 14, 90) + '"A dog.", ' * (n // 10) + "0" + "]}" * min(n // 14, 90),
    ),
    "cues": ("srt", lambda n: "1\n00:00:01,000 --> 00:00:02,000\nA <i>dog</i> runs\nhome.\n\n" * (n // 60)),
    "one cue": ("srt", lambda n: "1\n00:00:01,000 --> 00:00:02,000\n" + "A <i>dog</i> runs.\n" * (n // 19)),
    "notes": ("vtt", lambda n: "WEBVTT\n\n" + "NOTE a dog\n\n" * (n // 12)),
    "records": ("jsonl", lambda n: '{"text": "A \\u00e9 dog.", "n": [1, 2]}\n' * (n // 38)),
    "one record": ("jsonl", lambda n: '{"text": "' + "A \\u00e9 dog. " * (n // 14) + '"}\n'),
    "links": ("markdown", lambda n: "".join(f"A **dog** [runs][{k}].\n\n[{k}]: u\n\n" for k in range(n // 35))),
    "notes of Markdown": ("markdown", lambda n: "".join(f"[^{k}]: A dog\n\n    runs.\n\n" for k in range(n // 30))),
    "a reference that does not end": ("markdown", lambda n: "a [a][" + "b" * n),
    "notes in notes": ("markdown", lambda n: "".join(f"{'    ' * k}!!! note\n\n" for k in range(int(n**0.5) // 2))),
}
FILES |= {  # signs of Markdown that nothing closes
    sign: ("markdown", lambda n, sign=sign: sign * (n // len(sign)))
    for sign in ("{=", "{{", "{%", "$a ", "[^", "[`", "[[", ":a", ":::{", "!!! a a\n", "][b", "[a][] ", ": ")
}


@pytest.mark.parametrize("case", FILES)
def test_four_times_the_file_takes_not_much_more_than_four_times_as_long(case):
    name, make = FILES[case]
    assert growth_of(lambda text: through(name, text, capitals), make) < MOST_GROWTH


SENTENCES = {  # parts of one sentence that repeat
    "tags": [Token("a ", "a "), Token("<b>", "", True), Token("dog", "dog"), Token("</b>", "", True), Token(" ", " ")],
    "lines": [Token("a\n", "a\n")],
    "lines without spaces": [Token("犬\n", "犬\n"), Token("<b>", "", True)],
    "signs for spaces": [Token("a", "a"), Token("<br/>", " ", True)],
}


@pytest.mark.parametrize("repeated", SENTENCES.values(), ids=list(SENTENCES))
def test_a_sentence_of_many_marks_is_read_and_written_in_time_that_grows_with_it(repeated):
    def rewrite(passage):
        passage.rendered(passage.line(0, len(passage.text)), "ein hund " * len(passage.text), {})

    assert growth_of(rewrite, lambda n: Passage(repeated * n), 100, 6_400) < MOST_GROWTH
