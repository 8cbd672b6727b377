"""A model behind an OpenAI-compatible server: vLLM, llama.cpp's, a hosted one. One request a sample, several at once.

The key is read from its environment variable when a request is made and is in no message, log or attribute.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from kernel_lsp import errors
from kernel_lsp.modelhost import limits, retrying
from kernel_lsp.modelhost.request import Request
from kernel_lsp.modelhost.server_address import Server
from kernel_lsp.modelhost.server_answers import Half, Parameters, context_error, refused_parameter, said, words_of
from kernel_lsp.modelhost.streams import Streams

log = logging.getLogger("kernel_lsp.modelhost")

#: retries of the first request to a server: few, since a wrong address has to be reported soon
LOAD_RETRIES = 1
#: seconds between two looks at whether the request was cancelled
CANCEL_INTERVAL = 0.05


def load(params: dict[str, Any], request: Request) -> ServedModel:
    """Find the model on the server.

    Raises:
        ModelPackageMissing: openai is missing or does not work.
        ModelServerUnreachable, ModelServerRefused, ModelServerFailed: the server does not answer, refuses the key, or fails.
        ModelUnknown: it does not offer the model.
        Cancelled: the request was cancelled.
    """
    try:
        import openai  # noqa: F401
    except ImportError as error:
        missing = error.name == "openai"
        raise errors.ModelPackageMissing(
            interpreter=sys.executable,
            package="openai" if missing else "a working openai",
            detail="" if missing else f" ({error})",
            command=f"{sys.executable} -m pip install openai",
        ) from error
    for name in ("httpx", "httpx2", "httpcore", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
    model = ServedModel(params)
    asyncio.run(_until_cancelled(model.look(params), request))
    return model


async def _until_cancelled(work: Any, request: Request) -> Any:
    """Its result, or Cancelled soon after the request is; then nothing of it is left running."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=CANCEL_INTERVAL)
        if request.cancelled.is_set():
            task.cancel()
            await asyncio.wait({task}, timeout=0.3)
            raise errors.Cancelled()
    return task.result()


class Unfinished(Exception):
    """An attempt that failed in a way that may pass. The text says how, without the key."""

    def __init__(self, detail: str, asked: float | None = None, unreachable: bool = False) -> None:
        super().__init__(detail)
        self.asked = asked
        self.unreachable = unreachable


