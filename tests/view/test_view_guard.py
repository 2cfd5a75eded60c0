"""Who may ask: token, Host, Origin, and what every answer forbids."""

import pytest
from view_programs import TOKEN

from sample_programs import BOXED, record

PATHS = ("/", "/pool", "/pool/table", "/pool/plots", "/pool/map", "/pool/twins", "/runs", "/run/0", "/run/0/curves",
         "/run/0/metrics", "/run/0/step/1", "/compare", f"/environment/{record(BOXED).id}", "/static/view.css",
         "/static/view.js", "/nothing")  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_there_is_nothing(browser, path):
    for start in ("", "/", "/wrong-token", f"/{TOKEN[:-1]}", f"/{TOKEN}x", "/%74est-toke%6", f"/x/{TOKEN}"):
        answer = browser.get(f"{start}{path}", follow_redirects=False)
        assert answer.status_code == 404, (start, path)
        assert "spade view" in answer.text
    assert browser.post(f"/wrong/environment/{record(BOXED).id}/play", data={"seed": "1"}).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "testserver.evil.example", "testserver:81", "127.0.0.1", ""])
def test_another_name_of_this_machine_is_refused(browser, host):
    answer = browser.get(f"/{TOKEN}/pool", headers={"host": host})
    assert answer.status_code == 400
    assert "Chain" not in answer.text


def test_two_host_headers_are_refused(browser):
    answer = browser.get(f"/{TOKEN}/pool", headers=[("host", "testserver"), ("host", "evil.example")])
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://testserver"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_forms_of_foreign_pages_are_refused(browser, headers):
    path = f"/{TOKEN}/environment/{record(BOXED).id}/play"
    assert browser.post(path, data={"seed": "1"}, headers=headers).status_code == 403


def test_own_forms_are_taken(browser):
    path = f"/{TOKEN}/environment/{record(BOXED).id}/play"
    own = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
    assert browser.post(path, data={"seed": "1"}, headers=own, follow_redirects=False).status_code == 303


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_forbids_foreign_content(browser, path):
    answer = browser.get(f"/{TOKEN}{path}", follow_redirects=False)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    for foreign in ("http://", "https://", "//cdn", "style=", "onclick", "javascript:"):
        assert foreign not in answer.text.replace("http://www.w3.org/2000/svg", ""), foreign


def test_reading_changes_nothing(browser):
    for path in (f"/environment/{record(BOXED).id}/play", "/play/x"):
        assert browser.get(f"/{TOKEN}{path}").status_code in (404, 405)
    assert browser.put(f"/{TOKEN}/pool").status_code == 405


def test_nothing_outside_the_folder_of_static_files_is_given(browser):
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2frecord.py", "/static//etc/passwd"):
        answer = browser.get(f"/{TOKEN}{path}")
        assert answer.status_code == 404
        assert "def " not in answer.text
