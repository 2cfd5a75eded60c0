"""Statements, sources and transcripts that attack the page: they are text, and no program runs outside the sandbox."""

import json
import os
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from view_programs import HOSTILE, MARK, TEXT, TOKEN, design_line, episode_line, page, write_lines

from sample_programs import BOXED, record
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.view.app import make_app
from spade_envs.view.report import write_report
from spade_envs.view.source_html import highlighted
from spade_envs.view.state import View

LONG = "y" * 1_000_000
ALLOWED_CONTROLS = "\n\t"


def check_text(html: str, *, marked: bool = True) -> None:
    """Nothing of a hostile text is markup, steers a terminal or the direction of writing, or is endless."""
    assert len(html) < 3_000_000
    lower = html.lower()
    for tag in ("<script>", "<img", "<b ", "<b>", "</textarea></title>"):
        assert tag not in lower, lower[max(0, lower.index(tag) - 200) : lower.index(tag) + 200]
    assert lower.count("<script") == lower.count('<script src="/' + TOKEN)
    controls = [ch for ch in html if not (ch in ALLOWED_CONTROLS or ch.isprintable())]
    assert not controls, controls[:5]
    if marked:
        assert MARK in html
        assert "&lt;script&gt;" in html
    assert "{{ 7*7 }}" in html or "49 " not in html  # templates are not evaluated twice


@pytest.fixture
def hostile(tmp_path):
    """A memory and a run whose every text is hostile."""
    folder = tmp_path / "hostile"
    finding = {"severity": TEXT, "probe": TEXT, "reason": TEXT + LONG, "evidence": {TEXT: [TEXT, LONG]}}
    made = record(
        HOSTILE,
        skill=TEXT,
        kind=TEXT,
        generator=TEXT,
        hint=TEXT,
        document=TEXT + LONG,
        document_id=TEXT,
        licence=TEXT,
        parents=(TEXT, "f" * 64),
        report={"findings": [finding, TEXT, 7, {"severity": ["x"]}]},
        meta={TEXT: TEXT, "deep": LONG},
    )
    long_one = record("class LongEnv(TextEnv):\n    text = '" + LONG[:150_000] + TEXT.replace("\n", " ") + "'\n")
    with Memory.open(folder, embedder=HashedTokenEmbedder()) as memory:
        memory.add_many([made, long_one, record(BOXED, skill="<b>Arithmetic</b>")])
        memory.record_plays(made.id, [0.5, -1.0], hinted=False, run=TEXT)
    run = tmp_path / "<b>run<script>"
    run.mkdir()
    write_lines(run / "metrics.jsonl", [{"step": 1, TEXT: 0.5, "kl": 1e308}, {"step": 2, "kl": float("nan")}])
    write_lines(run / "alarms.jsonl", [{"name": TEXT, "severity": TEXT, "step": TEXT, "cause": LONG, "advice": TEXT}])
    texts = {"group": TEXT, "status": TEXT, "reason": TEXT + LONG, "name": TEXT, "hint": TEXT}
    design = design_line(1, HOSTILE + LONG, 0.5, **texts)
    episode = episode_line(1, made.id, hinted=False)
    episode["messages"] = [{"role": TEXT, "content": TEXT + LONG}, {"role": "assistant", "content": TEXT}]
    episode["steps"] = [{"action": TEXT + LONG, "observation": TEXT, "reward": 0.0, "info": {TEXT: LONG}}]
    episode |= {"stop": TEXT, "error": TEXT + LONG}
    write_lines(run / "transcripts.jsonl", [design, episode])
    memory = Memory.open(folder, embedder=HashedTokenEmbedder(), read_only=True)
    with View(memory, [run, run], isolation="static") as view:
        yield made, long_one, view, TestClient(make_app(view, TOKEN, ["testserver"]))


def test_every_page_shows_hostile_texts_as_text(hostile):
    made, long_one, view, browser = hostile
    view.runs[0].transcripts.update()
    design, episode = view.runs[0].transcripts.designs[0], view.runs[0].transcripts.episodes[0]
    for path in (
        f"/environment/{made.id}",
        f"/environment/{made.id}?seed=3",
        "/run/0",
        "/run/0/curves",
        "/run/0/step/1",
        f"/run/0/design/{design.place}",
        f"/replay/run-0/{episode.place}",
        f"/pool/diff?one={made.id}&other={long_one.id}",
    ):
        check_text(page(browser, path))
    for path in (
        *("/pool", "/pool/table?text=hostile", "/pool/plots", "/pool/map", "/pool/twins", "/runs", "/run/0/metrics"),
        *("/compare?one=0&other=1", f"/environment/{long_one.id}"),
    ):
        check_text(page(browser, path), marked=False)
    text = page(browser, f"/environment/{made.id}")
    assert "&lt;/pre&gt;" in text
    assert "\\x1b[31m" in text
    assert "\\x202e" in text
    assert "more characters" in text


