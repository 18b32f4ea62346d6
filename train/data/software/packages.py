"""Debian packages, as .deb files or as folders of their contents: the files in them, version, section and licence."""

import email
import hashlib
import io
import itertools
import lzma
import pathlib
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import files_in, resolved

from ..corpus import CorpusError

ARCHIVE = b"!<arch>\n"  # the first bytes of a .deb file, which is an archive of `ar`
HEADER = 60  # bytes before each member of it: name, four numbers, size, mark
UNKNOWN = "unknown"
ALL_FILES = re.compile(r"^Files:[ \t]*\*[ \t]*$", re.MULTILINE)
LICENCE = re.compile(r"^License:[ \t]*(\S.*)$", re.MULTILINE)
DAMAGED = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, ValueError, OSError)


class Package(NamedTuple):
    """What the corpus takes from a package.

    section: Debian's, such as "graphics". licence: of "Files: *" in its copyright file. sha256: of the .deb file, or of
    the files that were taken if their folder was given. files: their content by path, such as "usr/share/...".
    """

    name: str
    version: str
    section: str
    licence: str
    sha256: str
    files: Mapping[str, bytes]


def download(names: Sequence[str], folder: pathlib.Path) -> None:
    """Put the .deb files of packages into `folder` by `apt-get download`, which installs nothing.

    Raises CorpusError if there is no apt-get, or if it does not know a package or cannot reach its servers.
    """
    by_hand = f"Or give --from a folder with the .deb files of {', '.join(names)}, or with their contents."
    if not shutil.which("apt-get"):
        raise CorpusError(f"There is no apt-get here to download packages with. {by_hand}")
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["apt-get", "download", *names], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")] or ["E: no reason given"]
        raise CorpusError(
            f"apt-get download failed: {errors[0].removeprefix('E: ').rstrip('.')}. Try `apt-get update`. {by_hand}"
        )


def packages_in(folder: pathlib.Path, is_wanted: Callable[[str], bool]) -> list[Package]:
    """The packages in a folder by name: .deb files, and the contents of packages.

    Contents are what `dpkg-deb -x` or `dpkg-deb -R` writes: a folder with `usr` in it, the given one or one inside it.
    is_wanted: whether a file of that path is taken. Raises CorpusError if there is no package, a damaged one,
    or one twice.
    """
    if not folder.is_dir():
        raise CorpusError(f"--from is {folder}, which is no folder: name one with .deb files, or with their contents.")
    debs = sorted(folder.glob("*.deb"))
    roots = [root for root in (folder, *sorted(folder.iterdir())) if (root / "usr").is_dir()]
    found = [read_deb(path, is_wanted) for path in debs] + [read_contents(root, is_wanted) for root in roots]
    if not found:
        raise CorpusError(f"--from is {folder}, which has no .deb file in it, and no folder with `usr` inside.")
    found.sort(key=lambda package: package.name)
    for package, other in itertools.pairwise(found):
        if package.name == other.name:
            raise CorpusError(
                f"--from is {folder}, which has the package {package.name} twice, in the versions {package.version} "
                f"and {other.version}: keep one of them."
            )
    return found


def read_deb(path: pathlib.Path, is_wanted: Callable[[str], bool]) -> Package:
    """The Package of a .deb file. Raises CorpusError if it is damaged, or packed as only dpkg-deb can read."""
    try:
        content = path.read_bytes()
        members = dict(members_of(content))
        control, files = (members_of_tar(path, members, part) for part in ("control", "data"))
        texts = {name: text for name, text in files if is_wanted(name) or is_copyright(name)}
        fields = dict(control)["control"]
    except CorpusError:
        raise
    except DAMAGED as error:
        raise CorpusError(f"{path} is no intact .deb file: {first_line_of(error)} Download it again.") from None
    except KeyError as error:
        raise CorpusError(f"{path} is no intact .deb file: it has no {error.args[0]}. Download it again.") from None
    return package_of(path.name.partition("_")[0], fields, hashlib.sha256(content).hexdigest(), texts, is_wanted)


