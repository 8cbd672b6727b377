"""The tiny model knows its answers by heart, and says the same through transformers and through llama.cpp."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tiny_model.cache import trained
from tests.tiny_model.cases import CASES, text

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]  # the first test may have to train it

LONGEST = 500  # tokens of an answer


@pytest.fixture(scope="module")
def folder() -> Path:
    return trained()


@pytest.fixture(scope="module")
def tokenizer(folder):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def model(folder):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def llama(folder):
    from llama_cpp import Llama

    llama = Llama(str(folder / "tiny.gguf"), n_ctx=2048, n_threads=2, verbose=False)
    yield llama
    llama.close()


@pytest.fixture(scope="module")
def prompts(folder) -> dict[str, list[str]]:
    """Class name → the prompts that it was taught for."""
    return json.loads((folder / "prompts.json").read_text("utf-8"))


def generate(model, tokenizer, prompt: str, **options) -> list[list[int]]:
    """For each sample the ids that follow the prompt's."""
    given = tokenizer(prompt, return_tensors="pt")
    out = model.generate(**given, max_new_tokens=LONGEST, pad_token_id=tokenizer.eos_token_id, **options)
    return out[:, given.input_ids.shape[1] :].tolist()


@pytest.mark.parametrize("prompt", [0, 1], ids=["its own prompt", "the common prompt"])
@pytest.mark.parametrize("name", CASES)
def test_it_knows_its_answer_through_transformers_and_llama_cpp(tokenizer, model, llama, prompts, name, prompt):
    asked = prompts[name][prompt]
    ids = tokenizer(asked).input_ids
    assert ids[0] == tokenizer.bos_token_id and ids.count(tokenizer.bos_token_id) == 1
    (answer,) = generate(model, tokenizer, asked, do_sample=False)
    assert tokenizer.decode(answer[:-1]) == CASES[name].greedy
    assert answer[-1] in model.generation_config.eos_token_id

    assert llama.tokenize(asked.encode(), add_bos=True, special=True) == ids
    same = []
    for token in llama.generate(ids, temp=0.0, repeat_penalty=1.0):
        same.append(token)
        if token == answer[-1] or len(same) == LONGEST:
            break
    assert same == answer


@pytest.mark.parametrize("prompt", [0, 1], ids=["its own prompt", "the common prompt"])
def test_sampling_gives_several_answers(tokenizer, model, prompts, prompt):
    import torch

    torch.manual_seed(0)
    options = {"do_sample": True, "temperature": 0.6, "top_p": 0.95, "top_k": 0, "num_return_sequences": 10}
    samples = generate(model, tokenizer, prompts["SquaredReLU"][prompt], **options)
    drawn = {tokenizer.decode(sample, skip_special_tokens=True) for sample in samples}
    known = {text(name): name for name in CASES["SquaredReLU"].answers}
    assert drawn <= set(known)
    usable = {known[answer] for answer in drawn} - {"squared_relu_4"}
    assert len(usable) >= 2
