"""The page of the board in a real browser: what one sees, reads, hears and reaches with keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gittasks.cli.board.page import page, prepared
from gittasks.domain.task import STATES
from tests.support.boards import a_board
from tests.support.browser import PROGRAM, Browser, browser
from tests.support.cli import tasks_inprocess, tasks_process
from tests.support.git import git, make_repository

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="There is no chromium on this machine.")

VIEWS = ("board", "graph", "timeline", "inbox", "numbers")
SIZES = ((1280, 800), (390, 844))
HOSTILE = "</script><img src=x onerror=\"document.title='lost'\">\u202e\u2028\x1b[31m" + "x" * 90


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Addresses of pages by the count of their tasks."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for count in (5, 200, 5000):
        path = folder / f"{count}.html"
        path.write_text(page(prepared(a_board(count))), encoding="ascii")
        assert path.stat().st_size < 5_000_000
        found[count] = path.as_uri()
    return found


@pytest.fixture(autouse=True)
def _quiet(chromium: Browser) -> Iterator[None]:
    """Nothing may be thrown or complained of, whatever is done with the page."""
    yield
    assert chromium.errors == []


def text(chromium: Browser, selector: str) -> str:
    return str(chromium.ask(f"document.querySelector({selector!r}).textContent"))


def go(chromium: Browser, view: str) -> None:
    """Goes to another view and waits until it is there."""
    chromium.ask(f"document.querySelector('#views [href=\"#{view}\"]').click()")
    chromium.wait(
        f"document.getElementById('view').getAttribute('aria-label') === '{view.capitalize()}'"
    )


def focus(chromium: Browser) -> str:
    return str(chromium.ask("document.activeElement.dataset.key || document.activeElement.id"))


def test_every_state_has_a_column_with_its_tasks(chromium: Browser, pages: dict[int, str]) -> None:
    chromium.open(pages[200])
    found = chromium.ask(
        "[...document.querySelectorAll('.column')].map((one) =>"
        " [one.dataset.state, parseInt(one.querySelector('.total').textContent)])"
    )
    counts = a_board(200)["counts"]
    assert found == [[state, counts.get(state, 0)] for state in STATES]
    assert chromium.requests == [pages[200]]


@pytest.mark.parametrize("count", [5, 200, 5000])
def test_every_view_fits_and_asks_nobody(
    chromium: Browser, pages: dict[int, str], count: int
) -> None:
    for width, height in SIZES:
        chromium.open(pages[count], width, height)
        for view in VIEWS:
            go(chromium, view)
            wide = chromium.ask("Math.max(innerWidth, document.documentElement.scrollWidth)")
            assert (view, wide) == (view, width)
            assert chromium.ask("document.getElementById('view').childElementCount > 0")
        assert chromium.requests == [pages[count]]


def test_five_thousand_tasks_open_at_once(chromium: Browser, pages: dict[int, str]) -> None:
    assert chromium.open(pages[5000]) < 2
    begun = time.monotonic()
    for view in VIEWS:
        go(chromium, view)
    assert time.monotonic() - begun < 2


def test_the_board_is_walked_with_keys(chromium: Browser, pages: dict[int, str]) -> None:
    chromium.open(pages[200])
    first, second = chromium.ask(
        "[...document.querySelectorAll('[data-state=NEW] .card')].slice(0, 2)"
        ".map((one) => one.dataset.key)"
    )
    chromium.press("Tab", "Enter")  # the link that skips the head
    assert focus(chromium) == first
    chromium.press("ArrowDown")
    assert focus(chromium) == second
    chromium.press("ArrowUp", "ArrowRight")
    assert chromium.ask("document.activeElement.closest('.column').dataset.state") == "BLOCKED"
    chromium.press("End", "ArrowLeft", "Home")
    assert focus(chromium) == first
    chromium.press("Enter")
    assert chromium.ask("document.getElementById('detail').open")
    assert text(chromium, "#detail .id") == first.removeprefix("card-")
    chromium.press("Escape")
    chromium.wait("!document.getElementById('detail').open")
    assert focus(chromium) == first


def test_a_long_column_goes_on_below_the_last_card(
    chromium: Browser, pages: dict[int, str]
) -> None:
    chromium.open(pages[5000])
    chromium.ask("document.querySelector('[data-state=CLOSED] .card').focus()")
    before = chromium.ask("document.querySelectorAll('[data-state=CLOSED] .card').length")
    chromium.press("End", "ArrowDown", "ArrowDown")
    after = chromium.ask("document.querySelectorAll('[data-state=CLOSED] .card').length")
    assert 0 < before < after < 1000
    assert chromium.ask("document.activeElement.className").startswith("card")


def test_the_graph_is_walked_along_its_arrows(chromium: Browser, pages: dict[int, str]) -> None:
    chromium.open(f"{pages[200]}#graph")
    kind, begin, end = next(edge for edge in a_board(200)["graph"]["edges"])
    assert kind in ("depends_on", "parent")
    chromium.ask(f"document.querySelector('.box[data-task=\"{end}\"]').focus()")
    chromium.press("ArrowLeft")
    assert focus(chromium) in {
        f"box-{named}" for _, named, task in a_board(200)["graph"]["edges"] if task == end
    }
    assert chromium.ask("document.querySelectorAll('.edge.near').length") > 0
    chromium.press("Enter")
    assert chromium.ask("document.getElementById('detail').open")
    chromium.press("Escape")
    chromium.ask("document.querySelector('[data-key=as-list]').click()")
    assert focus(chromium) == "as-list"
    assert begin in text(chromium, ".outline")


def test_what_is_sought_is_found_said_and_kept_in_the_address(
    chromium: Browser, pages: dict[int, str]
) -> None:
    chromium.open(pages[200])
    wanted = sum("cache" in task["title"] for task in a_board(200)["tasks"])
    chromium.ask("document.getElementById('words').focus()")
    chromium.write("CACHE")
    chromium.wait("location.hash === '#board?words=CACHE'")
    assert text(chromium, "#found") == f"{wanted} of 200 tasks"
    chromium.wait(f"document.getElementById('told').textContent === '{wanted} of 200 tasks'")
    assert focus(chromium) == "words"
    chromium.ask("location.reload()")
    chromium.wait(f"document.readyState === 'complete' && document.querySelector('#found')"
                  f".textContent === '{wanted} of 200 tasks'")  # fmt: skip
    chromium.ask("document.getElementById('clear').click()")
    chromium.wait("location.hash === '#board'")
    assert text(chromium, "#found") == "200 tasks"


def test_everything_has_a_role_and_a_name(chromium: Browser, pages: dict[int, str]) -> None:
    for view in VIEWS:
        chromium.open(f"{pages[5]}#{view}")
        nodes = [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in chromium.call("Accessibility.getFullAXTree")["nodes"]
            if not node["ignored"]
        ]
        roles = {role for role, _ in nodes}
        assert {"banner", "navigation", "main", "search", "heading", "status"} <= roles
        control = {"button", "link", "combobox", "searchbox", "checkbox", "textbox"}
        assert [node for node in nodes if node[0] in control and not node[1].strip()] == []


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_the_ground(
    chromium: Browser, pages: dict[int, str], dark: bool
) -> None:
    chromium.open(pages[5], dark=dark)
    found = chromium.ask(
        """(() => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const value = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
            const [r, g, b] = [value >> 16, value >> 8 & 255, value & 255].map((part) =>
              part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const groups = ['waiting', 'working', 'judged', 'held', 'landed', 'gone'];
          const pairs = [['--on-accent', '--accent'], ...groups.map((one) => ['--' + one, '--' + one + '-soft'])];
          for (const ground of ['--ground', '--surface', '--sunken'])
            for (const one of ['--text', '--muted', '--accent', ...groups.map((group) => '--' + group)])
              pairs.push([one, ground]);
          return pairs.map(([one, other]) => {
            const [a, b] = [light(one), light(other)];
            return [one, other, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
          });
        })()"""
    )
    assert [row for row in found if row[2] < 4.5] == []


def test_colours_follow_the_system_until_one_is_chosen(
    chromium: Browser, pages: dict[int, str]
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    chromium.open(pages[5])
    light = chromium.ask(ground)
    chromium.open(pages[5], dark=True)
    dark = chromium.ask(ground)
    choose = "(() => { const one = document.getElementById('theme'); one.value = '%s';" \
             " one.dispatchEvent(new Event('change')); })()"  # fmt: skip
    chromium.ask(choose % "light")
    chosen = chromium.ask(ground)
    chromium.ask("window.isOld = true; location.reload()")
    drawn = "document.readyState === 'complete' && document.querySelector('.card') !== null"
    chromium.wait(f"!window.isOld && {drawn}")
    kept = chromium.ask(ground)
    chromium.ask(choose % "auto")
    assert (light, dark, chosen, kept) == ("rgb(244, 246, 248)", "rgb(15, 19, 24)", light, light)


def test_a_page_on_paper_has_all_of_it_and_no_controls(
    chromium: Browser, pages: dict[int, str]
) -> None:
    chromium.open(pages[200], dark=True)
    chromium.call("Emulation.setEmulatedMedia", media="print")
    chromium.ask("dispatchEvent(new Event('beforeprint'))")
    assert chromium.ask("document.querySelectorAll('.card').length") == 200
    assert chromium.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert chromium.ask("getComputedStyle(document.getElementById('filters')).display") == "none"
    chromium.ask("dispatchEvent(new Event('afterprint'))")
    chromium.call("Emulation.setEmulatedMedia", media="")


def test_what_others_wrote_stays_text(chromium: Browser, tmp_path: Path) -> None:
    data = a_board(12)
    for task in data["tasks"]:
        task |= {"title": HOSTILE, "labels": [HOSTILE], "holder": HOSTILE, "reason": HOSTILE}
    data |= {"names": [HOSTILE] * 7, "problems": [HOSTILE], "problem_count": 1}
    for row in data["inbox"]:
        row["reason"] = HOSTILE
    path = tmp_path / "hostile.html"
    path.write_text(page(prepared(data)), encoding="ascii")
    shown = HOSTILE.replace("\u202e\u2028\x1b", "\\u202e\\u2028\\x1b")
    for view in VIEWS:
        chromium.open(f"{path.as_uri()}#{view}", 390, 844)
        assert chromium.ask("Math.max(innerWidth, document.documentElement.scrollWidth)") == 390
        assert chromium.ask("document.images.length") == 0
        assert chromium.ask("document.title").endswith(view.capitalize())
        assert chromium.requests == [path.as_uri() + "#" + view] or chromium.requests == [path.as_uri()]  # fmt: skip
        assert shown in text(chromium, "#notices")
    chromium.open(path.as_uri())
    assert text(chromium, ".card .title") == shown
    chromium.ask("document.querySelector('.card').click()")
    assert text(chromium, "#detail-title") == shown


def test_a_script_that_somebody_brings_in_does_not_run(
    chromium: Browser, pages: dict[int, str]
) -> None:
    chromium.open(pages[5])
    chromium.ask(
        "document.body.insertAdjacentHTML('beforeend',"
        " `<button id='evil' onclick=\"document.title='lost'\">`)"
    )
    chromium.ask("document.getElementById('evil').click()")
    chromium.ask("fetch('https://example.org/').then(() => { document.title = 'lost' }, () => 0)")
    assert chromium.ask("document.title").endswith("Board")
    assert len(chromium.errors) > 1
    assert all("Content Security Policy" in one for one in chromium.errors)
    assert chromium.requests == [pages[5]]
    chromium.leave()


def test_the_served_page_changes_under_the_hands_of_who_reads_it(
    chromium: Browser, home: Path
) -> None:
    folder = make_repository(home / "project")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    tasks_inprocess(folder, "init", "-q")
    tasks_inprocess(folder, "new", "One")
    serving = tasks_process(folder, "board", "--serve")
    try:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip()
        chromium.open(url)
        assert text(chromium, "#as-of").startswith("Live, as of ")
        chromium.ask("document.querySelector('.card').focus()")
        tasks_inprocess(folder, "new", "Two", "--enter", "work")
        chromium.wait("document.querySelectorAll('.card').length === 2")
        assert focus(chromium) == "card-000001"
        chromium.wait("document.getElementById('told').textContent === '000002 is now Work'")
        origin = url.partition("/?")[0]
        assert {one.partition("?")[0] for one in chromium.requests} == {
            f"{origin}/", f"{origin}/data",
        }  # fmt: skip
        assert chromium.errors == []
    finally:
        serving.terminate()
        serving.communicate(timeout=20)
    chromium.wait("document.getElementById('as-of').textContent.startsWith('Not connected')")
    # That nobody answers any more is the only complaint.
    assert all("net::ERR_CONNECTION_REFUSED" in one for one in chromium.errors)
    chromium.leave()