def test_the_statement_and_tools_of_a_hostile_program_are_text(hostile):
    made, _, _, browser = hostile
    answer = browser.post(f"/{TOKEN}/environment/{made.id}/play", data={"seed": "1", "hinted": "1"})
    assert answer.status_code == 200
    check_text(answer.text)
    path = answer.url.path
    answer = browser.post(path, data={"text": TEXT.encode("utf-8", "replace").decode()})
    check_text(answer.text)
    answer = browser.post(path, data={"tool": "0", "p.0": '"</option><script>x</script>"'})
    check_text(answer.text)
    assert answer.status_code == 200


def test_what_is_typed_into_the_address_is_text(hostile):
    made, _, _, browser = hostile
    for path in ("/pool", "/pool/table", "/pool/plots", "/pool/map", "/pool/twins", f"/environment/{made.id}",
                 "/compare", "/run/0/curves", "/pool/diff"):  # fmt: skip
        for name in ("text", "skill", "sort", "meaning", "page", "seed", "one", "other", "seen", "<script>"):
            answer = browser.get(f"/{TOKEN}{path}", params={name: "\"'><script>alert(1)</script>\x1b"})
            assert answer.status_code < 500
            assert "<script>alert" not in answer.text
    for path in ("/environment/<script>alert(1)</script>", "/play/<script>", "/replay/<script>/1", "/<script>"):
        answer = browser.get(f"/{TOKEN}{path}")
        assert answer.status_code == 404
        assert "<script>" not in answer.text


def test_the_plain_source_is_not_a_page(hostile):
    made, _, _, browser = hostile
    answer = browser.get(f"/{TOKEN}/environment/{made.id}/source.py")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_report_of_a_hostile_run_is_text(hostile, tmp_path):
    _, _, view, _ = hostile
    path = write_report(view.runs[0].folder, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    check_text(text.replace("@media (", ""))
    assert "<script" not in text


def test_no_program_is_compiled_in_this_process(hostile):
    """The interpreter tells of every compilation and execution; none may be of a stored program."""
    made, _, _, browser = hostile
    seen: list[str] = []
    here = os.getpid()
    armed = True

    def audit(event: str, arguments: tuple) -> None:
        if (
            armed
            and event in ("compile", "exec", "import")
            and os.getpid() == here
            and MARK in repr(arguments)[:10_000]
        ):
            seen.append(f"{event} in {threading.current_thread().name}")

    sys.addaudithook(audit)
    compile(f"'{MARK}'", "probe", "eval")
    assert seen  # the hook works
    seen.clear()
    for path in ("/pool", f"/environment/{made.id}", f"/environment/{made.id}?seed=9", "/run/0/step/1"):
        page(browser, path)
    answer = browser.post(f"/{TOKEN}/environment/{made.id}/play", data={"seed": "1"})
    browser.post(answer.url.path, data={"text": "go"})
    armed = False
    assert not seen


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = (*design_line(1, "x", 0.5), *episode_line(1, "k", hinted=False), "content")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.tuples(st.booleans(), st.dictionaries(st.sampled_from(FIELDS), NESTED, max_size=6), NESTED), max_size=3
    ),
    metrics=st.lists(st.dictionaries(st.sampled_from(("step", "kl", "loss", "design/valid")), NESTED), max_size=3),
)
def test_files_of_any_form_give_pages(tmp_path_factory, lines, metrics):
    folder = tmp_path_factory.mktemp("run")
    written = []
    for is_design, changes, message in lines:
        line = design_line(1, "class AEnv: pass", 0.5) if is_design else episode_line(1, "k", hinted=True)
        if not is_design and "messages" not in changes:
            line["messages"] = [message, {"role": message, "content": message}, *line["messages"]]
        written.append(line | changes)
    write_lines(folder / "transcripts.jsonl", written)
    write_lines(folder / "metrics.jsonl", metrics)
    write_lines(folder / "alarms.jsonl", [{"name": line[2], "step": line[2]} for line in lines])
    with View(None, [folder], isolation="static") as view:
        browser = TestClient(make_app(view, TOKEN, ["testserver"]))
        run = view.runs[0]
        run.transcripts.update()
        paths = ["/", "/run/0", "/run/0/metrics", "/run/0/step/1", "/compare?one=0&other=0"]
        paths += [f"/run/0/design/{one.place}" for one in run.transcripts.designs]
        paths += [f"/replay/run-0/{one.place}" for one in run.transcripts.episodes]
        for path in paths:
            page(browser, path)
        if run.metrics or run.transcripts.steps():
            write_report(folder, folder / "report.html")


@pytest.mark.parametrize(
    "source", ["'''" * 20_000, "@" * 60_000, ("class " + "x." * 450 + "\n") * 40, "\\\n" * 40_000, "f'{" * 20_000, LONG]
)
def test_sources_that_are_slow_to_colour_are_shown(source):
    assert len(highlighted(source)) > 1000


def test_broken_lines_are_passed_over(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    good = json.dumps(design_line(3, "class AEnv: pass", 0.1)).encode()
    (folder / "transcripts.jsonl").write_bytes(
        b"\n{\n[]\nnull\n" + b"[" * 100_000 + b"\n\xff\xfe\x00\n" + good + b"\n" + b"x" * 1_000_000 + b"\n" + good[:50]
    )
    with View(None, [folder], isolation="static") as view:
        view.runs[0].transcripts.update()
        assert [one.step for one in view.runs[0].transcripts.designs] == [3]
