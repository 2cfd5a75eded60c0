"""The pages in a real Chromium: load, filter, play to a win, replay, watch a run grow, both widths, light and dark."""

import re
import time
from pathlib import Path

import pytest
from view_pictures import MOST_BYTES, SIZES, chromium, driver, make_pool, make_run, metrics, paths, served, show, take
from view_programs import HOSTILE, SHOP, TEXT, write_lines

from sample_programs import BOXED, record
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.view.state import View

pytest.importorskip("selenium", reason="the browser tests need selenium (extra dev)")
pytestmark = pytest.mark.skipif(
    not all(chromium()), reason="no Chromium with its driver here: apt-get install chromium chromium-driver"
)
PATIENCE = 60.0
DOCS = Path(__file__).parents[2] / "docs" / "img"
NAMES = ("pool", "plots", "map", "diff", "environment", "play", "replay", "run", "step", "compare")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A view of a memory of real programs and of two runs, its address, and a browser."""
    folder = tmp_path_factory.mktemp("site")
    pool = make_pool(folder / "pool")
    runs = [make_run(folder / name, seed, pool) for seed, name in enumerate(("self-play", "fixed-pool"))]
    with Memory.open(pool, embedder=HashedTokenEmbedder()) as memory:
        memory.add_many([record(BOXED, skill="Sums"), record(HOSTILE, skill=TEXT, hint=TEXT, document=TEXT)])
    memory = Memory.open(pool, embedder=HashedTokenEmbedder(), read_only=True)
    with View(memory, runs, isolation="static") as view, served(view) as address, driver() as browser:
        show(browser, 1280, dark=False)
        yield view, address, browser


def all_of(browser, css):
    return browser.find_elements("css selector", css)


def one_of(browser, css):
    return browser.find_element("css selector", css)


def until(condition):
    """Wait until ``condition()`` is true and return it; an element that was replaced meanwhile is no error."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + PATIENCE
    while True:
        try:
            if found := condition():
                return found
        except WebDriverException:
            pass
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)


def keys(browser, *pressed):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*pressed).perform()


def complaints(browser):
    """What the browser's console says of scripts, styles and policy."""
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_load_and_filter_while_typing(site):
    _, address, browser = site
    browser.get(address + "/pool")
    assert browser.title == "Environments · spade"
    assert len(all_of(browser, "tr[data-row]")) == 50
    keys(browser, "/")  # to the search
    keys(browser, "hangman")
    until(lambda: 1 <= len(all_of(browser, "tr[data-row]")) < 10)
    assert "Hangman" in one_of(browser, "tr[data-row] a").text
    assert "text=hangman" in browser.current_url  # reloading gives the same
    browser.refresh()
    assert "Hangman" in one_of(browser, "tr[data-row] a").text
    one_of(browser, "#text").clear()
    browser.get(address + "/pool")
    one_of(browser, "#played option[value=learnable]").click()
    until(lambda: "played=learnable" in browser.current_url)
    assert all(mark.get_attribute("title") == "learnable" for mark in all_of(browser, "tr[data-row] .mark"))
    assert not complaints(browser)


def test_sort_pages_and_keys(site):
    from selenium.webdriver.common.keys import Keys

    _, address, browser = site
    browser.get(address + "/pool")
    one_of(browser, "th a[href*='sort=regret']").click()
    until(lambda: one_of(browser, "th[aria-sort=descending]").text.startswith("Regret"))
    regrets = [cell.text for cell in all_of(browser, "td[data-label=Regret]")]
    values = [float(text.replace("−", "-")) for text in regrets if text != "–"]
    assert values == sorted(values, reverse=True)
    keys(browser, Keys.ARROW_RIGHT)
    until(lambda: "page 2" in one_of(browser, "nav.pages").text)
    keys(browser, Keys.ARROW_LEFT)
    until(lambda: "page 1" in one_of(browser, "nav.pages").text)
    keys(browser, "jj")
    links = all_of(browser, "tr[data-row] a")
    assert browser.switch_to.active_element == links[1]
    keys(browser, "k", Keys.ENTER)
    until(lambda: "/environment/" in browser.current_url)


