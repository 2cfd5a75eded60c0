"""Pages of runs from files that grow, are cut, and are replaced; the report."""

import json
import re

import pytest
from view_programs import TOKEN, design_line, episode_line, metrics_line, page, write_lines, write_run

from sample_programs import BOXED, record
from spade_envs.view.parts import details, token_runs
from spade_envs.view.report import write_report
from spade_envs.view.run_files import Run
from spade_envs.view.transcript_lines import DesignLine, EpisodeLine, grouped


def test_the_run_page_keeps_the_roles_apart(browser):
    text = page(browser, "/run/0")
    order = [text.index(f"<h2>{name}</h2>") for name in ("Alarms", "Designer", "Agent", "Update", "Speed")]
    assert order == sorted(order)
    assert "KL is 12." in text
    assert "Lower the rate." in text
    for title in ("Validity of programs", "Regret of new environments", "KL to the reference", "Entropy"):
        assert f"<figcaption>{title}</figcaption>" in text
    assert "Held-out success" not in text  # what was not written is not drawn
    assert re.search(r'aria-label="KL to the reference".*?<polyline class="s0 strong', text, re.DOTALL)


def test_curves_come_as_they_are_written(browser, run):
    text = page(browser, "/run/0/curves")
    version = re.search(r'data-version="([^"]+)"', text)[1]
    assert "<strong>12</strong> steps" in text
    assert browser.get(f"/{TOKEN}/run/0/curves?seen={version}").status_code == 204
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(metrics_line(13))[:30])  # half a line: not yet
        file.flush()
        assert browser.get(f"/{TOKEN}/run/0/curves?seen={version}").status_code == 204
        file.write(json.dumps(metrics_line(13))[30:] + "\n")
    assert "<strong>13</strong> steps" in page(browser, f"/run/0/curves?seen={version}")


def test_a_run_that_went_back_is_read_anew(run):
    one = Run(run)
    one.update()
    one.transcripts.update()
    assert len(one.metrics) == 12
    kept = (run / "metrics.jsonl").read_text().splitlines(keepends=True)[:5]
    (run / "metrics.jsonl.tmp").write_text("".join(kept))
    (run / "metrics.jsonl.tmp").replace(run / "metrics.jsonl")
    one.update()
    assert [line["step"] for line in one.metrics] == [1, 2, 3, 4, 5]
    (run / "metrics.jsonl").write_text("".join(kept[:2]))  # in place
    one.update()
    assert [line["step"] for line in one.metrics] == [1, 2]
    (run / "transcripts.jsonl").unlink()
    one.transcripts.update()
    assert not one.transcripts.designs
    assert not one.transcripts.episodes


def test_a_replaced_file_of_the_same_length_is_noticed(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write_lines(folder / "metrics.jsonl", [{"step": 1, "kl": 0.25}])
    one = Run(folder)
    one.update()
    write_lines(folder / "new", [{"step": 1, "kl": 0.75}])
    (folder / "new").replace(folder / "metrics.jsonl")
    one.update()
    assert one.series("kl") == [(1, 0.75)]


def test_programs_of_a_step_side_by_side(browser, view):
    text = page(browser, "/run/0/step/1")
    assert text.index("Design1Env") < text.index("Design0Env")  # the best paid first
    assert "advantage +0.300" in text
    assert "advantage −0.300" in text
    assert 'rel="next"' in text
    assert 'rel="prev"' not in text
    place = view.runs[0].transcripts.designs[0].place
    assert "<h1>Design0Env</h1>" in page(browser, f"/run/0/design/{place}")
    assert browser.get(f"/{TOKEN}/run/0/step?step=2", follow_redirects=False).headers["location"].endswith("/step/2")


def test_where_no_advantage_is_stored_the_centred_reward_stands():
    lines = [DesignLine.of(design_line(1, "class AEnv: pass", reward)) for reward in (0.0, 1.0, 0.5)]
    ((name, placed),) = grouped(lines)
    assert name == "Arithmetic"
    assert [one.centred for one in placed] == [0.5, 0.0, -0.5]


def test_two_runs_over_each_other(tmp_path, view, browser):
    write_run(tmp_path / "second", boxed=record(BOXED).id, steps=5)
    view.runs.append(Run(tmp_path / "second"))
    text = page(browser, "/compare?one=0&other=1")
    assert "strong dashed" in text
    assert "KL, run" in text
    assert "KL, second" in text
    assert "Compare two" in page(browser, "/runs")


def test_turns_are_read_off_messages_where_there_are_no_steps():
    line = episode_line(1, "k", hinted=False)
    del line["steps"]
    episode = EpisodeLine.of(line)
    assert [(turn.action, turn.observation, turn.reward) for turn in episode.turns] == [
        ("first try", "again", 0.0),
        ("second try", "", 1.0),
    ]
    with pytest.raises(LookupError):
        EpisodeLine.of({"type": "design"})


COLUMNS = ("type", "id", "hinted", "number", "seed", "advantage", "mask_runs", "prompt", "reply", "source", "turns",
           "return", "stop", "messages", "rewards")  # fmt: skip
MESSAGES = [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "That."}]


