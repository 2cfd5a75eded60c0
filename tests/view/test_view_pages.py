"""Pages of a memory, of an environment, and of an episode that is played or replayed."""

import re

import pytest
from view_programs import SHOP, TOKEN, page

from sample_programs import BOXED, FAULTY, GUESS, WALK, record
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.view.games import MOST_GAMES


def rows(text):
    return re.findall(r'environment/([0-9a-f]{64})">spade/', text)


def start(browser, source, **values):
    """Begin an episode and return its path below the token."""
    answer = browser.post(f"/{TOKEN}/environment/{record(source).id}/play", data=values, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].removeprefix(f"/{TOKEN}")


def send(browser, path, **values):
    return browser.post(f"/{TOKEN}{path}", data={name.replace("__", "."): text for name, text in values.items()})


def test_the_start_leads_to_the_table(browser):
    text = page(browser, "/")
    assert set(rows(text)) == {record(source).id for source in (BOXED, GUESS, WALK, SHOP)}
    assert "<strong>4</strong> of 4" in text
    assert '<html lang="en">' in text


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("skill=Arithmetic", [BOXED]),
        ("kind=tool_use", [SHOP, WALK]),
        ("generator=m1&up=1", [BOXED, GUESS]),
        ("played=learnable", [BOXED]),
        ("played=hopeless", [GUESS]),
        ("played=no", [SHOP, WALK]),
        ("findings=warn", [WALK]),
        ("findings=none&kind=tool_use", [SHOP]),
        ("text=secret", [GUESS]),
        ("text=boxed+answer", [BOXED]),
        (f"text={record(BOXED).env_id}", [BOXED]),
        (f"text={record(BOXED).id[:10]}", [BOXED]),
        ("text=M2+walk", [WALK]),
        ("text=nothing-like-it", []),
        ("win_from=0.4&win_to=0.6", [BOXED]),
        ("regret_from=0.2", [BOXED]),
        ("sort=win", [BOXED, GUESS]),
        ("sort=plays&generator=m1", [BOXED, GUESS]),
        ("sort=name&up=1", [BOXED, GUESS, SHOP, WALK]),
        ("archived=only", []),
        ("page=99", [SHOP, WALK, GUESS, BOXED]),
    ],
)
def test_filters_and_orders(browser, query, sources):
    found = rows(page(browser, f"/pool/table?{query}"))
    wanted = [record(source).id for source in sources]
    assert found[: len(wanted)] == wanted
    assert len(found) == len(wanted) or query == "sort=win"


def test_search_by_meaning_says_how_near(browser):
    text = page(browser, "/pool?text=guess+a+secret+number&meaning=1")
    assert rows(text)[0] == record(GUESS).id
    assert "cosine" in text


def test_nonsense_in_the_address_is_left_out(browser):
    text = page(browser, "/pool?sort=evil&page=-3&win_from=x&regret_to=nan&up=1&zzz=1&page=١")
    assert len(rows(text)) == 4


def test_distributions_map_and_near_duplicates(browser):
    assert 'aria-label="Regret by win rate' in page(browser, "/pool/plots")
    text = page(browser, "/pool/map")
    assert text.count("<circle") >= 4
    assert f"../environment/{record(BOXED).id}" in text
    assert "/pool/diff?one=" in page(browser, "/pool/twins")
    text = page(browser, f"/pool/diff?one={record(BOXED).id}&other={record(WALK).id}")
    assert 'class="removed"' in text or 'class="changed"' in text


def test_an_environment_with_all_that_is_known(browser):
    text = page(browser, f"/environment/{record(BOXED).id}")
    assert "What is " in text  # its statement, from the sandbox
    assert '<span class="k">class</span>' in text
    assert "0.50 <small>(0.15 to 0.85)</small>" in text  # Wilson, 2 of 4
    assert "+0.25 <small>(" in text
    assert "the files shown here" not in text
    assert "/replay/run-0/" in text
    assert "spade/Guess-" in text  # its child
    assert f"/environment/{record(BOXED).id}" in page(browser, f"/environment/{record(GUESS).id}")  # its parent
    text = page(browser, f"/environment/{record(WALK).id}")
    assert "the answer is near" in text
    assert "&#34;seed&#34;: 3" in text


def test_only_what_has_a_hint_offers_it(browser):
    for source, offered in ((BOXED, False), (GUESS, True), (SHOP, True)):
        assert ("Play with the hint" in page(browser, f"/environment/{record(source).id}")) is offered


def test_whether_it_was_played_is_asked_in_words(browser):
    text = page(browser, "/pool?played=no")
    assert '<option value="yes">played</option>' in text
    assert '<option value="no" selected>not played</option>' in text


def test_the_statement_follows_the_seed(browser):
    first, second = (page(browser, f"/environment/{record(BOXED).id}?seed={seed}") for seed in (1, 2))
    statements = [re.search(r"What is \d+ \+ \d+", text)[0] for text in (first, second)]
    assert statements[0] != statements[1]


def test_play_to_a_win(browser):
    path = start(browser, BOXED, seed="5")
    text = page(browser, path)
    one, other = map(int, re.search(r"What is (\d+) \+ (\d+)", text).groups())
    text = send(browser, path, **{"text": str(one + other), "as": "boxed"}).text
    assert "<strong>return 1.00</strong>" in text
    assert "result won" in text
    again = send(browser, path, text="more").text  # an ended episode stays as it is
    assert again.count('aria-label="you"') == 1


