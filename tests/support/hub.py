"""A server on this machine that speaks the protocol of the Hugging Face hub, as far as a download needs it.

It answers what huggingface-hub 2.4 asks for: which commit a revision is, which files that has, and each file, whose
ETag and commit are headers. A large file is somewhere else, to which the answer redirects.
"""

import collections
import contextlib
import hashlib
import http.server
import json
import re
import threading
from urllib.parse import unquote

import pytest
from huggingface_hub import constants

LARGE = 4096  # bytes, from which on a file is in the store for large ones


class Hub:
    """Repositories by name, and how the server is to fail. `requests`: what was asked for, in order."""

    def __init__(self):
        self.repositories = {}  # name -> {revision: {path: bytes}}
        self.gated, self.requests = set(), []
        self.cuts = collections.Counter()  # of a file: how many answers yet end in their middle
        self.status = None  # of every answer, if not None

    def add(self, name, files, revision="main"):
        self.repositories.setdefault(name, {})[revision] = files

    def commit(self, name, revision):
        """The commit of a revision, as 40 hexadecimal digits; None if there is none."""
        revisions = self.repositories[name]
        commits = {self._hash(name, files): files for files in revisions.values()}
        return revision if revision in commits else self._hash(name, revisions.get(revision))

    def files(self, name, commit):
        return next(files for files in self.repositories[name].values() if self._hash(name, files) == commit)

    def downloaded(self):
        """The names of the files that were asked for."""
        return {unquote(path).split("/resolve/")[1].split("/", 1)[1] for path in self.requests if "/resolve/" in path}

    @staticmethod
    def _hash(name, files):
        if files is None:
            return None
        text = repr((name, sorted((path, hashlib.sha1(content).hexdigest()) for path, content in files.items())))
        return hashlib.sha1(text.encode()).hexdigest()


def handler_of(hub):
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.answer()

        def do_GET(self):
            self.answer()

        def answer(self):
            path = self.path.partition("?")[0]
            hub.requests.append(path)
            if hub.status is not None:
                return self.refuse(hub.status)
            if stored := re.fullmatch(r"/store/([^/]+/[^/]+)/(\w+)/(.+)", path):
                return self.send(hub.files(stored[1], stored[2])[unquote(stored[3])], unquote(stored[3]))
            api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/([^/]+)", path)
            name, kind, revision = api.groups() if api else (None, None, None)
            if file := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                name, revision = file[1], file[2]
            if name not in hub.repositories:
                return self.refuse(401, "RepoNotFound")
            if name in hub.gated:
                return self.refuse(403, "GatedRepo")
            commit = hub.commit(name, unquote(revision))
            if commit is None:
                return self.refuse(404, "RevisionNotFound")
            files = hub.files(name, commit)
            if kind == "revision":
                siblings = [{"rfilename": path} for path in files]
                return self.send_json({"id": name, "modelId": name, "sha": commit, "siblings": siblings, "tags": []})
            if kind == "tree":
                return self.send_json([entry_of(path, content) for path, content in files.items()])
            path = unquote(file[3])
            if path not in files:
                return self.refuse(404, "EntryNotFound")
            return self.send_file(name, commit, path, files[path])

        def refuse(self, status, code=""):
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def send_json(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def send_file(self, name, commit, path, content):
            headers = {"X-Repo-Commit": commit}
            if len(content) < LARGE:
                return self.send(content, path, headers | {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'})
            self.send_response(302)
            linked = {"X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Linked-Size": str(len(content))}
            port = self.server.server_address[1]
            location = f"http://localhost:{port}/store/{name}/{commit}/{path}"  # another host, as the hub's own store
            for key, value in {**headers, **linked, "Location": location, "Content-Length": "0"}.items():
                self.send_header(key, value)
            self.end_headers()

        def send(self, content, path, headers=None):
            start = int(re.fullmatch(r"bytes=(\d+)-.*", self.headers.get("Range", "bytes=0-"))[1])
            part = content[start:]
            self.send_response(206 if start else 200)
            for key, value in {**(headers or {}), "Content-Length": str(len(part))}.items():
                self.send_header(key, value)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            if self.command == "GET":
                is_cut = hub.cuts[path] > 0
                hub.cuts[path] -= is_cut
                self.wfile.write(part[: len(part) // 2] if is_cut else part)

    return Handler


def entry_of(path, content):
    """A file in the listing of a repository."""
    entry = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
    if len(content) >= LARGE:
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return entry


@contextlib.contextmanager
def asked(hub, cache):
    """Within, huggingface-hub asks this hub in place of the real one, with a cache of its own."""
    with served(hub) as address, pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", address)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
        for name in ("HF_HUB_CACHE", "HF_ASSETS_CACHE"):
            patch.setattr(constants, name, str(cache / name))
        yield hub


def files_in(folder):
    """The files of a folder, by their path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def served(hub):
    """Within, the hub answers on a port of this machine; yields its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(hub))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
