"""All models that a server serves: one folder, or those of a file, which can be changed while it runs."""

import asyncio
import logging
import os
from collections.abc import Iterator

from keras_transformer.ground.errors import first_line_of
from keras_transformer.runs.versions import find_version

from .errors import Code, RequestError, shown
from .model_folder import ModelFolder, Status
from .models_config import Model, read_models
from .version import Version

log = logging.getLogger("export.server")


class Models:
    """The models of a server by their names; used from one event loop.

    file: what they were read from, None if they cannot be changed while the server runs.
    """

    def __init__(self, folders: list[ModelFolder], file: str | os.PathLike | None = None):
        self._folders = {folder.name: folder for folder in folders}
        self.file = file
        self._in_file: list[Model] = []
        self._failed: list[Model] | None = None  # what the last reload could not serve
        self._reloading = asyncio.Lock()
        self._reloads: set[asyncio.Task] = set()
        self._group: asyncio.TaskGroup | None = None

    @classmethod
    def at(cls, path: str | os.PathLike) -> "Models":
        """Return the models of a folder or of a file of models. Raises ExportError if it cannot be served."""
        return cls.in_file(path) if os.path.isfile(path) else cls.in_folder(path)

    @classmethod
    def in_folder(cls, path: str | os.PathLike) -> "Models":
        """Return the one model of a folder. Raises ExportError if it has no version that can be loaded."""
        return cls([ModelFolder.open(path)])

    @classmethod
    def in_file(cls, path: str | os.PathLike) -> "Models":
        """Return the models of TensorFlow Serving's file of models.

        Raises ExportError if the file is damaged, or if one of them has no version that can be loaded.
        """
        in_file, folders = read_models(path), []
        for model in in_file:
            find_version(model.path)  # raises ExportError if there is none
            folders.append(ModelFolder(model).loaded())
        models = cls(folders, path)
        models._in_file = in_file
        for model in in_file:
            if reason := models._why_label_fails(model):
                log.warning("%s", reason)
        return models

    def __iter__(self) -> Iterator[ModelFolder]:
        return iter(tuple(self._folders.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._folders

    @property
    def names(self) -> list[str]:
        """The names, in the order of the file."""
        return list(self._folders)

    def version(self, name: str, choice: int | str | None = None) -> Version:
        """Return a version of the model `name`, by its number or its label, the highest one by default.

        Raises RequestError, with the words of TensorFlow Serving, if it is not served.
        """
        if name in self._folders:
            return self._folders[name].version(choice)
        if isinstance(choice, str):
            raise RequestError(Code.INVALID_ARGUMENT, f"Unrecognized servable version label: {shown(choice)}")
        name = shown(name)
        request = f"Latest({name})" if choice is None else f"Specific({name}, {choice})"
        raise RequestError(Code.NOT_FOUND, f"Servable not found for request: {request}")

    def statuses(self, name: str, number: int | None = None) -> dict[int, Status]:
        """Return the state of every version of a model so far, or of one; highest first. Raises RequestError."""
        known = self._folders[name].status if name in self._folders else {}
        if number is not None and number not in known:
            raise RequestError(Code.NOT_FOUND, f"Could not find version {number} of model {shown(name)}")
        if not known:
            raise RequestError(Code.NOT_FOUND, f"Could not find any versions of model {shown(name)}")
        return {version: known[version] for version in sorted(known, reverse=True) if number in (None, version)}

    async def watch(self, seconds: float, file_seconds: float) -> None:
        """Look for new versions every so many seconds, and for another file every `file_seconds`, for ever."""
        async with asyncio.TaskGroup() as self._group:
            for folder in self:
                self._group.create_task(folder.watch(seconds))
            self._seconds = seconds
            if self.file is not None:
                self._group.create_task(self._watch_file(self.file, file_seconds))
            await asyncio.Event().wait()

    async def _watch_file(self, file: str | os.PathLike, seconds: float) -> None:
        """Serve what the file says whenever it says something else. Log a reason why this is impossible once."""
        logged = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                in_file, reason = await asyncio.to_thread(read_models, file), ""
                if in_file != self._in_file or in_file == self._failed:
                    self._in_file = in_file
                    await self.reload(in_file)
            except Exception as error:
                reason = first_line_of(error)
            if reason and reason != logged:
                log.error("%s", ascii(reason)[1:-1])
            logged = reason

    async def reload(self, models: list[Model]) -> None:
        """Serve these models, and no others, from now on; those that are served already go on without a break.

        All are loaded before one is dropped. A caller that is cancelled does not end it. Raises RequestError, with the
        reason, if a model has no version that can be loaded where it shall be; then what was served is served on, with
        the models that could be loaded, and the others are looked for. Also if a label means a version that is not
        served, which is looked for.
        """
        reload = asyncio.create_task(self._reload(models))
        self._reloads.add(reload)
        reload.add_done_callback(self._reloads.discard)
        await asyncio.shield(reload)

    async def _reload(self, models: list[Model]) -> None:
        async with self._reloading:
            old, self._failed = self._folders, models
            new = {model.name: old.get(model.name) or ModelFolder(model) for model in models}
            self._folders = new | {name: folder for name, folder in old.items() if name not in new}
            missing = []
            for model in models:
                reason = await self._load(new[model.name], model)
                if self._group is not None and model.name not in old:
                    self._group.create_task(new[model.name].watch(self._seconds))
                if reason:
                    missing.append(f"{{name: {model.name} due to error: {reason}}}")
            if missing:
                message = f"{len(missing)} model(s) did not become available: {{{', '.join(missing)}}}"
                raise RequestError(Code.UNKNOWN, message)
            self._folders, self._failed = new, None
            for name in old.keys() - new.keys():
                log.warning("the model %s is no longer served", name)
                await old[name].close()
            for model in models:
                if reason := self._why_label_fails(model):
                    raise RequestError(Code.FAILED_PRECONDITION, reason)

    async def _load(self, folder: ModelFolder, model: Model) -> str:
        """Let a folder serve what it is told. Returns why it does not, "" if it does."""
        folder.configure(model)
        try:
            await folder.refresh()
        except OSError as error:  # the folder does not exist, for example
            return first_line_of(error)
        if folder.serves_what_it_is_told:
            return ""
        return "; ".join(folder.reasons) or f"{model.path} has no version."

    def _why_label_fails(self, model: Model) -> str:
        """Return which label means a version that is not served, in TensorFlow Serving's words; "" if none does."""
        numbers = {version.number for version in self._folders[model.name].versions}
        for number in model.labels.values():
            if number not in numbers:
                which = f"version {number} of model {model.name}"
                return f"Request to assign label to {which}, which is not currently available for inference"
        return ""