def test_play_with_the_hint(browser):
    text = page(browser, start(browser, GUESS, seed="1", hinted="1"))
    assert "Hint: It is " in text  # the program's own
    text = page(browser, start(browser, SHOP, hinted="1"))
    assert "Hint: Pay what it costs." in text
    answer = send(browser, f"/environment/{record(BOXED).id}/play", hinted="1")
    assert answer.status_code == 400
    assert "has no hint" in answer.text


def test_tools_are_forms(browser):
    path = start(browser, SHOP, seed="1")
    text = page(browser, path)
    assert 'aria-label="Tool buy"' in text
    assert "&lt;tools&gt;" in text  # as the agent sees it
    assert '<option value="&#34;apple&#34;">' in text
    values = {"tool": "0", "p__0": '"apple"', "p__1": "2", "p__2": "true", "p__3": '["a"]'}
    text = send(browser, path, **values).text
    assert "bought 2 apple, wrapped: True, notes: [&#39;a&#39;], label: " in text
    text = send(browser, path, **{"text": "done", "as": "answer"}).text
    assert "<strong>return 1.00</strong>" in text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"p__0": '"apple"'}, "buy needs a value for count"),
        ({"p__0": '"apple"', "p__1": "two"}, "count must be a whole number"),
        ({"p__0": '"apple"', "p__1": "2.5"}, "count must be a whole number"),
        ({"p__0": '"plum"', "p__1": "2"}, "item must be one of the choices"),
        ({"p__0": '"pear"', "p__1": "2", "p__3": "[1"}, "notes must be JSON"),
        ({"tool": "7"}, "no such tool"),
    ],
)
def test_a_form_that_does_not_fit_is_said(browser, values, words):
    path = start(browser, SHOP)
    answer = send(browser, path, **{"tool": "0", **values})
    assert answer.status_code == 400
    assert words in answer.text
    assert 'aria-label="you"' not in answer.text  # nothing was played


def test_a_program_that_fails_costs_its_episode_alone(pool, browser):
    with Memory.open(pool, embedder=HashedTokenEmbedder()) as memory:
        memory.add(record(FAULTY))
        broken = record("class BrokenEnv(TextEnv):\n    import os\n")
        memory.add(broken)
    path = start(browser, FAULTY)
    text = send(browser, path, text="raise").text
    assert "program_error" in text
    assert "boom" in text
    text = page(browser, f"/environment/{record(FAULTY).id}?seed=666")
    assert "no such start" in text
    text = page(browser, f"/environment/{broken.id}")
    assert "os" in re.search(r'<pre class="text bad">(.*?)</pre>', text, re.DOTALL)[1]
    assert send(browser, f"/environment/{broken.id}/play").status_code == 400
    page(browser, start(browser, BOXED))


def test_old_episodes_are_closed_for_new_ones(browser):
    first = start(browser, BOXED)
    for _ in range(MOST_GAMES):
        start(browser, BOXED)
    page(browser, first, 404)


def test_a_reply_has_a_bound(browser):
    path = start(browser, GUESS)
    assert send(browser, path, text="x" * 200_000).status_code == 400
    assert send(browser, path, text="x" * 2_000_000).status_code == 400
    assert "turn 0 of" in page(browser, path)


def test_replay_turn_by_turn(browser, view):
    view.runs[0].transcripts.update()
    plain, hinted = view.runs[0].transcripts.episodes[:2]
    text = page(browser, f"/replay/run-0/{plain.place}?turn=1")
    assert "first try" in text
    assert "second try" not in text
    assert 'rel="next" href="?turn=2"' in text
    text = page(browser, f"/replay/run-0/{plain.place}")
    assert "second try" in text
    assert "turn 2 · reward 1.00 · terminated" in text
    assert "you sampled" in text  # what was trained is marked
    text = page(browser, f"/replay/run-0/{hinted.place}")
    assert "Nothing here was trained on" in text
    assert "you sampled" not in text


@pytest.mark.parametrize(
    "path",
    ["/environment/abc", "/environment/" + "0" * 64, "/play/none", "/replay/run-0/1", "/replay/run-9/0",
     "/replay/run-0/99999999999999999999999", "/replay/file-0/0", "/run/7", "/run/0/design/5", "/compare?one=3",
     "/pool/diff?one=abc&other=def", "/nothing"],
)  # fmt: skip
def test_what_is_not_there_is_said(browser, path):
    text = page(browser, path, 404)
    assert "Back to the start" in text


def test_the_page_of_a_growing_memory(pool, browser):
    assert "<strong>4</strong> of 4" in page(browser, "/pool")
    with Memory.open(pool, embedder=HashedTokenEmbedder()) as memory:
        memory.add(record(FAULTY))
        memory.record_plays(record(GUESS).id, [1.0] * 6, hinted=False)
    text = page(browser, "/pool?sort=win")
    assert "<strong>5</strong> of 5" in text
    assert rows(text)[0] == record(GUESS).id


def test_controls_have_names(browser):
    paths = ["/pool", f"/environment/{record(SHOP).id}", start(browser, SHOP), "/run/0", "/runs"]
    for text in (page(browser, path) for path in paths):
        labelled = set(re.findall(r'<label for="([^"]+)"', text))
        for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", text):
            if 'type="hidden"' in tag or 'type="radio"' in tag:  # those stand inside their labels
                continue
            assert re.search(r'id="([^"]+)"', tag)[1] in labelled, tag
        for link in re.findall(r"<a [^>]*>(.*?)</a>", text, re.DOTALL):
            assert re.sub(r"<(?!title)[^>]*>", "", link).strip()
        assert text.count("<h1") == 1