def test_play_to_a_win(site):
    from selenium.webdriver.common.keys import Keys

    _, address, browser = site
    browser.get(f"{address}/environment/{record(BOXED).id}")
    one_of(browser, "form[action$='/play'] button.main").click()
    until(lambda: "/play/" in browser.current_url)
    one, other = map(int, re.search(r"What is (\d+) \+ (\d+)", one_of(browser, "main").text).groups())
    one_of(browser, "input[value=boxed]").click()
    one_of(browser, "#reply").send_keys(str(one + other), Keys.CONTROL + Keys.ENTER)
    until(lambda: all_of(browser, ".result.won"))
    assert "return 1.00" in one_of(browser, ".result").text
    assert not complaints(browser)


def test_tools_are_forms(site):
    _, address, browser = site
    browser.get(f"{address}/environment/{record(SHOP).id}")
    one_of(browser, "form[action$='/play'] button.main").click()
    form = until(lambda: one_of(browser, "form[aria-label='Tool buy']"))
    form.find_element("css selector", "option[value='\"pear\"']").click()
    form.find_element("css selector", "input:not([type=hidden])").send_keys("3")
    form.find_element("css selector", "button").click()
    until(lambda: "bought 3 pear" in one_of(browser, "main").text)


def test_replay_by_keys(site):
    from selenium.webdriver.common.keys import Keys

    view, address, browser = site
    browser.get(address + paths(view)["replay"] + "?turn=0")
    turns = len(all_of(browser, ".strip a"))
    assert turns >= 2
    assert not all_of(browser, ".message.you")
    keys(browser, Keys.ARROW_RIGHT)
    until(lambda: len(all_of(browser, ".message.you")) == 1)
    keys(browser, Keys.ARROW_RIGHT)
    until(lambda: len(all_of(browser, ".message.you")) == 2)
    assert all_of(browser, ".message.sampled")
    all_of(browser, ".strip a")[-1].click()
    until(lambda: len(all_of(browser, ".message.you")) == turns)


def test_a_run_is_watched_as_it_grows(site):
    import random

    view, address, browser = site
    browser.get(address + "/run/0")
    before = one_of(browser, "#live .facts strong").text
    path = view.runs[0].folder / "metrics.jsonl"
    step = int(before) + 1
    write_lines(path, [metrics(step, step, random.Random(0))])
    until(lambda: one_of(browser, "#live .facts strong").text == str(step))  # without a reload
    alarm = {"name": "kl", "severity": "critical", "step": step, "cause": "KL is 12.", "advice": "Look."}
    write_lines(view.runs[0].folder / "alarms.jsonl", [alarm])
    until(lambda: "KL is 12." in one_of(browser, "#live").text)
    assert not complaints(browser)


def test_the_map_opens_an_environment(site):
    _, address, browser = site
    browser.get(address + "/pool/map")
    dot = one_of(browser, "svg.plot a")
    assert dot.get_attribute("aria-label").startswith("spade/")
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", dot)
    until(lambda: "/environment/" in browser.current_url)


def test_a_hostile_environment_does_nothing(site):
    _, address, browser = site
    browser.get(f"{address}/environment/{record(HOSTILE).id}")
    one_of(browser, "form[action$='/play'] button.main").click()
    until(lambda: "/play/" in browser.current_url)
    for url in (browser.current_url, address + "/pool", f"{address}/environment/{record(HOSTILE).id}"):
        browser.get(url)
        assert browser.execute_script("return window.hacked") is None
        assert not all_of(browser, "main img, main script")
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width <= 1280
    assert not complaints(browser)


@pytest.mark.parametrize("width", SIZES)
def test_every_page_fits_and_has_its_picture(site, tmp_path, width):
    view, address, browser = site
    pages = paths(view)
    assert set(pages) == set(NAMES)
    show(browser, width, dark=False)
    for name, path in pages.items():
        browser.get(address + path)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, name
        for dark in (False, True):
            show(browser, width, dark=dark)
            paper, ink = (
                browser.execute_script(f"return getComputedStyle(document.body).{what}")
                for what in ("backgroundColor", "color")
            )
            assert (brightness(paper) > brightness(ink)) != dark
            taken = take(browser, tmp_path, name, width, dark=dark)
            assert 2_000 < taken.stat().st_size < MOST_BYTES
            assert (DOCS / taken.name).stat().st_size < MOST_BYTES  # made by view_pictures.py
    show(browser, 1280, dark=False)


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3]))
