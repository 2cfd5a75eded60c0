"""A memory and runs to look at, a Chromium to look with, and the pictures of the documentation.

`python tests/view/view_pictures.py docs/img` makes the pictures anew; the test of the browser makes them in a temporary
folder.
"""

from __future__ import annotations

import base64
import math
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from view_programs import SHOP, design_line, write_lines

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.play import PlayConfig, PlayTask, play_episodes
from spade_envs.players import scripted_player
from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_envs.sandbox import Sandbox

SOUND = Path(__file__).parent.parent / "data" / "validation" / "sound"
SIZES = {1280: 800, 400: 780}
MOST_BYTES = 150_000
SKILLS = ("Deduction", "Planning", "Arithmetic", "Language", "Exploration")
PLAYED = ("higher_lower.py", "hangman.py", "grid_walk.py")
FINDING = {
    "severity": "warn",
    "probe": "leak",
    "reason": "the answer stands always at one place",
    "evidence": {"seeds": [0, 1, 2], "place": "the last number"},
}
ALARM = {
    "name": "token_budget",
    "severity": "warning",
    "step": 41,
    "cause": "31% of the episodes used up their token budget",
    "advice": "Raise episode_tokens, or lower turn_tokens so that more turns fit.",
}


def chromium() -> tuple[str | None, str | None]:
    """Return the paths of Chromium and of its driver, None for what is not installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None), shutil.which("chromedriver")


@contextmanager
def driver() -> Iterator[Any]:
    """A Chromium without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    binary, service = chromium()
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(service))
    opened.set_page_load_timeout(120)
    try:
        yield opened
    finally:
        opened.quit()


@contextmanager
def served(view: Any) -> Iterator[str]:
    """A server of ``view`` in a thread; gives its address."""
    import uvicorn

    from spade_envs.view.app import make_app
    from spade_envs.view.server import LOOPBACK, listen

    with listen(0) as listening:
        host = f"{LOOPBACK}:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(make_app(view, "token", [host]), log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://{host}/token"
        finally:
            server.should_exit = True
            thread.join(60)


def program(path: Path) -> tuple[str, str]:
    """Return the source of a file and the name of its environment's class."""
    source = path.read_text(encoding="utf-8")
    return source, re.findall(r"^class (\w*Env)\b", source, re.MULTILINE)[-1]


def make_pool(folder: Path) -> Path:
    """A memory of the sound programs of the tests, with made-up plays."""
    rng = random.Random(4)
    records: list[EnvironmentRecord] = []
    for number, path in enumerate(sorted(SOUND.glob("*.py"))):
        source, name = program(path)
        plain, hinted = sorted(min(8, max(0, round(rng.gauss(mean, 2.5)))) for mean in (3, 5))
        played = PlayStatistics(8, float(plain), plain, 8, float(hinted), hinted)
        records.append(
            EnvironmentRecord.create(
                source,
                name,
                skill=SKILLS[number % len(SKILLS)],
                kind="tool_use" if "ToolEnv" in source else "game",
                generator="designer-30b" if number % 3 else "designer-4b",
                parents=tuple(one.id for one in records[-2:]) if number % 4 == 0 else (),
                proven=number % 5 != 0,
                created_at=1.79e9 + 5000 * number,
                report={"findings": [FINDING]} if number % 9 == 0 else {},
                statistics=played if number % 8 else PlayStatistics(),
            )
        )
    shop = {"skill": "Planning", "kind": "tool_use", "generator": "designer-30b", "created_at": 1.7905e9}
    records.append(EnvironmentRecord.create(SHOP, "ShopEnv", **shop))
    with Memory.open(folder, embedder=HashedTokenEmbedder()) as memory:
        memory.add_many(records, run="pictures")
    return folder


def make_run(folder: Path, seed: int, pool: Path, steps: int = 60) -> Path:
    """A run with made-up curves, and with real episodes of a few environments of the pool."""
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    write_lines(folder / "metrics.jsonl", [metrics(step, steps, rng) for step in range(1, steps + 1)])
    write_lines(folder / "alarms.jsonl", [ALARM])
    lines: list[dict[str, Any]] = []
    with Memory.open(pool, embedder=HashedTokenEmbedder(), read_only=True) as memory, Sandbox() as sandbox:
        for number, one in enumerate(memory.records()[5:9]):
            reward = 0.15 + 0.2 * number
            for step in (steps - 1, steps):
                more = {"name": one.name, "id": one.id, "advantage": reward - 0.45}
                lines.append(design_line(step, one.source, reward, **more))
        for name in PLAYED:
            source, class_name = program(SOUND / name)
            task = PlayTask(sandbox.open(source), 11, key=EnvironmentRecord.create(source, class_name).id)
            for who in ("random", "solution"):
                player = scripted_player(who, sandbox=sandbox, seed=seed)
                (episode,) = play_episodes(player, [task], sandbox, PlayConfig(max_turns=12))
                more = {"role": "agent", "number": 0, "advantage": episode.return_ - 0.5, "hinted": False}
                lines.append({"step": steps, "rank": 0, "type": "episode", **episode.to_dict(), **more})
    write_lines(folder / "transcripts.jsonl", lines)
    return folder


