"""A server with the interface of ``vllm serve`` that samples from a model in this process, and takes new weights."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch


class LiveServer:
    """Answers ``/v1/models`` and ``/v1/completions``; a weight transfer of the asynchronous trainer. Close it."""

    def __init__(self, model: Any, eos: int) -> None:
        self.model, self.eos = model.eval(), eos
        self.asked: list[str] = []  # names of models
        self.adapters: list[str] = []
        self.updates = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._say({"data": [{"id": name, "max_model_len": 400} for name in ["base", *outer.adapters]]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._say(outer.complete(body))

            def log_message(self, *_: Any) -> None:
                pass

            def _say(self, answer: Any) -> None:
                text = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def complete(self, body: dict[str, Any]) -> Any:
        """Sample one completion; log-probabilities are those of the distribution that was sampled from."""
        ids, said, logprobs = list(body["prompt"]), [], []
        with self._lock, torch.no_grad():
            self.asked.append(body["model"])
            while len(said) < body["max_tokens"] and (not said or said[-1] != self.eos):
                logits = self.model(input_ids=torch.tensor([ids + said])).logits[0, -1]
                spread = torch.log_softmax(logits.float() / body["temperature"], -1)
                said.append(int(torch.multinomial(spread.exp(), 1)))
                logprobs.append(float(spread[said[-1]]))
        return {"choices": [{"token_ids": said, "logprobs": {"token_logprobs": logprobs}}]}

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    # the asynchronous trainer's WeightTransferProtocol

    def init_weight_transfer(self) -> None:
        """Nothing to set up."""

    def pause(self) -> None:
        """Requests under way end by themselves."""

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        """Take the weights."""
        own = dict(self.model.named_parameters())
        with self._lock, torch.no_grad():
            for name, weight in iterator:
                own[name].copy_(weight)
            self.updates += 1

    def resume(self) -> None:
        """Nothing was stopped."""

    def destroy(self) -> None:
        """Nothing to release."""
