"""What needs no model: retries, text from tokens, addresses, what fits."""

from __future__ import annotations

import pytest

from kernel_lsp import errors
from kernel_lsp.modelhost import limits, retrying
from kernel_lsp.modelhost.request import Request
from kernel_lsp.modelhost.server_address import Server
from kernel_lsp.modelhost.server_answers import context_error
from kernel_lsp.modelhost.streams import Detokenizer, Streams


def test_waits_double_and_never_undercut_what_the_server_asks() -> None:
    assert [retrying.delay(n, jitter=1.0) for n in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert retrying.delay(3, jitter=0.0) == 1.0
    assert retrying.delay(100, jitter=1.0) == retrying.LONGEST
    assert retrying.delay(1, asked=7, jitter=0.5) == 7
    assert retrying.delay(1, asked=1e9, jitter=0.5) == retrying.LONGEST_ASKED
    assert len({retrying.delay(5) for _ in range(20)}) > 10


def test_retry_after_holds_seconds_or_a_date() -> None:
    assert retrying.retry_after("3") == 3
    assert retrying.retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now=1445412470.0) == 10
    assert retrying.retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now=2e9) == 0
    assert retrying.retry_after("soon") is None and retrying.retry_after(None) is None


@pytest.mark.parametrize(
    ("status", "passing"), [(429, True), (500, True), (503, True), (529, True), (400, False), (501, False)]
)
def test_which_statuses_pass(status: int, passing: bool) -> None:
    assert retrying.is_passing(status) is passing


def test_characters_are_never_split_between_tokens() -> None:
    data = "def ü(x): # 漢字 🚀\n".encode()
    detokenizer = Detokenizer(lambda ids: bytes(ids).decode("utf-8", "replace"))
    pieces = [detokenizer.add([byte]) for byte in data]
    assert "".join(pieces) == data.decode() and "\ufffd" not in "".join(pieces)
    assert detokenizer.add(list("é".encode()[:1])) == "" and detokenizer.end() == "\ufffd"
    assert detokenizer.text == data.decode() + "\ufffd"


def test_a_streams_text_adds_up_to_its_answer() -> None:
    events: list[tuple[str, dict]] = []
    streams = Streams(Request("generate", {}, lambda name, data: events.append((name, data))), samples=2, seed=7)
    for word in ("a", "b", "c"):
        streams.text(1, word, 1)
    streams.answer(1, "abc", "stop")
    assert "".join(data["text"] for name, data in events if name == "text") == "abc"
    assert events[-1] == ("answer", {"sample": 1, "text": "abc", "tokens": 3, "finish": "stop", "seed": 8})
    assert streams.result(5)["tokens"] == 3 and events[-1][1]["finished"] == 1


def test_answers_are_cut_to_the_context_but_not_below_256_tokens() -> None:
    assert limits.room(100, 2048, None) == 2048
    assert limits.room(100, 2048, 1000) == 900
    assert limits.room(744, 2048, 1000) == 256
    assert limits.room(980, 20, 1000) == 20
    with pytest.raises(errors.PromptTooLong, match="745 tokens"):
        limits.room(745, 2048, 1000)


def test_a_literal_begin_of_text_is_taken_off_the_head_only() -> None:
    assert limits.without_beginning("\n<|begin_of_text|>You", None) == "You"
    assert limits.without_beginning("  x <|begin_of_text|>") == "  x <|begin_of_text|>"
    assert limits.without_beginning("<s>x", "<s>") == "x" and limits.without_beginning("<s>x") == "<s>x"


@pytest.mark.parametrize(
    ("words", "prompt", "context"),
    [
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the completion).",
            3000,
            4096,
        ),
        (
            "This model's maximum context length is 2048 tokens and your request has 1500 input tokens (900 > 2048 - 1500).",
            1500,
            2048,
        ),
        ("request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", 9000, 8192),
        ("Requested tokens (1801) exceed context window of 1024", 1801, 1024),
    ],
    ids=["openai", "vllm", "llama.cpp", "llama-cpp-python"],
)
def test_complaints_about_the_context_are_read(words: str, prompt: int, context: int) -> None:
    found = context_error(words)
    assert found is not None and (found.prompt, found.context) == (prompt, context)
    assert context_error("seed is not supported") is None


def test_neither_key_nor_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-abcdef123456")
    server = Server("https://me:hunter22@models.example.com/v1/", "A_KEY", 10)
    assert server.shown == "https://models.example.com/v1" and "hunter22" not in repr(server) and not server.is_local
    assert server.scrubbed("Bearer sk-abcdef123456, hunter22") == "Bearer •••, •••"
    assert "sk-ab" not in server.scrubbed("provided: sk-abc******3456.")
    assert "A_KEY" in server.key_in_words()
    monkeypatch.delenv("A_KEY")
    assert "holds no key" in server.key_in_words()
    assert Server("http://localhost:8000/v1", "", 1).is_local and Server("http://[::1]:80/v1", "", 1).is_local
