"""A local HTTP server that stands for the Hub: what pushing and fetching a dataset, and pushing a model, need."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_" + "x" * 34


class FakeHub(ThreadingHTTPServer):
    """Datasets and models in memory. ``requests`` holds (method, path, authorisation)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.datasets: dict[str, dict[str, bytes]] = {}
        self.models: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.commits: list[str] = []
        self.requests: list[tuple[str, str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._note()
        parts = self._parts()
        if parts[:1] == ["api"] and parts[1:2] in (["datasets"], ["models"]) and len(parts) >= 4:
            repo = "/".join(parts[2:4])
            if (files := self._files(repo, self._stored(parts[1]))) is None:
                return
            if len(parts) > 4 and parts[4] == "tree":
                self._json([{"type": "file", "oid": _oid(data), "size": len(data), "path": name}
                            for name, data in files.items()])  # fmt: skip
                return
            self._json({"id": repo, "sha": "a" * 40, "private": self.server.private[repo], "tags": [], "downloads": 0,
                        "likes": 0, "siblings": [{"rfilename": name} for name in files]})  # fmt: skip
            return
        self._resolve(parts, body=True)

    def do_HEAD(self) -> None:
        self._note()
        self._resolve(self._parts(), body=False)

    def do_POST(self) -> None:
        self._note()
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = self._parts()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._json({"error": "Invalid credentials"}, 401)
        elif parts == ["api", "repos", "create"]:
            values = json.loads(content)
            repo = f"{values.get('organization')}/{values['name']}"
            kind = "datasets" if values.get("type") == "dataset" else "models"
            url = f"{self.server.address}/{'datasets/' * (kind == 'datasets')}{repo}"
            if repo in self._stored(kind):
                self._json({"error": "there already", "url": url}, 409)
                return
            private = values.get("visibility") == "private" or bool(values.get("private"))
            self._stored(kind)[repo], self.server.private[repo] = {}, private
            self._json({"url": url, "name": repo})
        elif parts[4:5] == ["preupload"]:
            files = json.loads(content)["files"]
            self._json({"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                                  for one in files]})  # fmt: skip
        elif parts[4:5] == ["commit"]:
            stored = self._stored(parts[1])["/".join(parts[2:4])]
            for line in content.splitlines():
                entry = json.loads(line)
                if entry["key"] == "header":
                    self.server.commits.append(entry["value"]["summary"])
                elif entry["key"] == "file":
                    stored[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
                elif entry["key"] == "deletedFile":
                    del stored[entry["value"]["path"]]
            place = f"{self.server.address}/{parts[1]}/{'/'.join(parts[2:4])}"
            self._json({"commitUrl": f"{place}/commit/{'b' * 40}", "commitOid": "b" * 40})
        else:
            self._json({}, 200)

    def _resolve(self, parts: list[str], *, body: bool) -> None:
        if parts[:1] != ["datasets"] or "resolve" not in parts:
            self._json({}, 404)
            return
        if (files := self._files("/".join(parts[1:3]), self.server.datasets)) is None:
            return
        data = files.get("/".join(parts[5:]))
        if data is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("ETag", f'"{_oid(data)}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _files(self, repo: str, stored: dict[str, dict[str, bytes]]) -> dict[str, bytes] | None:
        files = stored.get(repo)
        hidden = self.server.private.get(repo) and self.headers.get("Authorization") != f"Bearer {TOKEN}"
        if files is None or hidden:
            self.send_response(401 if hidden else 404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        return files

    def _stored(self, kind: str) -> dict[str, dict[str, bytes]]:
        return self.server.models if kind == "models" else self.server.datasets

    def _parts(self) -> list[str]:
        return [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]

    def _note(self) -> None:
        self.server.requests.append((self.command, self.path, self.headers.get("Authorization", "")))

    def _json(self, value: object, status: int = 200) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


def matching(names: dict[str, bytes], pattern: str) -> list[str]:
    """The names that match a pattern."""
    return fnmatch.filter(names, pattern)


@contextmanager
def serving() -> Iterator[FakeHub]:
    """Run the server in a thread."""
    hub = FakeHub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
