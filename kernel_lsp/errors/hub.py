"""Getting models from the Hugging Face Hub, and keeping them."""

from __future__ import annotations

from .base import UserError


class HubPackageMissing(UserError):
    template = "Getting models needs the package {package}, which {interpreter} does not have. Install it: {command}"


class HubOffline(UserError):
    template = "{name} is not here, and cannot be fetched: {reason} turns offline mode on. Unset it, or fetch the model on a machine that is online and copy its folder into {folder}."


class HubUnreachable(UserError):
    template = "{endpoint} could not be reached for {name}: {detail}. Check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT, and run the command again."


class HubRefused(UserError):
    template = "{endpoint} answered {status} for {name}: {detail}. Try again later; if it stays so, check the token (hf auth whoami)."


class RepositoryGated(UserError):
    template = "{name} is gated: its owners want their conditions accepted first. Do so at {page}, then sign in here (hf auth login, or HF_TOKEN) and run the command again."


class RepositoryUnknown(UserError):
    template = "There is no model {name} at {endpoint}, or it is private. Check the name; if it is private, sign in (hf auth login, or HF_TOKEN)."


class ModelNotUsable(UserError):
    template = "{name} has neither safetensors with their config.json nor a GGUF file, so no generator can run it. Choose another repository (`kernel-lsp models list` names some)."


class QuantisationUnknown(UserError):
    template = "{name} has no {part}. It has: {available}."


class LicenceNotAccepted(UserError):
    template = "{name} was not fetched: its licence ({licence}, {link}) has not been accepted. Read it and run the command again with --accept-licence."


class PullRunning(UserError):
    template = (
        "{name} is being fetched by another process already. Wait for it, or end it; what it has fetched is kept."
    )


class DownloadInterrupted(UserError):
    template = "The download of {name} broke off after {done} of {total}: {detail}. What was fetched is kept: run the command again to go on from there."


class DownloadCorrupt(UserError):
    template = "{file} of {name} arrived damaged twice: {detail}. It was deleted. Check the disk, and proxies or mirrors on the way (HF_ENDPOINT), and run the command again."


class TooLittleMemory(UserError):
    template = "{name} needs about {needed} of memory; here are {there}. {instead}, or fetch it nevertheless, to use it on another machine (--force)."


class TooLittleDisk(UserError):
    template = "{name} still needs {needed} of disk space; {path} has {free} left. Free some, or put the cache on another disk (HF_HOME)."


class CacheNotWritable(UserError):
    template = "{path} could not be written: {detail}. Change its permissions, or put the cache elsewhere (HF_HOME)."
