"""What went wrong between here and the Hub, as one of our errors. Never shows a token: only the server's own words."""

from __future__ import annotations

import errno
import importlib.util
import json
import re
import shutil
import sys

from kernel_lsp import errors
from kernel_lsp.hub.cache import cache_folder, offline

#: huggingface_hub speaks HTTP through one of these; which, depends on its version.
_HTTP = {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3"}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EIO, errno.ENAMETOOLONG}
_TRANSIENT_STATUSES = {408, 429, 500, 502, 503, 504}


def need_huggingface_hub() -> None:
    """Check that ``huggingface_hub`` is installed, without importing it.

    Raises:
        HubPackageMissing: it is not; with the command that installs it for this interpreter.
    """
    if importlib.util.find_spec("huggingface_hub") is not None:
        return
    pip = f"{sys.executable} -m pip install"
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        pip = f"uv pip install --python {sys.executable}"
    raise errors.HubPackageMissing(
        package="huggingface_hub", interpreter=sys.executable, command=f"{pip} 'huggingface_hub>=1'"
    )


def is_transient(error: BaseException) -> bool:
    """Whether it may work if it is tried again: the connection was lost, the server is overloaded."""
    status = _status(error)
    if status is not None:
        return status in _TRANSIENT_STATUSES
    return _is_http(error) or isinstance(error, (ConnectionError, TimeoutError))


def is_disk_full(error: BaseException) -> bool:
    """Whether no space, or none of the user's quota, is left."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def explain(error: BaseException, name: str) -> errors.UserError:
    """``name``: the repository. An error that is none of the Hub's becomes InternalError."""
    from huggingface_hub import constants
    from huggingface_hub import errors as hub

    endpoint = constants.ENDPOINT
    if isinstance(error, errors.UserError):
        return error
    if isinstance(error, hub.OfflineModeIsEnabled):
        return is_offline(name, offline() or "HF_HUB_OFFLINE")
    if isinstance(error, hub.GatedRepoError):
        return errors.RepositoryGated(name=name, page=f"{endpoint}/{name}")
    if isinstance(error, hub.RepositoryNotFoundError):
        return errors.RepositoryUnknown(name=name, endpoint=endpoint)
    if isinstance(error, hub.HFValidationError):
        from kernel_lsp.hub.catalogue import known_names

        return errors.ModelNameInvalid(name=name, known=", ".join(known_names()))
    if isinstance(error, hub.LocalEntryNotFoundError) and error.__cause__ is not None:
        return explain(error.__cause__, name)
    status = _status(error)
    if status is not None:
        return errors.HubRefused(endpoint=endpoint, status=status, name=name, detail=_words(error))
    if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
        detail = error.strerror or "not permitted"
        return errors.CacheNotWritable(path=str(error.filename or cache_folder()), detail=detail)
    if _is_http(error) or isinstance(error, (ConnectionError, TimeoutError)):
        return errors.HubUnreachable(endpoint=endpoint, name=name, detail=_words(error))
    if isinstance(error, json.JSONDecodeError):  # the sign-in page of a network, a wrong HF_ENDPOINT
        return errors.HubUnreachable(endpoint=endpoint, name=name, detail="what answers there is not the Hub")
    return errors.InternalError(detail=f"{type(error).__name__}: {_words(error)}")


def is_offline(name: str, reason: str) -> errors.HubOffline:
    """The error for a model that offline mode forbids to fetch; ``reason``: what turned that on."""
    return errors.HubOffline(name=name, reason=reason, folder=str(cache_folder()))


def _is_http(error: BaseException) -> bool:
    return any(kind.__module__.split(".")[0] in _HTTP for kind in type(error).__mro__)


def _status(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _words(error: BaseException) -> str:
    """Its message on one line: the server's own where it sent one, without the addresses, and no full stop."""
    said = getattr(error, "server_message", None) or str(error) or type(error).__name__
    said = re.sub(r"\s*(?:for url|\(Request ID|For more information).*", "", " ".join(str(said).split()))
    return said.rstrip(" .:'") or type(error).__name__
