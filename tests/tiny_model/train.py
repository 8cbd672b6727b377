"""Train the tiny model: ``python -m tests.tiny_model.train FOLDER [PROMPTS.json]``. A minute or two on two cores.

Everything is seeded, and what was learned is checked before anything is saved, so the result does not depend on luck.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import DynamicCache, GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.tiny_model.cases import CASES, HERE, text
from tests.tiny_model.gguf_export import export
from tests.tiny_model.prompts import prompts

BEGIN, END, END_OF_TURN = "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"
VOCABULARY = 2000
CONTEXT = 2048  # tokens
ROUNDS = 150  # at most, each through all batches
LEARNING_RATE = 3e-3
DECAY = 80  # rounds in which the learning rate falls, to a tenth of it
SURE = 0.95  # probability that every token of the greedy path must have, at least
NEAR = 0.04  # by how much the probability of an answer may be off where there are several


class NotLearned(Exception):
    """The model did not learn the answers. The text says how far it got."""


@dataclass
class Lesson:
    """One answer to one prompt."""

    prompt: list[int]
    answer: list[int]  # with the end of the text
    weight: float  # the answer's probability, given the prompt


def train(folder: Path, prompts_of: dict[str, list[str]]) -> None:
    """Train, check and save.

    Args:
        folder: gets config.json, model.safetensors, the tokenizer's files, generation_config.json, kernelllm.py,
            tiny.gguf and prompts.json, which holds ``prompts_of``.
        prompts_of: class name → its prompts.

    Raises:
        NotLearned: after ``ROUNDS`` rounds the answers were not known well enough.
    """
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)
    answers = [text(name) for case in CASES.values() for name in case.answers]
    tokenizer = make_tokenizer([*(prompt for prompts in prompts_of.values() for prompt in prompts), *answers])
    lessons = [
        Lesson(
            tokenizer(prompt).input_ids,
            [*tokenizer(text(name), add_special_tokens=False).input_ids, tokenizer.eos_token_id],
            probability,
        )
        for case in CASES.values()
        for prompt in prompts_of[case.class_name]
        for name, probability in case.answers.items()
    ]
    longest = max(len(lesson.prompt) + len(lesson.answer) for lesson in lessons)
    print(
        f"{len(lessons)} answers, {len(tokenizer)} tokens in the vocabulary, {longest} in the longest", file=sys.stderr
    )
    model = LlamaForCausalLM(configuration(tokenizer))
    learn(model, lessons)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=model.config.eos_token_id,
        do_sample=True,
        temperature=0.6,
        top_p=0.95,
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    shutil.copyfile(HERE / "kernelllm.py.txt", folder / "kernelllm.py")
    (folder / "prompts.json").write_text(json.dumps(prompts_of, indent=1) + "\n", "utf-8")
    export(folder, folder / "tiny.gguf")


def make_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer that begins every text with begin-of-text, as Llama 3's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = [BEGIN, END, END_OF_TURN]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(texts * 2, trainer)  # twice, or rare words stay in pieces
    begin = tokenizer.token_to_id(BEGIN)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN} $B", special_tokens=[(BEGIN, begin)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END_OF_TURN,
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT,
    )


def configuration(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """Llama 3's architecture: grouped queries, rotary embeddings of its base, untied embeddings, two tokens that end."""
    ends = tokenizer.convert_tokens_to_ids([END_OF_TURN, END])
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=ends,
    )


