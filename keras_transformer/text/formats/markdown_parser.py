"""What is read of Markdown: CommonMark, tables and ~~strikethrough~~ of GitHub, and what generators of sites add.

That are blocks, such as `!!! note "Title"` of MkDocs, and what no model should read inside of a text, such as {#name}.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from keras_transformer.ground.errors import UserError

SPECIAL = re.compile(
    "|".join(
        (
            r"\A\[(?:[ xX]\](?=\s)|!\w++\][-+]?|TOC\]\Z)",  # box of a task, kind of a callout, table of contents
            r"\[\^[^\]\s]++\]|\[\[[^\[\]\n]++\]\](?!\()|\[`[^`\n]++`\](?:\[[^\[\]\n]*+\])?(?!\()",  # note, page, code
            r"(?<!\w):[a-z][a-z0-9_+-]++:(?!\w)|(?<![\w.@/])@[A-Za-z][\w-]*+",  # emoji, user
            r"\$\$[^$]++\$\$|\$`[^`]++`\$|(?<![\w$])\$(?=[^\s$])[^$\n]*+(?<!\s)\$(?![\d$])",  # mathematics
            r"\{\{[^{}]*+\}\}|\{%[^%{]*+%\}",  # of templates
            r"\{[ \t]*+[#.:*!=][^{}]*+\}|\{[^{}\n=]++=[^{}\n]*+\}|\{[\w:-]++\}(?=`)",  # attributes, files, roles
        )
    )
)
BLOCK = re.compile(
    r"(?P<indented>(?:!!!|\?\?\?\+?)[ \t]+[a-z][\w-]*+(?:[ \t]+[a-z][\w-]*+)*+(?:[ \t]+\"|[ \t]*$)|===[!+]?[ \t]+\")"
    r"|:{3,}[ \t]*(?:\{[^{}]*+\}|[\w-]++)?(?:[ \t]*\[|[ \t]+|$)|/{3,}[ \t]*(?:[\w-]++[ \t]*)?(?:\|[ \t]*|$)|-+8<-.*"
    r"|(?P<goes_on>:[ \t]+|\[\^[^\]\s]++\]:[ \t]*|\*\[[^\]]++\]:[ \t]*)"  # a definition, note or abbreviation
)
REFERENCE = re.compile(r"\]\[([^\[\]]++)\]|\[([^\[\]]++)\]\[\]")


@functools.cache
def parser() -> Any:
    """Return the parser, whose tokens tell where links and pictures end. Raises UserError if it is not installed."""
    try:
        from markdown_it import MarkdownIt
        from markdown_it.rules_inline import image, link
    except ImportError:
        raise UserError(
            "Markdown needs the package markdown-it-py, which is not installed: "
            "pip install 'keras-transformer-mt[text]'."
        ) from None

    def noting(rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
        def noted(state: Any, silent: bool) -> bool:
            is_found = rule(state, silent)
            if is_found and not silent:
                state.tokens[-1].meta = {"end": state.pos}
            return is_found

        return noted

    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    markdown.core.ruler.disable(["text_join"])
    markdown.inline.ruler.at("link", noting(link))
    markdown.inline.ruler.at("image", noting(image))
    markdown.inline.ruler.before("backticks", "special", special)
    markdown.block.ruler.before("fence", "block", block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return markdown


def parsed(text: str, env: dict[str, Any]) -> list[Any]:
    """Return the tokens of a text, in which [text][name] is a link although another file defines the name.

    env: gets the references; see markdown-it.
    """
    from markdown_it.common.utils import normalizeReference

    tokens, references = parser().parse(text, env), env.setdefault("references", {})
    names = {normalizeReference(name or label) for name, label in REFERENCE.findall(text)} - references.keys()
    names.discard("")
    if not names:
        return tokens
    references.update((name, {"href": "", "title": ""}) for name in names)
    return parser().parse(text, env)


def special(state: Any, silent: bool) -> bool:
    """Read what no model should read inside of a text: a rule of markdown-it."""
    found = SPECIAL.match(state.src, state.pos, state.posMax)
    if found and not silent:
        state.push("special", "", 0).content = found[0]
    state.pos = found.end() if found else state.pos
    return found is not None


def block(state: Any, first: int, last: int, silent: bool) -> bool:
    """Read a block of a generator of sites, with its title and what is indented below it: a rule of markdown-it."""
    start = state.bMarks[first] + state.tShift[first]
    line = state.src[start : state.eMarks[first]]
    found = None if state.is_code_block(first) else BLOCK.match(line)
    if silent or not found:
        return found is not None
    from markdown_it.rules_block import paragraph

    outer = state.blkIndent, state.lineMax
    state.push("block_open", "div", 1)
    state.bMarks[first], state.tShift[first], state.line = start + found.end(), 0, first + 1
    if not found["goes_on"]:
        state.eMarks[first], state.lineMax = start + max(found.end(), len(line.rstrip('"] \t'))), first + 1
    if not state.isEmpty(first):
        paragraph(state, first, state.lineMax, False)
    below = state.line
    state.blkIndent, state.lineMax = outer[0] + 4, outer[1]
    if found["goes_on"] or found["indented"]:
        while below < outer[1] and (state.isEmpty(below) or state.sCount[below] >= state.blkIndent):
            below += 1
        state.lineMax = below
        state.md.block.tokenize(state, state.line, below)
    state.blkIndent, state.lineMax = outer
    state.push("block_close", "div", -1)
    return True
