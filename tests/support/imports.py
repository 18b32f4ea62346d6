"""Which module of the project imports which, read from the source."""

import ast
import collections.abc
import functools

from tests.support.places import ROOT

PACKAGES = "keras_transformer", "train", "export", "cluster"


def files_of(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path):
    """The dotted name of the module in a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


EVERY_FILE = {str(path.relative_to(ROOT)): path for path in files_of(*PACKAGES, "benchmarks", "examples", "tests")}
FILE_OF = {name_of(path): path for path in EVERY_FILE.values()}


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


class Trees(collections.abc.Mapping):
    """The source of files by their names; each is parsed, once for all, when it is asked for."""

    def __init__(self, files):
        self.files = files

    def __getitem__(self, name):
        return tree_of(self.files[name])

    def __contains__(self, name):
        return name in self.files

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)


TREES = Trees(EVERY_FILE)
MODULES = Trees({name_of(path): path for path in files_of(*PACKAGES)})


def source_of(node, module, is_package):
    """The dotted name behind `from`, whole if the import is relative."""
    if node.level == 0:
        return node.module
    parts = module.split(".")
    package = parts[: len(parts) - node.level + is_package]
    return ".".join([*package, node.module] if node.module else package)


def imported_by(module):
    """Dotted names of all that a module imports, in functions and by string too; `from a import b` is a.b."""
    is_package = FILE_OF[module].name == "__init__.py"
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{source_of(node, module, is_package)}.{alias.name}" for alias in node.names)


def modules_imported_by(module):
    """Those of `imported_by` that are modules of this project; a name inside a module counts as its module."""
    for name in imported_by(module):
        parent = name.rpartition(".")[0]
        if name in MODULES or parent in MODULES:
            yield name if name in MODULES else parent


def roots_imported_by(module):
    return {name.split(".")[0] for name in imported_by(module)}


def modules_behind(*modules):
    """These modules, all that they import, and all that those import."""
    found, waiting = set(), list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            packages = {module.rsplit(".", count)[0] for count in range(1, module.count(".") + 1)}
            waiting += [*modules_imported_by(module), *(packages & set(MODULES))]
    return found
