"""Which format a file has by the ending of its name."""

import os

LINES, HTML = "lines", "html"
STRINGS_OF_ANDROID = "strings.xml"  # a name that tells more than its ending
USUAL = {
    ending: format
    for endings, format in {
        "srt": "srt",
        "vtt": "vtt",
        "html htm xhtml xht php": HTML,
        "xlf xliff sdlxliff mqxliff mxliff": "xliff",
        "jsonl ndjson": "jsonl",
        "tsv tab": "tsv",
        "po pot": "po",
        "arb": "json",
        STRINGS_OF_ANDROID: "android",
        "strings": "strings",
        "properties": "properties",
        "ts": "ts",
        "md markdown": "markdown",
        "docx docm dotx dotm": "docx",
    }.items()
    for ending in endings.split()
}
TO_EXPORT = "xcstrings stringsdict xcloc plist resx resw"  # of programs that write XLIFF too
ON_REQUEST: dict[str, tuple[str, ...]] = {  # what only its author knows, or loses its markup: formats to ask for
    ending: formats
    for endings, formats in {
        "json": ("json", "jsonl"),
        "xml": ("xliff", "android", HTML),
        "mdx rst adoc tex csv yaml yml toml ini ftl dtd": (LINES,),
        "ass ssa ttml dfxp sbv sub": (),
        "doc odt rtf pdf epub xls xlsx ods ppt pptx odp": (),
        TO_EXPORT: (),
    }.items()
    for ending in endings.split()
}


def ending_of(path: str | os.PathLike) -> str:
    """Return the ending of a name in small letters, without its stop and without that of gzip; "" if it has none.

    Of STRINGS_OF_ANDROID it is the whole name.
    """
    name = os.path.basename(os.fspath(path).rstrip("/")).lower().removesuffix(".gz")
    if name == STRINGS_OF_ANDROID:
        return name
    stem, _, ending = name.rpartition(".")
    return ending if stem else ""


def format_of_name(path: str | os.PathLike) -> str | None:
    """Return the format that the name of a file tells; None if it tells none."""
    return USUAL.get(ending_of(path))


def why_not(path: str | os.PathLike, format: str, is_asked: bool) -> str | None:
    """Return a sentence if a file of this name is none of a format; None if it may be one.

    is_asked: whether somebody asked for the format, which then may be one that leaves the markup of a file alone.
    """
    ending = ending_of(path)
    formats = (USUAL[ending],) if ending in USUAL else ON_REQUEST.get(ending, (format,))
    if format in formats and (is_asked or ending not in ON_REQUEST):
        return None
    if not formats:
        way = "export it as XLIFF" if ending in TO_EXPORT.split() else "save it as HTML, text or SRT"
        return f"{path} ends in .{ending}, which no format reads: {way} first."
    advice = f"give --format {' or '.join(formats)}, or a file of another name if it is none"
    if formats == (LINES,):
        advice = "its markup would be translated. Give --format lines if each line is a sentence"
    return f"{path} ends in .{ending}, and is not read as --format {format}: {advice}."
