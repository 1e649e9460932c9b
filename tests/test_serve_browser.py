"""The web page of `serve` in a real browser: it chats, stops, shows the engine at work, and fits every window."""

import time

import pytest
from serving_program import SIZES, serving

from course.book import browser

WIDTHS = (360, 1280)
LIMIT = 30.0

pytestmark = [
    pytest.mark.skipif(not browser.available(), reason="needs chromium and chromedriver"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def server():
    with serving(*SIZES) as started:
        yield started


@pytest.fixture(scope="module")
def window():
    with browser.browser() as opened:
        yield opened


@pytest.fixture
def page(server, window):
    """The page, freshly loaded, with two chats and a first look at the engine."""
    window.resize(1280, 900)
    window.open(server.url)
    until(window, "return document.querySelector('#stats dd') !== null")
    yield window
    assert window.errors() == []


def until(window, script: str, what: object = True) -> object:
    """Wait until the function body returns `what`."""
    deadline = time.monotonic() + LIMIT
    while (got := window.run(script)) != what:
        assert time.monotonic() < deadline, f"{script}: {got!r}, expected {what!r}"
        time.sleep(0.02)
    return got


def say(window, number: int, text: str, tokens: int = 256) -> None:
    """Type a message into a chat and send it."""
    window.run(
        f"document.getElementById('max_tokens').value = {tokens}; document.getElementById('temperature').value = 0;"
        f"const chat = document.querySelectorAll('.chat')[{number}]; chat.querySelector('textarea').value = {text!r};"
        "chat.querySelector('form').requestSubmit();"
    )


def texts(window, number: int, kind: str) -> list[str]:
    """The messages of one kind in a chat."""
    return window.run(
        f"const chat = document.querySelectorAll('.chat')[{number}];"
        f"return [...chat.querySelectorAll('.message.{kind} span:nth-child(2)')].map((e) => e.textContent)"
    )


def quiet(number: int) -> str:
    """A function body: whether a chat waits for nothing."""
    return f"return document.querySelectorAll('.chat')[{number}].querySelector('button[type=button][hidden]') !== null"


def test_it_chats_and_remembers(page):
    say(page, 0, "What is 3 + 4?")
    until(page, quiet(0))
    say(page, 0, "What is the capital of France?")
    until(page, quiet(0))
    answers = texts(page, 0, "assistant")
    assert "7" in answers[0]
    assert "Paris" in answers[1]
    assert texts(page, 0, "user") == ["What is 3 + 4?", "What is the capital of France?"]
    assert texts(page, 1, "user") == []
    assert "first token after" in page.run("return document.querySelector('.chat .message .quiet').textContent")


def test_many_chats_run_at_once_and_are_seen(page):
    """More than the connections that a browser opens: some wait, and the view of the engine does not."""
    page.run(
        "for (let i = 0; i < 7; i += 1) document.getElementById('new').click();"
        "document.getElementById('max_tokens').value = 200; document.getElementById('temperature').value = 1;"
        "document.getElementById('question').value = 'Tell me a long story.';"
        "document.querySelector('#everyone').requestSubmit();"
    )
    until(page, "return document.querySelectorAll('#requests tbody .swatch').length >= 3")
    assert page.run("return document.querySelectorAll('#requests tbody tr td')[1].textContent") in (
        "running",
        "prefill",
    )
    until(page, "return !/ 0 belong to requests/.test(document.getElementById('map-text').textContent)")
    until(page, "return document.querySelectorAll('#tree li').length > 0")
    for number in range(9):
        until(page, quiet(number))
    until(page, "return document.querySelector('#requests tbody').textContent", "nobody asks for anything")
    answers = [texts(page, number, "assistant")[0] for number in range(9)]
    assert all(answers)
    assert not any("waits until" in answer for answer in answers)


def test_stop_ends_the_answer_and_frees_the_engine(page):
    say(page, 0, "Tell me a long story.", tokens=1500)
    until(page, "return document.querySelector('.chat .message.assistant span:nth-child(2)').textContent.length > 5")
    page.run("document.querySelectorAll('.chat')[0].querySelector('form button[type=button]').click()")
    until(page, quiet(0))
    assert page.run("return document.querySelector('.chat .message .quiet').textContent") == "stopped"
    until(page, "return document.querySelector('#requests tbody').textContent", "nobody asks for anything")
    say(page, 0, "What is 3 + 4?")
    until(page, quiet(0))
    assert "7" in texts(page, 0, "assistant")[1]


def test_what_the_server_refuses_is_told_in_the_chat(page):
    say(page, 0, "a " * 3000)
    until(page, quiet(0))
    assert "shorten it" in texts(page, 0, "error")[0]
    assert any("400" in message for message in page.errors())  # the browser notes the status itself


def test_text_of_a_model_is_text(page):
    say(page, 0, "<img src=x onerror=alert(1)><b>bold</b>", tokens=1)
    until(page, quiet(0))
    assert page.run("return document.querySelectorAll('.log img, .log b').length") == 0
    assert texts(page, 0, "user") == ["<img src=x onerror=alert(1)><b>bold</b>"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_can_be_read(page, width, dark):
    page.resize(width, 800)
    page.run(
        f"if (document.documentElement.classList.contains('dark') !== {str(dark).lower()}) "
        "document.getElementById('theme').click();"
    )
    faults = page.run(FAULTS)
    page.run("localStorage.clear()")
    assert faults == []


# What sticks out, has no name for a screen reader, or hardly differs from its background.
FAULTS = """
const faults = [];
if (document.documentElement.scrollWidth > innerWidth) faults.push("wider than the window");
for (const e of document.querySelectorAll("button, input, textarea, canvas")) {
  const labelled = document.getElementById(e.getAttribute("aria-labelledby"))?.textContent;
  if (!(e.getAttribute("aria-label") || labelled || e.closest("label") || e.textContent.trim()))
    faults.push("no name: " + e.outerHTML);
}
const light = (text) => {
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = text.match(/[\\d.]+/g).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
  const color = getComputedStyle(e).backgroundColor;
  return color === "rgba(0, 0, 0, 0)" && e.parentElement ? behind(e.parentElement) : color;
};
for (const e of document.querySelectorAll("h1, h2, h3, p, span, button, label, dt, dd, th, td, summary, a, input")) {
  if (!e.getClientRects().length || !(e.textContent.trim() || e.value)) continue;
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) faults.push("contrast: " + e.outerHTML.slice(0, 80));
}
return faults;
"""


def test_the_keyboard_sends_and_breaks_lines(page):
    key = "new KeyboardEvent('keydown', {key: 'Enter', shiftKey: %s, bubbles: true, cancelable: true})"
    page.run(
        "const input = document.querySelector('.chat textarea'); input.value = 'Hi';"
        f"input.dispatchEvent({key % 'true'});"
    )
    assert texts(page, 0, "user") == []
    page.run(f"document.querySelector('.chat textarea').dispatchEvent({key % 'false'});")
    assert texts(page, 0, "user") == ["Hi"]
    until(page, quiet(0))


def test_a_server_that_has_gone_is_told(window):
    with serving(*SIZES) as short:
        window.resize(1280, 900)
        window.open(short.url)
        until(window, "return document.querySelector('#stats dd') !== null")
        assert short.end()[0] == 0
    until(window, "return !document.getElementById('notice').hidden")
    assert "No view of the engine" in window.run("return document.getElementById('notice').textContent")
    window.open("about:blank")
    window.errors()