CURVES = {
    "loss": (0.0, 0.0, 0.02),
    "kl": (0.0, 0.03, 0.004),
    "entropy": (0.9, -0.4, 0.05),
    "grad_norm": (0.3, 0.0, 0.08),
    "learning_rate": (1e-5, -1e-5, 0.0),
    "step_time": (95, 0, 8),
    "diversity/designs": (0.7, 0.0, 0.05),
    "design/valid": (0.55, 0.35, 0.05),
    "design/duplicate": (0.1, 0.0, 0.05),
    "design/reward": (0.3, 0.3, 0.05),
    "design/no_code": (0.08, -0.08, 0.01),
    "design/tokens": (1500, 300, 80),
    "environment/learnable": (0.3, 0.3, 0.05),
    "environment/plain_return": (0.25, 0.2, 0.05),
    "environment/hinted_return": (0.5, 0.2, 0.05),
    "environment/regret": (0.25, 0.0, 0.05),
    "environment/win_rate": (0.25, 0.2, 0.05),
    "episode/return": (0.28, 0.25, 0.05),
    "episode/turns": (5, 0, 0.4),
    "episode/tokens": (700, 0, 60),
    "heldout/success": (0.3, 0.2, 0.02),
    "advantage/designer_std": (0.9, 0, 0.05),
    "advantage/agent_std": (0.8, 0, 0.05),
    "seconds/design": (20, 0, 2),
    "seconds/admit": (4, 0, 1),
    "seconds/play": (35, 0, 4),
    "seconds/update": (30, 0, 2),
    "tokens/designer": (30_000, 0, 2000),
    "tokens/agent": (60_000, 0, 5000),
    "tokens/hinted": (58_000, 0, 5000),
}
"""Made-up metrics: value at the start, gain to the end, spread."""


def metrics(step: int, steps: int, rng: random.Random) -> dict[str, float]:
    """One line of made-up metrics."""
    rise = 1 - math.exp(-3 * step / steps)
    values = {name: max(0.0, rng.gauss(start + gain * rise, spread)) for name, (start, gain, spread) in CURVES.items()}
    return {"step": step, "reward": 0.0, **values, "design/valid": min(1.0, values["design/valid"])}


def paths(view: Any) -> dict[str, str]:
    """Return the pages to picture by name; the episode that is played has the name play."""
    entries = {entry.name: entry for entry in view.overview.entries()}
    transcripts = view.runs[0].transcripts
    transcripts.update()
    longest = max(transcripts.episodes, key=lambda one: (one.return_, one.turns))
    first = next(entry for entry in view.overview.entries() if any(entry.findings) and entry.statistics.plain_plays)
    one, other = list(entries.values())[3:5]
    game = view.games.start(view.memory.get(entries["ShopEnv"].id), 1, hinted=False)
    return {
        "pool": "/pool",
        "plots": "/pool/plots",
        "map": "/pool/map",
        "diff": f"/pool/diff?one={one.id}&other={other.id}",
        "environment": f"/environment/{first.id}",
        "play": f"/play/{game.id}",
        "replay": f"/replay/run-0/{longest.place}",
        "run": "/run/0",
        "step": f"/run/0/step/{transcripts.steps()[-1]}",
        "compare": "/compare?one=0&other=1",
    }


def show(browser: Any, width: int, *, dark: bool) -> None:
    """Give the page a width and a colour scheme."""
    metrics = {"width": width, "height": SIZES[width], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def take(browser: Any, folder: Path, name: str, width: int, *, dark: bool) -> Path:
    """Take a picture of the page as it is shown."""
    path = folder / f"view-{name}-{width}-{'dark' if dark else 'light'}.webp"
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 40})
    path.write_bytes(base64.b64decode(shot["data"]))
    return path


def main(folder: Path) -> None:
    """Make all pictures."""
    from spade_envs.view.state import View

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        pool = make_pool(Path(temporary) / "pool")
        runs = [make_run(Path(temporary) / name, seed, pool) for seed, name in enumerate(("self-play", "fixed-pool"))]
        memory = Memory.open(pool, embedder=HashedTokenEmbedder(), read_only=True)
        with View(memory, runs) as view, served(view) as address, driver() as browser:
            for name, path in paths(view).items():
                for width in SIZES:
                    show(browser, width, dark=False)
                    browser.get(address + path)
                    for dark in (False, True):
                        show(browser, width, dark=dark)
                        time.sleep(0.1)
                        print(take(browser, folder, name, width, dark=dark))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