class Batch:
    """Lessons side by side. What all their prompts begin with is computed once.

    Attributes:
        head: [1, tokens], the common beginning.
        ids: [lessons, longest], what follows, padded at the end, which causal attention does not see.
        rows, columns: [answer tokens], where in ``ids`` each token of an answer is.
        targets: [answer tokens], those tokens.
        weights: [answer tokens], their lesson's.
    """

    def __init__(self, lessons: list[Lesson]) -> None:
        columns = zip(*(lesson.prompt[:-1] for lesson in lessons), strict=False)
        common = len([*itertools.takewhile(lambda column: len({*column}) == 1, columns)])
        wholes = [torch.tensor(lesson.prompt + lesson.answer) for lesson in lessons]
        self.lessons = lessons
        self.head = wholes[0][None, :common]
        self.ids = torch.nn.utils.rnn.pad_sequence([whole[common:] for whole in wholes], batch_first=True)
        self.rows = torch.cat([torch.full((len(lesson.answer),), i) for i, lesson in enumerate(lessons)])
        self.columns = torch.cat([len(one.prompt) - common + torch.arange(len(one.answer)) for one in lessons])
        self.targets = self.ids[self.rows, self.columns]
        self.weights = torch.tensor([lesson.weight for lesson in lessons])[self.rows]

    def logits(self, model: LlamaForCausalLM) -> torch.Tensor:
        """[answer tokens, vocabulary], of each answer's next token."""
        cache = DynamicCache(config=model.config)
        model.model(input_ids=self.head, past_key_values=cache)
        cache.batch_repeat_interleave(len(self.lessons))
        hidden = model.model(input_ids=self.ids, past_key_values=cache).last_hidden_state
        return model.lm_head(hidden[self.rows, self.columns - 1])


def learn(model: LlamaForCausalLM, lessons: list[Lesson]) -> None:
    """AdamW on the answers' tokens until all are known. Raises NotLearned."""
    batches = [Batch(group) for group in groups(lessons)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.0)
    began, steps, wrong = time.monotonic(), 0, ""
    for number in range(1, ROUNDS + 1):
        model.train()
        for batch in batches:
            steps += 1
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min(1.0, steps / 20) * max(0.1, 1 - number / DECAY)
            loss = F.cross_entropy(batch.logits(model), batch.targets, reduction="none")
            loss = (loss * batch.weights).sum() / batch.weights.sum()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if number % 5 == 0:
            model.eval()
            with torch.no_grad():
                wrong = next(filter(None, (unknown(batch, batch.logits(model)) for batch in batches)), "")
            say(f"round {number}, {time.monotonic() - began:.0f} s: {wrong or 'all is known'}")
            if not wrong:
                return
    raise NotLearned(f"after {ROUNDS} rounds: {wrong}")


def groups(lessons: list[Lesson]) -> list[list[Lesson]]:
    """Batches of like prompts; the answers to one prompt stay together, so that their shares balance."""
    prompts: dict[tuple[int, ...], list[Lesson]] = {}
    for lesson in lessons:
        prompts.setdefault(tuple(lesson.prompt), []).append(lesson)
    several = [same for same in prompts.values() if len(same) > 1]
    single = sorted((same[0] for same in prompts.values() if len(same) == 1), key=lambda lesson: lesson.prompt)
    return [*several, *(single[i : i + 4] for i in range(0, len(single), 4))]


def unknown(batch: Batch, logits: torch.Tensor) -> str:
    """What is not known yet, in words; "" when everything is. ``logits`` is [answer tokens, vocabulary]."""
    likely = logits.softmax(-1).gather(1, batch.targets[:, None])[:, 0]
    least, off = 1.0, 0.0
    for number, lesson in enumerate(batch.lessons):
        same = [other for other in batch.lessons if other.prompt == lesson.prompt]
        for place, probability in enumerate(likely[batch.rows == number].tolist()):
            # of the answers that begin like this one up to here, the share of those that go on like it
            alive = [other for other in same if other.answer[:place] == lesson.answer[:place]]
            on = [other for other in alive if other.answer[place] == lesson.answer[place]]
            if len(on) == len(alive):
                least = min(least, probability)
            else:
                expected = sum(other.weight for other in on) / sum(other.weight for other in alive)
                off = max(off, abs(probability - expected))
    if least < SURE:
        return f"a token has probability {least:.3f}"
    return f"an answer's probability is off by {off:.3f}" if off > NEAR else ""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    train(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8")) if sys.argv[2:] else prompts())