def read_contents(root: pathlib.Path, is_wanted: Callable[[str], bool]) -> Package:
    """The Package whose contents are in a folder; its version is known if DEBIAN/control lies there."""
    texts = {}
    for file in files_in(root / "usr"):
        name = file.relative_to(root).as_posix()
        if is_wanted(name) or is_copyright(name):
            texts[name] = file.read_bytes()
    control = root / "DEBIAN" / "control"
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(f"{name} {hashlib.sha256(text).hexdigest()}\n".encode())
    fields = control.read_bytes() if control.is_file() else b""
    return package_of(resolved(root).name, fields, digest.hexdigest(), texts, is_wanted)


def package_of(
    name: str, control: bytes, digest: str, texts: Mapping[str, bytes], is_wanted: Callable[[str], bool]
) -> Package:
    fields = email.message_from_bytes(control)
    files = {path: text for path, text in sorted(texts.items()) if is_wanted(path)}
    section = str(fields["Section"] or UNKNOWN).rpartition("/")[2]  # "non-free/graphics" is graphics
    licence = next(filter(None, (licence_of(text) for path, text in sorted(texts.items()) if is_copyright(path))), None)
    return Package(
        str(fields["Package"] or name), str(fields["Version"] or UNKNOWN), section, licence or UNKNOWN, digest, files
    )


def is_copyright(name: str) -> bool:
    return re.fullmatch(r"usr/share/doc/[^/]+/copyright", name) is not None


def licence_of(copyright_file: bytes) -> str | None:
    """The licence that a copyright file in Debian's format names for "Files: *", else the first one that it names."""
    text = copyright_file.decode("utf-8", "replace")
    paragraphs = [paragraph for paragraph in re.split(r"\n[ \t]*\n", text) if LICENCE.search(paragraph)]
    paragraph = next((each for each in paragraphs if ALL_FILES.search(each)), "".join(paragraphs[:1]))
    match = LICENCE.search(paragraph)
    return match and match[1].strip()


def members_of(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of an archive of `ar`: name and content. Raises ValueError if it is damaged."""
    if not content.startswith(ARCHIVE):
        raise ValueError("it does not begin as one")
    place = len(ARCHIVE)
    while place < len(content):
        header = content[place : place + HEADER]
        size = header[48:58].strip()
        if len(header) < HEADER or header[58:] != b"`\n" or not size.isdigit():
            raise ValueError(f"byte {place} begins no member of it")
        place += HEADER
        member = content[place : place + int(size)]
        if len(member) < int(size):
            raise ValueError("it ends too early")
        yield header[:16].decode("ascii", "replace").strip().rstrip("/"), member
        place += int(size) + int(size) % 2


def members_of_tar(path: pathlib.Path, members: Mapping[str, bytes], part: str) -> Iterator[tuple[str, bytes]]:
    """The files of the tar archive `part` of a .deb file, "control" or "data": path and content."""
    name = next((name for name in members if name.startswith(f"{part}.tar")), None)
    if name is None:
        raise KeyError(f"{part}.tar")
    content = unpacked_zst(path, part) if name.endswith(".zst") else members[name]
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            if member.isfile():
                file = archive.extractfile(member)
                yield member.name.removeprefix("./"), file.read() if file else b""


def unpacked_zst(path: pathlib.Path, part: str) -> bytes:
    """The archive in a .deb file of Ubuntu, which Python before 3.14 cannot unpack. Raises CorpusError without dpkg."""
    if not shutil.which("dpkg-deb"):
        raise CorpusError(
            f"{path} is packed by zstd, and there is no dpkg-deb here to unpack it: write its contents into a folder "
            "by `dpkg-deb -R` elsewhere, and give that folder."
        )
    option = "--ctrl-tarfile" if part == "control" else "--fsys-tarfile"
    done = subprocess.run(["dpkg-deb", option, path], capture_output=True)
    if done.returncode:
        raise ValueError(done.stderr.decode("utf-8", "replace"))
    return done.stdout
