"""A chat endpoint on this machine that answers well, or misbehaves in every usual way."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        with self.server.guard:  # type: ignore[attr-defined]
            answers: list[Answer] = self.server.answers  # type: ignore[attr-defined]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self, body)

    def reply(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that hang up are what some tests are about


class Server:
    """The server: ``answers`` are used one after the other, the last one for ever."""

    def __init__(self, port: int = 0) -> None:
        self._server = _Quiet(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._server.seen, self._server.guard = [], threading.Lock()  # type: ignore[attr-defined]
        self.answers = [good()]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def seen(self) -> list[tuple[str, dict[str, str], dict[str, Any]]]:
        return self._server.seen  # type: ignore[attr-defined, no-any-return]

    @property
    def answers(self) -> list[Answer]:
        return self._server.answers  # type: ignore[attr-defined, no-any-return]

    @answers.setter
    def answers(self, answers: list[Answer]) -> None:
        self._server.answers = answers  # type: ignore[attr-defined]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def chat(text: Any, finish: str = "stop", usage: Any = (7, 3)) -> bytes:
    answer: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}]}
    if usage:
        answer["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return json.dumps(answer).encode()


def good(text: str | None = None) -> Answer:
    def answer(handler: Handler, body: dict[str, Any]) -> None:
        handler.reply(200, chat(text if text is not None else f"echo {body['messages'][-1]['content']}"))

    return answer


def status(code: int, message: str = "no", error_code: str = "", **headers: str) -> Answer:
    content = json.dumps({"error": {"message": message, "code": error_code}}).encode()
    return lambda handler, body: handler.reply(code, content, **headers)


def raw(content: bytes, code: int = 200) -> Answer:
    return lambda handler, body: handler.reply(code, content)


def half(handler: Handler, body: dict[str, Any]) -> None:
    content = chat("never whole")
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) + 50))
    handler.end_headers()
    handler.wfile.write(content[:20])
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def trickle(handler: Handler, body: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)
