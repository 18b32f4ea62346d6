"""The folders of the wheel: all that pyproject.toml cannot say.

`train/`, `export/` and `cluster/` stand on top of the checkout and are inside the package once installed, because
modules of such names do not belong in site-packages. Their imports are relative, so that they work in both places.
"""

from setuptools import find_packages, setup

INSIDE = "train", "export", "cluster"

setup(
    packages=[
        *find_packages(include=["keras_transformer", "keras_transformer.*"]),
        *(f"keras_transformer.{name}" for name in find_packages(include=[*INSIDE, *(f"{name}.*" for name in INSIDE)])),
    ],
    package_dir={f"keras_transformer.{name}": name for name in INSIDE},
)
