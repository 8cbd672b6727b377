"""Getting models from the Hugging Face Hub, and keeping them."""

from __future__ import annotations

from .base import UserError


class HubPackageMissing(UserError):
    """``huggingface_hub`` is not installed; ``command``: what installs it for this interpreter."""

    template = "Getting models needs the package {package}, which {interpreter} does not have. Install it: {command}"


class HubOffline(UserError):
    """A model is not in the cache, and a variable of the environment, ``reason``, forbids to fetch it."""

    template = "{name} is not here, and cannot be fetched: {reason} turns offline mode on. Unset it, or fetch the model on a machine that is online and copy its folder into {folder}."


class HubUnreachable(UserError):
    """The Hub gave no answer, or what answered is not the Hub, as the sign-in page of a network."""

    template = "{endpoint} could not be reached for {name}: {detail}. Check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT, and run the command again."


class HubRefused(UserError):
    """The Hub answered with a status that means neither a gated nor an unknown repository."""

    template = "{endpoint} answered {status} for {name}: {detail}. Try again later; if it stays so, check the token (hf auth whoami)."


class RepositoryGated(UserError):
    """The Hub asks for an accepted agreement; ``page``: where it is accepted."""

    template = "{name} is gated: its owners want their conditions accepted first. Do so at {page}, then sign in here (hf auth login, or HF_TOKEN) and run the command again."


class RepositoryUnknown(UserError):
    """The Hub knows no such repository, which is also what it says of a private one."""

    template = "There is no model {name} at {endpoint}, or it is private. Check the name; if it is private, sign in (hf auth login, or HF_TOKEN)."


class ModelNotUsable(UserError):
    """The list of a repository's files has nothing that a backend could load."""

    template = "{name} has neither safetensors with their config.json nor a GGUF file, so no generator can run it. Choose another repository (`kernel-lsp models list` names some)."


class QuantisationUnknown(UserError):
    """The part of a model's name after the colon is neither a quantisation nor a file of the repository."""

    template = "{name} has no {part}. It has: {available}."


class LicenceNotAccepted(UserError):
    """``--accept-licence`` was not given, and there is no terminal on which to ask."""

    template = "{name} was not fetched: its licence ({licence}, {link}) has not been accepted. Read it and run the command again with --accept-licence."


class PullRunning(UserError):
    """Another process holds the lock of the same repository's download."""

    template = (
        "{name} is being fetched by another process already. Wait for it, or end it; what it has fetched is kept."
    )


class DownloadInterrupted(UserError):
    """The connection was lost; ``done`` and ``total``: sizes as text, with their unit."""

    template = "The download of {name} broke off after {done} of {total}: {detail}. What was fetched is kept: run the command again to go on from there."


class DownloadCorrupt(UserError):
    """The size or hash of a file is not the Hub's after it was fetched a second time; ``detail``: which of them."""

    template = "{file} of {name} arrived damaged twice: {detail}. It was deleted. Check the disk, and proxies or mirrors on the way (HF_ENDPOINT), and run the command again."


class TooLittleMemory(UserError):
    """The chosen form of the model, or each of its forms, fits into neither GPU memory nor RAM; sizes are text, with their unit."""

    template = "{name} needs about {needed} of memory; here are {there}. {instead}, or fetch it nevertheless, to use it on another machine (--force)."


class TooLittleDisk(UserError):
    """The disk of the cache is too small for what is still to be fetched; sizes are text, with their unit."""

    template = "{name} still needs {needed} of disk space; {path} has {free} left. Free some, or put the cache on another disk (HF_HOME)."


class CacheNotWritable(UserError):
    """A file or folder of the Hugging Face cache could not be made or written."""

    template = "{path} could not be written: {detail}. Change its permissions, or put the cache elsewhere (HF_HOME)."