def write_part(run, step, rows, rank=0):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (run / "transcripts").mkdir(exist_ok=True)
    table = pa.Table.from_pylist([dict.fromkeys(COLUMNS) | row for row in rows])
    parquet.write_table(table, run / "transcripts" / f"step-{step:06d}-rank-{rank}.parquet")


def episode_row(key, number, **more):
    ends = {"turns": 1, "return": 0.25, "stop": "terminated", "messages": MESSAGES, "rewards": [0.25]}
    return {"type": "episode", "id": key, "hinted": False, "number": number, "seed": 7, **ends, **more}


def test_parts_say_which_tokens_were_trained(run):
    source = "class AEnv: pass"
    design = {"type": "design", "id": "", "source": source, "prompt": "Write.", "mask_runs": [5]}
    write_part(run, 1, [episode_row("k", 1, mask_runs=[9]), episode_row("k", 0, mask_runs=[3, 2, 4]), design])
    line = episode_line(1, "k", hinted=False)
    assert token_runs(details(run, line)) == ([3, 4], [2])
    found = details(run, {"step": 1, "rank": 0, "type": "design", "id": "", "source": source})
    assert found["prompt"] == "Write."
    assert details(run, {**line, "step": 2}) == {}
    (run / "transcripts" / "step-000002-rank-0.parquet").write_bytes(b"PAR1 broken")
    assert details(run, {**line, "step": 2}) == {}
    assert details(run, {**line, "step": -1, "rank": "../../x"}) == {}


def test_tokens_and_prompts_stand_on_the_pages(run, view, browser):
    source = "class Design0Env(TextEnv):\n    number = 0\n"
    design = {"type": "design", "id": f"{1:064d}", "source": source, "prompt": "Write it.", "mask_runs": [12]}
    write_part(run, 1, [episode_row(record(BOXED).id, 0, mask_runs=[3, 2, 4]), design])
    view.runs[0].transcripts.update()
    text = page(browser, f"/replay/run-0/{view.runs[0].transcripts.episodes[0].place}")
    assert "7 tokens; 2 given between them were not" in text
    assert "3 tokens trained" in text
    text = page(browser, f"/run/0/design/{view.runs[0].transcripts.designs[0].place}")
    assert "Write it." in text
    assert "the 12 tokens that were trained" in text


def test_episodes_that_only_a_part_holds_are_replayed(run, browser):
    write_part(run, 1, [episode_row("k", 0), episode_row("k", 1, mask_runs=[4], advantage=-0.5)])
    write_part(run, 1, [episode_row("m", 2, hinted=True)], rank=1)
    text = page(browser, "/run/0/step/1")
    assert "/replay-part/0/1/0/1" in text
    assert "/replay-part/0/1/0/0" not in text  # the lines have the first ones
    assert "/replay-part/0/1/1/0" in text
    text = page(browser, "/replay-part/0/1/0/1")
    assert "That." in text
    assert "advantage −0.500" in text
    assert "4 tokens trained" in text
    for path in ("/replay-part/0/1/0/2", "/replay-part/0/3/0/0", "/replay-part/4/1/0/0"):
        page(browser, path, 404)


def test_causes_and_ends_are_drawn_by_what_there_is(run, browser):
    write_lines(run / "metrics.jsonl", [{"step": 13, "refused/leak": 4, "refused/<b>": 1, "stop/terminated": 9}])
    text = page(browser, "/run/0")
    figure = re.search(r"<figcaption>Causes of refusal.*?</figure>", text, re.DOTALL)[0]
    assert figure.index("leak") < figure.index("&lt;b&gt;")
    assert "<figcaption>Ends of episodes" in text
    assert "Tokens sampled in a second" not in text


def test_the_report_is_one_file(run, tmp_path):
    path = write_report(run, tmp_path / "out" / "report.html", baseline=write_run(tmp_path / "other", boxed="k"))
    text = path.read_text(encoding="utf-8")
    for words in (
        "Designer",
        "Agent",
        "KL is 12.",
        "Design1Env",
        "first try",
        "dashed: other",
        "First and last quarter",
    ):
        assert words in text
    assert "src=" not in text
    assert "href=" not in text
    assert "http" not in text.replace('http-equiv="Content', "")
    assert path.read_bytes() == write_report(run, path, baseline=tmp_path / "other").read_bytes()


def test_nothing_to_report_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="neither metrics nor transcripts"):
        write_report(tmp_path / "empty", tmp_path / "report.html")
