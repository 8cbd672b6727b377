"""A served model: what goes wrong on the way, with a real server that fails on purpose in front of llama.cpp's."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Iterator

import pytest

from kernel_lsp import errors
from tests.modelhost.conftest import Host, on_server, running
from tests.modelhost.failing_server import FailingServer, raw, silent, status

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session")]

ASKED = {"prompt": "class A(UserError):", "samples": 1, "temperature": 0.0, "max_tokens": 40, "seed": 5}
KEY = "sk-secret-0123456789abcdef"


@pytest.fixture
def server(llama_server: str) -> Iterator[FailingServer]:
    failing = FailingServer(llama_server)
    yield failing
    failing.close()


async def expected(host: Host, address: str) -> str:
    await host.ask("load", **on_server(address))
    await host.ask("generate", **ASKED)
    return host.answers[0]["text"]


@pytest.mark.parametrize(
    "faults",
    [
        [status(500), status(503)],
        [lambda handler: handler.server.cut(handler)],
        [raw("text/event-stream", b"data: {garbage\n\n")],
        [raw("text/html", b"<html>welcome</html>"), None],
        [raw("text/event-stream", b'data: {"error": {"message": "out of luck"}}\n\n')],
    ],
    ids=["500 and 503", "half an answer", "garbage", "a web page", "an error in the stream"],
)
async def test_what_may_pass_is_asked_again(host: Host, server: FailingServer, llama_server: str, faults) -> None:
    good = await expected(host, llama_server)

    def cut(handler) -> bool:
        body = json.dumps(server.requests[-1][1]).encode()
        server.pass_on(handler, body, cut=900)
        return True

    server.http.cut = cut  # type: ignore[attr-defined]
    await host.ask("load", **on_server(server.base_url))
    server.faults = list(faults)
    result = await host.ask("generate", **ASKED)
    assert host.answers[0]["text"] == good
    assert result["tokens"] == host.answers[0]["tokens"]
    restarts = [i for i, (name, data) in enumerate(host.events) if name == "text" and data.get("restart")]
    after = host.events[restarts[-1] :] if restarts else host.events
    assert "".join(d["text"] for name, d in after if name == "text") == good
    assert len(server.requests) > len(faults) - 1


async def test_429_waits_as_long_as_the_server_asks(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url))
    server.faults = [status(429, "slow down", retry_after="2")]
    await host.ask("generate", **ASKED)
    (first, *_), (second, *_) = server.requests
    assert 2.0 <= second - first < 4
    assert host.answers[0]["tokens"] > 0


async def test_a_cancel_ends_the_wait_between_retries(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url))
    server.faults = [status(429, "later", retry_after="60")]
    asking = asyncio.create_task(host.ask("generate", **ASKED))
    while not server.requests:
        await asyncio.sleep(0.02)
    pid, began = host.worker.pid, time.monotonic()
    asking.cancel()
    await asyncio.wait({asking})
    assert time.monotonic() - began < 0.5
    assert host.worker.pid == pid, "it answered, and was not killed"
    await host.ask("generate", **ASKED)


async def test_a_cancel_ends_a_silent_stream(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url))
    server.faults = [silent(3)]
    asking = asyncio.create_task(host.ask("generate", **ASKED))
    while not server.requests:
        await asyncio.sleep(0.02)
    pid, began = host.worker.pid, time.monotonic()
    asking.cancel()
    await asyncio.wait({asking})
    assert time.monotonic() - began < 0.5 and host.worker.pid == pid


async def test_giving_up_says_what_the_server_said(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url, retries=1))
    server.faults = [status(500, "the disk is full"), status(500, "the disk is full")]
    error = await host.error("generate", **ASKED)
    assert type(error).__name__ == "ModelServerFailed"
    assert "status 500: the disk is full" in str(error) and "1 retries" in str(error)
    await host.ask("generate", **ASKED)
    assert host.answers


async def test_a_server_that_says_nothing_times_out(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url, retries=0, timeout=0.5))
    server.faults = [silent(2)]
    error = await host.error("generate", **ASKED)
    assert type(error).__name__ == "ModelServerUnreachable" and "no sign of life" in str(error)


async def test_no_server_and_an_unknown_model(host: Host, server: FailingServer) -> None:
    error = await host.error("load", **on_server("http://127.0.0.1:9/v1"))
    assert type(error).__name__ == "ModelServerUnreachable" and "http://127.0.0.1:9/v1" in str(error)
    await host.ask("load", **on_server(server.base_url, model="kernelllm-70b"))
    server.faults = [status(404, "The model `kernelllm-70b` does not exist.")]
    error = await host.error("generate", **ASKED)
    assert type(error).__name__ == "ModelUnknown" and "tiny.gguf" in str(error)


async def test_parameters_that_a_server_refuses_are_left_out(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url))
    server.faults = [
        status(400, "Unrecognized request arguments supplied: min_p, repeat_penalty, top_k"),
        status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        status(422, "seed: extra fields not permitted"),
    ]
    await host.ask("generate", **ASKED)
    bodies = [body for _, body, _ in server.requests]
    assert bodies[0]["seed"] == 5 and bodies[0]["max_tokens"] == 40 and bodies[0]["top_k"] == 0
    assert bodies[1].keys() == bodies[0].keys() - {"top_k", "min_p", "repeat_penalty", "repetition_penalty"}
    assert "max_tokens" not in bodies[2] and bodies[2]["max_completion_tokens"] == 40
    assert "seed" not in bodies[3]
    assert host.answers[0]["tokens"] > 0


async def test_a_prompt_too_long_for_the_server(host: Host, server: FailingServer, llama_server: str) -> None:
    await host.ask("load", **on_server(llama_server))
    error = await host.error("generate", **{**ASKED, "prompt": "a ^ b ~ " * 400})
    assert type(error).__name__ == "PromptTooLong" and "1024" in str(error), str(error)
    await host.ask("load", **on_server(server.base_url))
    words = "This model's maximum context length is 1024 tokens. However, you requested 1500 tokens (500 in the messages, 1000 in the completion)."
    server.faults = [status(400, words)]
    await host.ask("generate", **{**ASKED, "max_tokens": 1000})
    assert [body["max_tokens"] for _, body, _ in server.requests] == [1000, 524]


async def test_a_refused_key_is_named_by_its_variable_and_shown_nowhere(
    server: FailingServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(os.environ, "KERNEL_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    async with running() as host:
        about = await host.ask("load", **on_server(server.base_url, api_key_env="KERNEL_TEST_KEY", retries=0))
        told.append(str(about))
        for fault in (
            status(401, f"Incorrect API key provided: {KEY}"),
            status(500, f"cannot parse Authorization: Bearer {KEY}"),
            status(500, f"bad key {KEY[:8]}********{KEY[-4:]}"),
        ):
            server.faults = [fault]
            error = await host.error("generate", **ASKED)
            told += [str(error), repr(error), str(error.to_json())]
        await host.ask("generate", **ASKED)
        told.append(str(host.events))
    assert server.requests[0][2]["authorization"] == f"Bearer {KEY}"
    assert "KERNEL_TEST_KEY" in told[1] and "ModelServerRefused" in told[2]
    for text in [*told, caplog.text]:
        assert KEY not in text and KEY[-4:] not in text and KEY[:8] not in text


async def test_several_samples_at_once_each_with_its_seed(host: Host, server: FailingServer) -> None:
    await host.ask("load", **on_server(server.base_url, parallel=2))
    await host.ask("generate", **{**ASKED, "samples": 5, "temperature": 2.0})
    assert sorted(body["seed"] for _, body, _ in server.requests) == [5, 6, 7, 8, 9]
    assert sorted(host.answers) == [0, 1, 2, 3, 4]


async def test_the_errors_cross_the_wire() -> None:
    error = errors.ModelUnknown(base_url="http://a/v1", model="m", offered="n")
    assert isinstance(errors.from_json(error.to_json()), errors.ModelUnknown)
