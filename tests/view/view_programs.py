"""Programs and run folders for tests of the view."""

import json
from pathlib import Path

TOKEN = "test-token"

SHOP = '''
class ShopEnv(ToolEnv):
    """Buy the right thing with tools."""

    def reset(self, seed=None):
        super().reset(seed)
        self.bought = []
        self._user_messages = ["Buy two apples, gift-wrapped, then say done."]
        self._message_criteria = [lambda state: True]
        self._expected_answer = "done"
        self._tools = [{"type": "function", "function": {"name": "buy", "description": "Buy things.", "parameters": {
            "type": "object", "required": ["item", "count"], "properties": {
                "item": {"type": "string", "enum": ["apple", "pear"]},
                "count": {"type": "integer", "description": "how many"},
                "wrapped": {"type": "boolean"},
                "notes": {"type": "array"},
                "label": {"type": "string"},
            }}}}]
        return self._user_messages[0], {}

    def tool_buy(self, item, count, wrapped=False, notes=None, label=""):
        self.bought.append((item, count, wrapped, notes, label))
        return f"bought {count} {item}, wrapped: {wrapped}, notes: {notes}, label: {label}"
'''

MARK = "HOSTILE-MARK-7f3"
SCRIPT = f"<script>window.hacked = '{MARK}'</script><img src=x onerror=\"window.hacked='{MARK}'\">"
TEXT = f"</pre></textarea></title>{SCRIPT}\x1b[31mred\x1b[0m \x00\x07 \u202egnp.exe \ud800 {{{{ 7*7 }}}} &lt;b&gt;"

HOSTILE = f'''
"""{SCRIPT} {MARK}"""
# </pre>{SCRIPT} \x0c

class HostileEnv(TextEnv):
    """{SCRIPT}"""

    def reset(self, seed=None):
        super().reset(seed)
        return "</pre>{SCRIPT.replace(chr(34), chr(39)).replace(chr(39), chr(92) + chr(39))}" + chr(27) + "[31m" \\
            + chr(0) + chr(0x202e) + "x" * 60_000, {{"<b>": "{MARK}"}}

    def get_tools(self):
        field = {{"type": "string", "enum": ["</option><script>x</script>", 7]}}
        parameters = {{"type": "object", "properties": {{"\\"><script>": field}}}}
        tool = {{"name": "</h3><b onclick=x>", "description": "<script>bad()</script>", "parameters": parameters}}
        return [{{"type": "function", "function": tool}}]

    def step(self, action):
        return "</pre><script>bad()</script>" + action, 0.5, False, False, {{"html": "<script>bad()</script>"}}

    def hint(self):
        return "<script>bad()</script>"
'''


def write_run(folder: Path, *, boxed: str, steps: int = 12) -> Path:
    folder.mkdir(parents=True)
    lines = [metrics_line(step) for step in range(1, steps + 1)]
    write_lines(folder / "metrics.jsonl", lines)
    alarm = {"name": "kl", "severity": "critical", "step": 9, "cause": "KL is 12.", "advice": "Lower the rate."}
    write_lines(folder / "alarms.jsonl", [alarm])
    transcripts = []
    for step in (1, 2):
        for number, reward in enumerate((0.2, 0.8)):
            source = f"class Design{number}Env(TextEnv):\n    number = {number}\n"
            transcripts.append(design_line(step, source, reward, advantage=reward - 0.5))
        for hinted in (False, True):
            transcripts.append(episode_line(step, boxed, hinted=hinted))
    write_lines(folder / "transcripts.jsonl", transcripts)
    return folder


def metrics_line(step: int) -> dict:
    return {
        "step": step,
        "reward": 0.0,
        "loss": 0.1 / step,
        "kl": 0.01 * step,
        "entropy": 1.0 / step,
        "step_time": 2.5,
        "design/valid": 0.9,
        "environment/regret": 0.02 * step,
        "environment/plain_return": 0.3,
        "environment/hinted_return": 0.5,
        "environment/learnable": 0.4,
        "episode/return": 0.03 * step,
    }


def design_line(step: int, source: str, reward: float, **more: object) -> dict:
    return {
        "step": step,
        "rank": 0,
        "type": "design",
        "role": "designer",
        "group": "Arithmetic",
        "skill": "Arithmetic",
        "status": "admitted",
        "reason": "",
        "id": f"{step:064d}",
        "source": source,
        "reward": reward,
        "plain": [0.0, 1.0],
        "hinted": [1.0, 1.0],
        "copies": 1,
        **more,
    }


def episode_line(step: int, key: str, *, hinted: bool) -> dict:
    messages = [{"role": "user", "content": "What is 1 + 1?"}, {"role": "assistant", "content": "first try"}]
    messages += [{"role": "user", "content": "again"}, {"role": "assistant", "content": "second try"}]
    moves = [("first try", "again", 0.0, False), ("second try", "Right.", 1.0, True)]
    return {
        "step": step,
        "rank": 0,
        "type": "episode",
        "hinted": hinted,
        "fresh": True,
        "number": 0,
        "key": key,
        "seed": 7,
        "hint": "h" if hinted else None,
        "messages": messages,
        "tools": [],
        "turns": 2,
        "tokens": 9,
        "steps": [
            {"action": a, "observation": o, "reward": r, "terminated": t, "truncated": False, "info": {}}
            for a, o, r, t in moves
        ],
        "rewards": [0.0, 1.0],
        "return": 1.0 if hinted else 0.5,
        "stop": "terminated",
        "error": "",
        "role": "agent",
        "id": key,
        "reward": 0.5,
        "advantage": None if hinted else 0.7,
    }


def write_lines(path: Path, lines: list[dict]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def page(browser, path: str, status: int = 200) -> str:
    """Get a page below the token."""
    answer = browser.get(f"/{TOKEN}{path}")
    assert answer.status_code == status, f"{path}: {answer.status_code} {answer.text[:500]}"
    return answer.text
