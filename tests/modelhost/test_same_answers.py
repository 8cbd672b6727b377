"""The same weights give the same tokens, whichever way they are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.modelhost.conftest import Host, on_llama_cpp, on_server, on_transformers

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session")]

PROMPT = "class WorkerDied(UserError):\n    template ="
GREEDY = {"temperature": 0.0, "top_p": 0.95, "max_tokens": 150, "seed": 1}


async def test_greedy_answers_are_equal_through_all_three(host: Host, tiny_model, llama_server: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model[0])
    model = AutoModelForCausalLM.from_pretrained(tiny_model[0], dtype=torch.float32)
    ids = [tokenizer.bos_token_id, *tokenizer(PROMPT, add_special_tokens=False)["input_ids"]]
    whole = model.generate(torch.tensor([ids]), max_new_tokens=150, do_sample=False, pad_token_id=1)[0].tolist()
    expected = tokenizer.decode(whole[len(ids) :], skip_special_tokens=True)
    assert len(whole) - len(ids) > 20
    for load in (on_transformers(tiny_model), on_llama_cpp(tiny_model), on_server(llama_server)):
        await host.ask("load", **load)
        result = await host.ask("generate", prompt=f"\n<|begin_of_text|>{PROMPT}", samples=2, **GREEDY)
        assert [host.answers[i]["text"] for i in range(2)] == [expected, expected], load["backend"]
        assert host.said(0) == host.said(1) == expected
        assert result["tokens"] == sum(answer["tokens"] for answer in host.answers.values())
        assert result["tokens_per_second"] > 0


@pytest.mark.parametrize("load", [on_transformers, on_llama_cpp])
@pytest.mark.parametrize(
    "head", ["", "<|begin_of_text|>", "\n <|begin_of_text|>", "<|begin_of_text|><|begin_of_text|>"]
)
async def test_one_begin_of_text_reaches_the_model(host: Host, tiny_model, load, head: str) -> None:
    await host.ask("load", **load(tiny_model))
    ids = (await host.ask("tokenize", prompt=f"{head}def f(x):"))["ids"]
    assert ids == (await host.ask("tokenize", prompt="def f(x):"))["ids"]
    assert ids.count(0) == 1 and ids[0] == 0 and len(ids) > 3


async def test_chat_goes_through_the_models_own_template(host: Host, tiny_model, llama_server: str) -> None:
    messages = [{"role": "user", "content": "a kernel for x + 1"}]
    texts = {}
    for load in (on_transformers(tiny_model), on_llama_cpp(tiny_model)):
        assert (await host.ask("load", **load))["chat"]
        await host.ask("generate", messages=messages, samples=1, **GREEDY)
        texts[load["backend"]] = host.answers[0]["text"]
        written = "<|user|>\na kernel for x + 1<|eot_id|><|assistant|>\n"
        await host.ask("generate", prompt=written, samples=1, **GREEDY)
        assert host.answers[0]["text"] == texts[load["backend"]]
    assert texts["transformers"] == texts["llama-cpp"]
    await host.ask("load", **on_server(llama_server))
    await host.ask("generate", messages=messages, samples=1, **GREEDY)
    assert host.answers[0]["text"] == texts["llama-cpp"]


@pytest.mark.parametrize("load", [on_transformers, on_llama_cpp])
async def test_seeds_decide_and_are_recorded(host: Host, tiny_model, load) -> None:
    await host.ask("load", **load(tiny_model))
    warm = {"prompt": PROMPT, "temperature": 3.0, "top_p": 0.9, "max_tokens": 60}
    await host.ask("generate", samples=4, seed=10, **warm)
    first = host.answers
    assert [first[i]["seed"] for i in range(4)] == [10, 11, 12, 13]
    assert len({first[i]["text"] for i in range(4)}) == 4
    await host.ask("generate", samples=4, seed=10, **warm)
    assert host.answers == first
    await host.ask("generate", samples=1, seed=12, **warm)  # alone, as in the batch
    assert host.answers[0]["text"] == first[2]["text"]


async def test_samples_end_each_on_their_own(host: Host, tiny_model) -> None:
    await host.ask("load", **on_transformers(tiny_model))
    result = await host.ask("generate", prompt=PROMPT, samples=8, temperature=3.0, top_p=1.0, max_tokens=400, seed=3)
    answers = list(host.answers.values())
    assert {answer["finish"] for answer in answers} == {"stop", "length"}
    assert all((answer["tokens"] == 400) == (answer["finish"] == "length") for answer in answers)
    order = [name for name, _ in host.events]
    assert order.index("answer") < len(order) - 8, "an answer is told when it is complete, not at the end"
    assert result["tokens"] == sum(answer["tokens"] for answer in answers)
    for name, data in host.events:
        assert name != "progress" or data["samples"] == 8


@pytest.mark.parametrize("load", [on_transformers, on_llama_cpp])
async def test_a_prompt_beyond_the_context_is_refused_and_a_long_answer_is_cut(host: Host, tiny_model, load) -> None:
    assert (await host.ask("load", **load(tiny_model)))["context"] == 1024
    error = await host.error("generate", prompt="a ^ b ~ " * 400, samples=1, temperature=0, max_tokens=500)
    assert type(error).__name__ == "PromptTooLong" and "1024" in str(error)
    ids = (await host.ask("tokenize", prompt="a ^ b ~ " * 90))["ids"]
    await host.ask(
        "generate", prompt="a ^ b ~ " * 90, samples=1, temperature=0, max_tokens=5000, ignore_eos=True
    )  # fmt: skip
    assert host.answers[0]["tokens"] == 1024 - len(ids) and host.answers[0]["finish"] == "length"


@pytest.mark.parametrize("model_type", ["mistral", "qwen2", "qwen3", "gemma2"])
async def test_our_decode_loop_equals_generate_for_other_architectures(tmp_path: Path, model_type: str) -> None:
    """gemma2 has sliding windows: it runs with transformers' own cache."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from kernel_lsp.modelhost import building, decoding

    config = AutoConfig.for_model(
        model_type, vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, bos_token_id=0, eos_token_id=1, pad_token_id=2,
        **({"sliding_window": None} if model_type == "mistral" else {"sliding_window": 32}),
    )  # fmt: skip
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(tmp_path)
    plan = building.plan("random", tmp_path, torch.float32)
    model, fixed = building.build(plan, torch.device("cpu"), lambda fraction: None, lambda: None)
    assert fixed == (model_type != "gemma2")
    ids = list(range(5, 50))
    reference = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    expected = reference.generate(torch.tensor([ids]), max_new_tokens=40, min_new_tokens=40, do_sample=False)
    got: list[int] = []
    with torch.no_grad():
        for updates in decoding.generate(model, ids, decoding.Sampling([0], max_tokens=40), lambda: None, fixed):
            got += updates[0].ids
    assert got == expected[0, len(ids) :].tolist()
