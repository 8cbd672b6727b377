"""A model server's address and key: how it is reached, and how it is shown."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

#: what is sent where no key is set: servers that want none ignore it, and the client insists on one
NO_KEY = "no-key"
HIDDEN = "•••"


class Server:
    """``shown`` is the address without user name, password and query. The key is never kept: ``key()`` reads it each time."""

    def __init__(self, base_url: str, api_key_env: str, timeout: float) -> None:
        self.base_url = base_url.rstrip("/")
        self.api_key_env = api_key_env
        self.timeout = timeout
        parts = urlsplit(self.base_url)
        host = parts.hostname or ""
        self.secret = parts.password or ""
        self.shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
        self.is_local = _is_loopback(host)

    def __repr__(self) -> str:
        return f"Server({self.shown!r})"

    def key(self) -> str:
        """The key as it is in the environment now, or ""."""
        return os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""

    def key_in_words(self) -> str:
        """What is wrong with the key, by the variable's name."""
        if not self.api_key_env:
            return "it wants a key, and no environment variable is named for one"
        if not self.key():
            return f"the environment variable {self.api_key_env} holds no key"
        return f"it does not accept the key in the environment variable {self.api_key_env}"

    def scrubbed(self, text: str) -> str:
        """The text without the key, whole or as servers abbreviate it, and without a password of the address."""
        for secret in (self.key(), self.secret):
            if len(secret) >= 4:
                text = text.replace(secret, HIDDEN)
                head, tail = re.escape(secret[:3]), re.escape(secret[-2:])
                text = re.sub(rf"{head}[^\s'\",]*[*.…]{{3,}}[^\s'\",]*{tail}", HIDDEN, text)
        return text

    def client(self) -> Any:
        """A client for one request; its own retries are off, since a cancel has to end the wait between them."""
        import openai

        key = self.key()
        if not re.fullmatch(r"[\x21-\x7e]*", key):  # no header can hold it; the library would quote it in its error
            key = ""
        # A proxy cannot know this machine's loopback.
        http = openai.DefaultAsyncHttpxClient(trust_env=not self.is_local, timeout=self.timeout)
        return openai.AsyncOpenAI(
            api_key=key or NO_KEY, base_url=self.base_url, timeout=self.timeout, max_retries=0, http_client=http
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
