"""Language models: the process that holds one, servers, and the names of models."""

from __future__ import annotations

from .base import UserError


class ModelHostDied(UserError):
    """The model host ended during a request; the next one starts another."""

    template = "The process that runs the language model ended while it was working ({detail}). It will be restarted; run the command again, with a smaller model if it ran out of memory."


class ModelHostTimedOut(UserError):
    """A request to the model host, or the wait for another job's, took longer than ``seconds``."""

    template = "The language model gave no answer within {seconds:.0f} s ({stage}); it was stopped. Raise kernelLsp.seconds, or use a smaller model or fewer samples."


class ModelMissing(UserError):
    """The model's file or folder is neither at the path that was given nor in the cache."""

    template = "The model {model} is not on this machine{detail}. Fetch it with: {command}"


class ModelDamaged(UserError):
    """A file of the model is incomplete or cannot be parsed."""

    template = "The model in {path} cannot be read: {detail}. Fetch it again with: {command}"


class ModelTooLarge(UserError):
    """Weights, or the cache of a long prompt, do not fit into the device's free memory. Sizes are text, with their unit."""

    template = "{model} needs {needed} of memory on {device}, where {available} can be used{detail}. {proposal}"


class ModelPackageMissing(UserError):
    """transformers, llama-cpp-python or openai is missing or cannot be imported in the model host's interpreter."""

    template = "{interpreter} has no {package}, which this model needs{detail}. Install it there: {command}"


class ModelNotSupported(UserError):
    """The backend does not know the model's architecture, or the model cannot do what was asked (converse, without a chat template)."""

    template = "{model} cannot be run here: {detail}. Choose another model, or serve it with a program that can (kernelLsp.openai.baseUrl)."


class PromptTooLong(UserError):
    """Prompt and the shortest useful answer, ``least``, exceed the model's context; all three in tokens."""

    template = "The prompt has {tokens} tokens and the model's context holds {context}, of which at least {least} are kept for the answer. Use a smaller module, or a model with a longer context."


class ModelServerUnreachable(UserError):
    """No connection to the server of an OpenAI-compatible model, also after retries."""

    template = "No model server answers at {base_url}: {detail}. Start it, or correct kernelLsp.openai.baseUrl."


class ModelServerRefused(UserError):
    """The server answered that the key is missing, wrong or not entitled; ``key``: where it was taken from, never the key."""

    template = "The model server at {base_url} refused the request (status {status}): {key}. Put a valid key in that environment variable, or name another one (kernelLsp.openai.apiKeyEnv)."


class ModelServerFailed(UserError):
    """The server answered with an error of its own, also after ``retries`` retries."""

    template = "The model server at {base_url} failed ({detail}) after {retries} retries. Try again later, or look at the server's log."


class ModelUnknown(UserError):
    """The server does not offer the model of the setting; ``offered``: those that it does."""

    template = "The model server at {base_url} has no model {model!r}; it offers: {offered}. Set kernelLsp.openai.model to one of them."


class ModelNameInvalid(UserError):
    """A name that is neither a known model's nor has the form of a repository's on the Hub."""

    template = "{name} is not the name of a model. Use a known one ({known}) or ORGANISATION/REPOSITORY as on the Hugging Face Hub; for a GGUF with :QUANTISATION or :FILE after it."


class ModelServerNotNamed(UserError):
    """The generator ``openai`` was chosen without a base URL or a model."""

    template = "The generator openai has no server. Set kernelLsp.openai.baseUrl, or kernelLsp.openai.model for a model of OpenAI's own."


class ModelNotHere(UserError):
    """A command that needs a fetched model names one that is not in the cache."""

    template = "{name} is not in {folder}. `kernel-lsp models list` shows what is there."
