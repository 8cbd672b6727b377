"""Language models: the process that holds one, servers, and the names of models."""

from __future__ import annotations

from .base import UserError


class ModelHostDied(UserError):
    template = "The process that runs the language model ended while it was working ({detail}). It will be restarted; run the command again, with a smaller model if it ran out of memory."


class ModelHostTimedOut(UserError):
    template = "The language model gave no answer within {seconds:.0f} s ({stage}); it was stopped. Raise kernelLsp.seconds, or use a smaller model or fewer samples."


class ModelMissing(UserError):
    template = "The model {model} is not on this machine{detail}. Fetch it with: {command}"


class ModelDamaged(UserError):
    template = "The model in {path} cannot be read: {detail}. Fetch it again with: {command}"


class ModelTooLarge(UserError):
    template = "{model} needs {needed} of memory on {device}, where {available} can be used{detail}. {proposal}"


class ModelPackageMissing(UserError):
    template = "{interpreter} has no {package}, which this model needs{detail}. Install it there: {command}"


class ModelNotSupported(UserError):
    template = "{model} cannot be run here: {detail}. Choose another model, or serve it with a program that can (kernelLsp.openai.baseUrl)."


class PromptTooLong(UserError):
    template = "The prompt has {tokens} tokens and the model's context holds {context}, of which at least {least} are kept for the answer. Use a smaller module, or a model with a longer context."


class ModelServerUnreachable(UserError):
    template = "No model server answers at {base_url}: {detail}. Start it, or correct kernelLsp.openai.baseUrl."


class ModelServerRefused(UserError):
    template = "The model server at {base_url} refused the request (status {status}): {key}. Put a valid key in that environment variable, or name another one (kernelLsp.openai.apiKeyEnv)."


class ModelServerFailed(UserError):
    template = "The model server at {base_url} failed ({detail}) after {retries} retries. Try again later, or look at the server's log."


class ModelUnknown(UserError):
    template = "The model server at {base_url} has no model {model!r}; it offers: {offered}. Set kernelLsp.openai.model to one of them."


class ModelNameInvalid(UserError):
    template = "{name} is not the name of a model. Use a known one ({known}) or ORGANISATION/REPOSITORY as on the Hugging Face Hub; for a GGUF with :QUANTISATION or :FILE after it."


class ModelServerNotNamed(UserError):
    template = "The generator openai has no server. Set kernelLsp.openai.baseUrl, or kernelLsp.openai.model for a model of OpenAI's own."


class ModelTryTarget(UserError):
    template = "{target} names no class. Write FILE::CLASS, for instance model.py::RMSNorm."


class ModelNotHere(UserError):
    template = "{name} is not in {folder}. `kernel-lsp models list` shows what is there."