class ServedModel:
    """A model on a server. ``about`` is the answer to ``load``."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.server = Server(params["base_url"], params.get("api_key_env") or "", float(params.get("timeout") or 120))
        self.model = params.get("model") or ""
        self.retries = int(params["retries"]) if params.get("retries") is not None else 5
        self.parallel = max(1, int(params.get("parallel") or 4))
        self.context = int(params.get("context") or 0) or None
        self.parameters = Parameters()
        self.about: dict[str, Any] = {}

    async def look(self, params: dict[str, Any]) -> None:
        """Ask the server what it has, and fill ``about``.

        Raises:
            ModelUnknown: it does not offer the model, or several where none was named.
        """
        began = time.monotonic()
        async with self.server.client() as client:
            try:
                offered = await self._again(lambda: self._offered(client), min(LOAD_RETRIES, self.retries))
            except errors.ModelServerFailed:
                if not self.model:
                    raise
                offered = []  # not every server lists its models
        if not self.model:
            if len(offered) != 1:
                raise self._unknown([model.id for model in offered])
            self.model = offered[0].id
        found = next((model for model in offered if model.id == self.model), None)
        self.context = self.context or _context(found)
        self.about = {
            "name": self.model,
            "context": self.context,
            "device": "remote",
            "dtype": "",
            "bytes": None,
            "seconds": round(time.monotonic() - began, 3),
            "chat": True,
        }

    async def _offered(self, client: Any) -> list[Any]:
        async with self._failures():
            listed = getattr(await client.models.list(), "data", None)
            if not isinstance(listed, list):
                raise Half("something that is no list of models")
            return [model for model in listed if isinstance(getattr(model, "id", None), str)]

    def _unknown(self, offered: list[str]) -> errors.ModelUnknown:
        names = ", ".join(offered[:20]) + (f" and {len(offered) - 20} more" if len(offered) > 20 else "")
        return errors.ModelUnknown(base_url=self.server.shown, model=self.model, offered=names or "none")

    def tokenize(self, prompt: str) -> list[int]:
        """A server does not tell its tokens.

        Raises:
            UserError: always.
        """
        raise errors.UserError(message="A served model's tokens are not known here.")

    def generate(self, params: dict[str, Any], request: Request) -> dict[str, Any]:
        """Answer a ``generate`` request.

        Raises:
            PromptTooLong: the context leaves too few tokens for an answer.
            ModelServerUnreachable, ModelServerRefused, ModelServerFailed: the server does not answer, refuses the key, or fails.
            ModelUnknown: it does not offer the model any more.
            Cancelled: the request was cancelled.
        """
        streams = Streams(request, int(params.get("samples") or 1), int(params.get("seed") or 0))
        self.parameters.most = None
        prompt_tokens = asyncio.run(_until_cancelled(self._all(params, streams), request))
        return streams.result(prompt_tokens)

    async def _all(self, params: dict[str, Any], streams: Streams) -> int | None:
        """Every sample, ``parallel`` at a time; the prompt's tokens if the server counts them."""
        free = asyncio.Semaphore(self.parallel)
        counted: list[int] = []

        async def one(client: Any, sample: int) -> None:
            async with free:
                await self._again(lambda: self._attempt(client, params, sample, streams, counted), self.retries)

        async with self.server.client() as client:
            tasks = [asyncio.create_task(one(client, sample)) for sample in range(streams.samples)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks, timeout=0.2)
        return counted[0] if counted else None

    async def _again(self, attempt: Any, retries: int) -> Any:
        """The attempt's result, after up to so many retries.

        Raises:
            ModelServerUnreachable, ModelServerFailed: none of them had an answer.
        """
        for number in range(retries + 1):
            try:
                return await attempt()
            except Unfinished as error:
                if number == retries:
                    raise self._given_up(error, retries) from None
                seconds = retrying.delay(number + 1, error.asked)
                log.info("model server: %s; again in %.1f s (%d of %d)", error, seconds, number + 1, retries)
                await asyncio.sleep(seconds)
        raise AssertionError("unreachable")

    def _given_up(self, error: Unfinished, retries: int) -> errors.UserError:
        if error.unreachable:
            detail = f"{error}" + (f" ({retries} retries)" if retries else "")
            return errors.ModelServerUnreachable(base_url=self.server.shown, detail=detail)
        return errors.ModelServerFailed(base_url=self.server.shown, detail=str(error), retries=retries)

    async def _attempt(
        self, client: Any, params: dict[str, Any], sample: int, streams: Streams, counted: list[int]
    ) -> None:
        """One sample from its first token to its last; what an attempt that broke off said does not count."""
        import openai

        streams.restart(sample)
        text: list[str] = []
        finish, tokens, began = "", 0, False
        async with self._failures(client, params):
            try:
                stream = await self._open(client, params, streams.seed + sample)
                async with stream:
                    async for chunk in stream:
                        began = True
                        usage = getattr(chunk, "usage", None)
                        if usage is not None:
                            tokens = usage.completion_tokens or tokens
                            counted.append(usage.prompt_tokens)
                        for choice in getattr(chunk, "choices", None) or []:
                            delta = said(choice)
                            text.append(delta)
                            streams.text(sample, delta, 1 if delta else 0)
                            finish = getattr(choice, "finish_reason", None) or finish
            except openai.APIConnectionError as error:
                if began or isinstance(error, openai.APITimeoutError) or _never_connected(error.__cause__ or error):
                    raise
            if not began:
                # On a connection of its own: a server that failed closes the one it failed on.
                async with self.server.client() as fresh:
                    await self._open(fresh, params, streams.seed + sample, stream=False)
        if not finish:
            raise Unfinished("the answer broke off in the middle" if began else "the answer was empty")
        if tokens:
            streams.counts[sample] = tokens
        streams.answer(sample, "".join(text), "length" if finish == "length" else "stop")

    async def _open(self, client: Any, params: dict[str, Any], seed: int, stream: bool = True) -> Any:
        """The stream of one answer; parameters that this server refuses are left out, or replaced, from then on.

        ``stream=False`` asks for one token at once: some servers give their reason only so, and otherwise just end the stream.
        """
        import openai

        while True:
            body = self.parameters.body(self.model, params, seed, stream)
            create = client.chat.completions.create if "messages" in body else client.completions.create
            try:
                return await create(**body)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                words = words_of(error)
                if context_error(words) and self._shorten(words, params):
                    continue
                name = refused_parameter(words, body)
                if name is None or not self.parameters.refuse(name):
                    raise
                log.info("model server: it refuses %s, which is left out from now on", name)

    def _shorten(self, words: str, params: dict[str, Any]) -> bool:
        """After a complaint about the context: whether a shorter answer is worth a try.

        Raises:
            PromptTooLong: it is not.
        """
        complaint = context_error(words)
        if complaint is None:
            return False
        before = self.parameters.most
        wanted = int(params.get("max_tokens") or 2048)
        self.parameters.most = limits.room(complaint.prompt, wanted, complaint.context)
        return self.parameters.most < (wanted if before is None else before)

    @contextlib.asynccontextmanager
    async def _failures(self, client: Any = None, params: dict[str, Any] | None = None) -> AsyncIterator[None]:
        """The client's exceptions as ours: ``Unfinished`` for what may pass, user errors for what will not."""
        import openai

        def words(error: BaseException) -> str:
            return self.server.scrubbed(words_of(error))

        try:
            yield
        except (errors.UserError, Unfinished):
            raise
        except openai.APITimeoutError:
            raise Unfinished(f"no sign of life for {self.server.timeout:.0f} s", unreachable=True) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise Unfinished(words(cause) or "the connection failed", unreachable=_never_connected(cause)) from None
        except openai.APIStatusError as error:
            raise await self._status(error, words(error), client, params) from None
        except (openai.APIError, json.JSONDecodeError, Half) as error:  # an error event, or garbage, in the stream
            raise Unfinished(f"it sent {words(error) or 'an error'}") from None
        except Exception as error:
            detail = f"{type(error).__name__}: {words(error)}"
            if isinstance(error, OSError | EOFError) or type(error).__module__.partition(".")[0].startswith("http"):
                raise Unfinished(f"the connection broke ({detail})") from None
            raise errors.InternalError(detail=detail) from None

    async def _status(self, error: Any, words: str, client: Any, params: dict[str, Any] | None) -> Exception:
        """What an HTTP status means."""
        status = error.status_code
        if status in (401, 403):
            return errors.ModelServerRefused(base_url=self.server.shown, status=status, key=self.server.key_in_words())
        if status == 404 and params is not None:
            try:
                offered = [model.id for model in await self._offered(client)]
            except Exception:
                offered = []
            if (offered and self.model not in offered) or "model" in words.lower():
                return self._unknown(offered)
        complaint = context_error(words)
        if complaint is not None:
            return errors.PromptTooLong(tokens=complaint.prompt, context=complaint.context, least=limits.LEAST_ANSWER)
        if retrying.is_passing(status):
            return Unfinished(
                f"status {status}: {words}", retrying.retry_after(error.response.headers.get("retry-after"))
            )
        hint = "; perhaps the address lacks its path, often /v1" if status == 404 else ""
        detail = f"status {status}: {words}{hint}"
        return errors.ModelServerFailed(base_url=self.server.shown, detail=detail, retries=0)

    def close(self) -> None:
        """Nothing is held between requests."""


def _never_connected(error: BaseException) -> bool:
    return "connect" in type(error).__name__.lower() or isinstance(error, ConnectionRefusedError)


def _context(model: Any) -> int | None:
    """The context's length, where a server tells it with the model: vLLM, or llama.cpp's."""
    length = getattr(model, "max_model_len", None)
    meta = getattr(model, "meta", None)
    if length is None and isinstance(meta, dict):
        length = meta.get("n_ctx") or meta.get("n_ctx_train")
    return int(length) if isinstance(length, int) and length > 0 else None
