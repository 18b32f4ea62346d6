"""The folders of the wheel and its page on the index: all that pyproject.toml cannot say.

`train/`, `export/` and `cluster/` stand on top of the checkout and are inside the package once installed, because
modules of such names do not belong in site-packages. Their imports are relative, so that they work in both places.

The index has no file of the repository, so links of README.md are made absolute here. hatch-fancy-pypi-readme does the
same under hatchling, which has no editable installation of a folder under another name.
"""

import pathlib
import re
import tomllib

from setuptools import find_packages, setup

INSIDE = "train", "export", "cluster"
HERE = pathlib.Path(__file__).parent
LINK = re.compile(r"""(\]\(|(?:href|src)=")(?![a-z]+:|#)([^)"\s]+)""")  # where `](`, `href="` or `src="` leads


def readme() -> str:
    """Return README.md with links to the files of this version, by its tag."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]

    def absolute(link: re.Match) -> str:
        start, path = link.groups()
        kind = "raw" if path.endswith((".png", ".svg")) else "blob"
        return f"{start}{project['urls']['Source']}/{kind}/v{project['version']}/{path}"

    return LINK.sub(absolute, (HERE / "README.md").read_text("utf-8"))


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(include=["keras_transformer", "keras_transformer.*"]),
        *(f"keras_transformer.{name}" for name in find_packages(include=[*INSIDE, *(f"{name}.*" for name in INSIDE)])),
    ],
    package_dir={f"keras_transformer.{name}": name for name in INSIDE},
)
