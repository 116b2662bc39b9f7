"""The explorer in a real browser, served on a free port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from devtools import Browser, Page, wait

pytest.importorskip("starlette", reason="needs starlette, of the extra explore")
pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra explore")

from explorer_world import TOKEN, make_subjects

from evenhand.explore.server import listen, make_server
from evenhand.vectors import Vectors

Open = Callable[..., Page]
TABS = {
    "sentence": "tab=sentence&text=clerk+lost+her+keys&word=0&with=nurse",
    "association": "tab=words",
    "axes": "tab=words&view=axes&axiswords=nurse,captain,librarian",
    "neighbours": "tab=words&view=neighbours",
    "run": "tab=run",
    "predictions": 'tab=run&table=predictions&where={"error":"yes"}',
    "written": "tab=written&item=judge",
}
RESULT = {
    "sentence": "#versions-table td",
    "association": "#association-result svg .tip",
    "axes": "#axes-result svg .tip",
    "neighbours": "#neighbours-result td",
    "run": "#table-result td",
    "predictions": "#table-result td",
    "written": "#written-result li",
}


@pytest.fixture(scope="module")
def address(glove: Vectors, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    connection = listen(None)
    subjects = make_subjects(glove, tmp_path_factory.mktemp("explorer"))
    server = make_server(subjects, connection, TOKEN)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [connection]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{connection.getsockname()[1]}/"
    server.should_exit = True
    thread.join(30)
    connection.close()


@pytest.fixture
def show(browser: Browser) -> Iterator[Open]:
    """Open an address of the explorer."""
    pages: list[Page] = []

    def show(address: str, **how: Any) -> Page:
        pages.append(browser.open(address, **how))
        return pages[-1]

    yield show
    for page in pages:
        page.close()


def shown(page: Page, name: str) -> None:
    wait(page, f"document.querySelector('{RESULT[name]}') && !document.querySelector('.busy')")


@pytest.mark.parametrize(
    ("width", "dark"), [pytest.param(1280, False, marks=pytest.mark.slow), (360, True)]
)
@pytest.mark.parametrize("name", TABS)
def test_every_tab_is_accessible_and_fits(
    show: Open, axe: str, address: str, name: str, width: int, dark: bool
) -> None:
    page = show(f"{address}#token={TOKEN}&{TABS[name]}", width=width, dark=dark)
    shown(page, name)
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.screenshot().startswith(b"\x89PNG")
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.run(axe + ";0")
    violations = page.run("axe.run().then(found => found.violations)")
    assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in violations] == []
    assert page.complaints() == [], "errors of the script, or of the content policy"
    assert all(request.startswith(address) or request == "data:," for request in page.requests())


def test_the_token_leaves_the_address_and_a_link_restores_a_view(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&{TABS['sentence']}")
    shown(page, "sentence")
    link = page.run("location.href")
    assert TOKEN not in link
    bias = "Array.from(document.querySelectorAll('.change'), e => e.textContent).join()"
    expected = page.run(bias)
    assert "→" in expected
    other = show(link)  # another tab, without the token
    shown(other, "sentence")
    assert other.run("document.getElementById('text').value") == "clerk lost her keys"
    assert other.run(bias) == expected


def test_without_the_token_it_says_how_to_get_one(show: Open, address: str) -> None:
    page = show(f"{address}#token=wrong")
    assert "evenhand explore" in wait(page, "document.getElementById('alert').textContent")


def test_typing_shows_the_answer_and_is_remembered(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&tab=sentence&text=x")
    wait(page, "document.querySelector('#answers .hint')")
    page.run("document.getElementById('text').select()")
    page.write("clerk lost his keys")
    heading = "document.querySelector('.position mark')?.textContent"
    assert wait(page, heading) == "his"
    assert "text=clerk+lost+his+keys" in page.run("location.hash")
    said = wait(page, "document.getElementById('status').textContent")
    assert "his" in said


def test_the_keyboard_reaches_tabs_and_charts(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&tab=sentence")
    wait(page, "document.querySelector('.position')")
    page.run("document.getElementById('tab-sentence').focus()")
    page.press("ArrowRight")
    assert page.run("document.activeElement.id") == "tab-words"
    assert page.run("document.getElementById('words').hidden") is False
    assert "tab=words" in page.run("location.hash")
    shown(page, "association")
    mark = "document.querySelector('#association-result .tip[tabindex=\"0\"]')"
    page.run(f"{mark}.focus({{ focusVisible: true }})")
    first = page.run("document.activeElement.getAttribute('aria-label')")
    page.press("ArrowRight")
    second = page.run("document.activeElement.getAttribute('aria-label')")
    assert first != second
    assert page.run("document.getElementById('tip').innerText").startswith(second.split(" · ")[0])
    page.press("Escape")
    assert page.run("document.getElementById('tip').hidden")


def test_from_a_verdict_to_items_and_an_export(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&tab=run")
    shown(page, "run")
    page.click("document.querySelectorAll('.judged')[1]")
    assert "Nurses are women." in wait(page, "document.getElementById('evidence').innerText")
    page.click("document.querySelectorAll('.judged')[0]")
    page.click("document.querySelector('#evidence button')")
    wait(page, "document.getElementById('table-result').innerText.includes('[MASK] sang.')")
    page.run("document.getElementById('find').focus()")
    page.write("left")
    wait(page, "document.querySelectorAll('#table-result tbody tr').length === 1")
    page.click("document.querySelector('#table-result thead button')")
    wait(page, "document.querySelector('th[aria-sort=ascending]')")
    page.run(
        "window.saved = new Promise(done => { const old = URL.createObjectURL;"
        " URL.createObjectURL = blob => { blob.text().then(done); return old.call(URL, blob); };"
        " });0"
    )
    page.click("document.getElementById('export')")
    rows = page.run("window.saved").splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("Then [MASK] left.")


def test_an_error_shows_its_counterfactuals(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&{TABS['predictions']}")
    shown(page, "predictions")
    assert page.run("document.querySelectorAll('#table-result tbody tr').length") == 1
    page.click("document.querySelector('[aria-expanded]')")
    assert "She judges." in wait(page, "document.querySelector('td table')?.innerText")


def test_what_is_wrong_is_said_in_its_place(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&tab=words&view=neighbours&near=nursse")
    said = wait(page, "document.querySelector('#neighbours-result .problem')?.textContent")
    assert "did you mean" in said


def test_answers_are_shown_as_text_by_item_and_outcome(show: Open, address: str) -> None:
    page = show(f"{address}#token={TOKEN}&{TABS['written']}")
    shown(page, "written")
    assert page.run("document.querySelector('#written-result h2').textContent") == "judge"
    texts = page.run("document.getElementById('written-result').textContent")
    assert "<img src=x onerror=window.pwned=1></script><script>" in texts
    assert page.run("[window.pwned, document.querySelectorAll('#written img').length]") == [None, 0]
    page.run("document.getElementById('outcome').focus()")
    page.press("ArrowDown", "ArrowDown")  # all, answered, refused
    wait(page, "document.querySelector('#written-result h2')?.textContent === 'nurse'")
    assert "outcome=refused" in page.run("location.hash")
    outcomes = "Array.from(document.querySelectorAll('.texts .outcome strong'), e => e.textContent)"
    assert set(page.run(outcomes)) == {"refused"}
    assert page.complaints() == []
