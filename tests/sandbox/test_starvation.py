"""A caller that had to wait for a processor does not take it out on its workers."""

import socket

import pytest

from spade_envs.sandbox import Limits, ProgramTimeout
from spade_envs.sandbox.exchange import Exchange, converse
from spade_envs.sandbox.wire import OK, encode_reply

LIMITS = Limits(soft_seconds=0.01, hard_seconds=0.01)
ANSWER = encode_reply(OK, ["seen", {}])


class Worker:
    """A worker that has answered by the time that it is found asleep: this process slept longer."""

    greeted, start_seconds = True, 0.0

    def __init__(self, answer):
        self.socket, self._theirs = socket.socketpair()
        self.socket.setblocking(False)
        self.buffer = bytearray()
        self.killed = False
        self._answer = answer

    def cpu_seconds(self):
        return 0.0

    def is_waiting(self):
        part, self._answer = self._answer[:9], self._answer[9:]
        self._theirs.sendall(part)
        return True

    def cause_of_death(self):
        return "ended"

    def kill(self):
        self.killed = True
        self.socket.close()
        self._theirs.close()


@pytest.mark.parametrize(("answer", "lost"), [(ANSWER[:9], True), (ANSWER, False), (b"", True)])
def test_an_answer_that_came_in_time_is_read(answer, lost):
    assert len(ANSWER) <= 18
    worker = Worker(answer)
    exchange = Exchange(worker, b"", ["reset"])
    converse([exchange], LIMITS)
    assert worker.killed is lost
    assert isinstance(exchange.failure, ProgramTimeout) is lost
    assert [outcome.value.observation for outcome in exchange.outcomes] == ([] if lost else ["seen"])
