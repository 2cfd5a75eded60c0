"""A tool environment, and an agent that calls its tools: a scripted one here, or your model through native tool calls.

python examples/tool_agent.py
python examples/tool_agent.py openai:my-model http://localhost:8000/v1
"""

import json
import sys
from collections.abc import Sequence

from spade_envs.episode import Episode
from spade_envs.models import Sampling, load_model
from spade_envs.play import ModelPlayer, PlayConfig, PlayTask, Reply, play_episodes
from spade_envs.sandbox import Sandbox

SOURCE = '''
class StockroomEnv(ToolEnv):
    """Typed methods are the tools; the state is hidden; instructions are revealed one at a time."""

    def reset(self, seed=None):
        super().reset(seed)
        self._state = {item: self.rng.randint(0, 9) for item in ("bolts", "nuts", "screws")}
        self._scarce = min(self._state, key=self._state.get)
        goal = self._state[self._scarce] + 20
        self._user_messages = ["Order 20 of the item that we have least of. Then answer with its name."]
        self._message_criteria = [lambda state: state[self._scarce] == goal]
        self._expected_answer = self._scarce
        return self._user_messages[0], {}

    def tool_count(self, item: str) -> int:
        """How many there are: bolts, nuts or screws."""
        return self._state[item]

    def tool_order(self, item: str, number: int) -> str:
        """Order more of an item."""
        self._state[item] += number
        return f"{number} {item} ordered"
'''


def call(name: str, **arguments: object) -> str:
    """Write one call as text; programs, models and endpoints all understand this form."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


class Clerk:
    """Counts everything, orders what is scarce, says its name."""

    name = "clerk"

    def replies(self, episodes: Sequence[Episode]) -> list[Reply]:
        return [Reply(self.act(episode)) for episode in episodes]

    def act(self, episode: Episode) -> str:
        items = ("bolts", "nuts", "screws")
        if episode.turns == 0:
            return "".join(call("count", item=item) for item in items)
        counts = dict(zip(items, map(int, episode.steps[0].observation.split()[:3])))
        scarce = min(counts, key=lambda item: counts[item])
        return call("order", item=scarce, number=20) if episode.turns == 1 else f"<answer>{scarce}</answer>"


def main() -> None:
    model = load_model(sys.argv[1], base_url=sys.argv[2]) if len(sys.argv) > 2 else None
    player = ModelPlayer(model, Sampling(temperature=0.0)) if model else Clerk()
    config = PlayConfig(tools="native" if model else "text", max_turns=8)
    with Sandbox() as sandbox, sandbox.open(SOURCE) as program:
        episodes = play_episodes(player, [PlayTask(program, seed) for seed in range(4)], sandbox, config)
    for message in episodes[0].messages:
        print(f"[{message['role']}] {message['content'] or message.get('tool_calls')}")
    print(f"{player.name}: returns {[episode.return_ for episode in episodes]}")


if __name__ == "__main__":
    main()
