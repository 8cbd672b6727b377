"""Blocks of timm's models and layers of transformers' models, with the inputs that their own model gives them.

Nothing is downloaded: models are constructed from configurations, and their parameters are random. A row names a model, the module inside
of it, and what makes the model small. The model runs until that module is called; what it is called with are the example inputs.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Block:
    """``small`` and ``large`` are arguments of the model: where a kernel is interpreted, and where it is timed."""

    package: str  # "timm" or "transformers"
    model: str  # timm's name of it, or "llama.Llama": the folder of transformers' models, and the prefix of its classes
    path: str  # of the module in it
    small: dict[str, Any] = field(default_factory=dict)
    large: dict[str, Any] = field(default_factory=dict)
    image: tuple[int, int] = (0, 0)  # height of images, small and large; 0: tokens
    suffix: str = "Model"  # of transformers' class
    given: str = "input_ids"  # what transformers' model calls its input

    @property
    def name(self) -> str:
        return self.model if self.package == "timm" else self.model.partition(".")[0]


def _timm(model: str, path: str, small: int = 64, large: int = 224, **more: Any) -> Block:
    return Block("timm", model, path, more, more, (small, large))


def _sized(model: str, path: str, small: int, large: int = 224, **more: Any) -> Block:
    """A model that is made for one size of image."""
    return Block("timm", model, path, more | {"img_size": small}, more | {"img_size": large}, (small, large))


TIMM = [
    _timm("convnext_atto", "stages.1.blocks.0"),
    _sized("vit_tiny_patch16_224", "blocks.0", 64),
    _sized("swin_tiny_patch4_window7_224", "layers.0.blocks.1", 56),
    _timm("efficientnet_b0", "blocks.2.1"),
    _timm("regnety_002", "s2.b1"),
    _sized("mixer_s32_224", "blocks.0", 96),
    _timm("poolformer_s12", "stages.1.blocks.0"),
    _sized("coatnet_nano_rw_224", "stages.2.blocks.1", 64),
    _timm("ghostnet_100", "blocks.3.0"),
    _timm("mobilenetv3_small_050", "blocks.2.1"),
    _timm("mobilenetv4_hybrid_medium", "blocks.3.3"),
    _timm("resnest14d", "layer2.0"),
    _sized("eva02_tiny_patch14_224", "blocks.0", 56),
    _timm("davit_tiny", "stages.1.blocks.0.0"),
    _sized("maxvit_rmlp_pico_rw_256", "stages.1.blocks.1", 64, 256),
    _timm("focalnet_tiny_srf", "layers.1.blocks.0"),
    _timm("inception_next_atto", "stages.1.blocks.0"),
    _timm("hrnet_w18_small", "stage2.0"),
    _timm("xcit_nano_12_p16_224", "blocks.0"),
    _timm("pvt_v2_b0", "stages.1.blocks.0"),
    _sized("swinv2_tiny_window8_256", "layers.1.blocks.1", 64, 256),
    _sized("cait_xxs24_224", "blocks.0", 64),
    _timm("res2net50_14w_8s", "layer2.1"),
    _sized("volo_d1_224", "network.0.0", 64),
    _timm("nfnet_l0", "stages.1.1"),
    _sized("hiera_tiny_224", "blocks.1", 224),
    _timm("mambaout_femto", "stages.1.blocks.0"),
    _timm("fastvit_t8", "stages.1.blocks.0"),
    _timm("edgenext_xx_small", "stages.1.blocks.1"),
    _timm("mobilevitv2_050", "stages.2.1"),
    _timm("efficientvit_b0", "stages.2.blocks.1"),
    _timm("tiny_vit_5m_224", "stages.1.blocks.0"),
    _sized("convit_tiny", "blocks.0", 64),
    _timm("densenet121", "features.denseblock2"),
    _timm("skresnet18", "layer2.0"),
    _timm("starnet_s1", "stages.1.0"),
    _timm("halonet26t", "stages.2.1", 128, 256),
    _timm("lambda_resnet26t", "stages.2.1", 128, 256),
    _timm("gcresnet33ts", "stages.1.1"),
    _timm("ecaresnet26t", "layer2.0"),
]

_SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 99,
}
_LARGE = {"hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 32, "num_hidden_layers": 2}
_BERT_LARGE = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 2}


def _layer(model: str, path: str = "layers.0", *, grouped: bool = False, suffix: str = "Model", **more: Any) -> Block:
    small = _SMALL | ({"num_key_value_heads": 2} if grouped else {}) | more
    large = _LARGE | ({"num_key_value_heads": 8} if grouped else {}) | more
    return Block("transformers", model, path, small, large, suffix=suffix)


def _encoder(model: str, path: str = "encoder.layer.0", **more: Any) -> Block:
    return Block("transformers", model, path, _SMALL | more, _BERT_LARGE | more)


def _own(model: str, path: str, small: dict[str, Any], large: dict[str, Any], **more: Any) -> Block:
    """Where the configuration's names are its own."""
    return Block("transformers", model, path, small, large, **more)


def _vision(model: str, path: str, small: dict[str, Any], large: dict[str, Any], **more: Any) -> Block:
    return Block("transformers", model, path, small, large, (64, 224), given="pixel_values", **more)


TRANSFORMERS = [
    _layer("llama.Llama", grouped=True),
    _layer("mistral.Mistral", grouped=True, sliding_window=8),
    _layer("qwen2.Qwen2", grouped=True),
    _layer("qwen3.Qwen3", grouped=True, head_dim=16),
    _layer("gemma2.Gemma2", grouped=True, head_dim=16),
    _layer("gemma3.Gemma3", grouped=True, head_dim=16, suffix="TextModel"),
    _layer("phi3.Phi3", grouped=True, pad_token_id=0, eos_token_id=1, bos_token_id=1),
    _own("gpt2.GPT2", "h.0", {"n_embd": 64, "n_head": 4, "n_layer": 1}, {"n_layer": 1}),
    _layer("gpt_neox.GPTNeoX"),
    _encoder("bert.Bert"),
    _encoder("roberta.Roberta"),
    _encoder("deberta_v2.DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16),
    _own(
        "t5.T5",
        "encoder.block.0",
        {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_heads": 4, "num_layers": 1},
        {"num_layers": 1},
        suffix="EncoderModel",
    ),
    _own("mamba.Mamba", "layers.0", {"hidden_size": 32, "num_hidden_layers": 1}, {"num_hidden_layers": 1}),
    _own(
        "mamba2.Mamba2",
        "layers.0",
        {"hidden_size": 32, "num_hidden_layers": 1, "num_heads": 4, "head_dim": 16, "n_groups": 2, "chunk_size": 8},
        {"num_hidden_layers": 1, "num_heads": 32, "head_dim": 64, "hidden_size": 1024},
    ),
    _layer("mixtral.Mixtral", grouped=True, num_local_experts=4),
    _layer("falcon.Falcon", "h.0"),
    _own(
        "bloom.Bloom",
        "h.0",
        {"hidden_size": 64, "n_head": 4, "n_layer": 1},
        {"hidden_size": 1024, "n_head": 16, "n_layer": 1},
    ),
    _own(
        "opt.OPT",
        "decoder.layers.0",
        {"hidden_size": 64, "ffn_dim": 96, "num_attention_heads": 4, "num_hidden_layers": 1, "word_embed_proj_dim": 64},
        {"num_hidden_layers": 1},
    ),
    _own(
        "whisper.Whisper",
        "encoder.layers.0",
        {"d_model": 64, "encoder_attention_heads": 4, "encoder_ffn_dim": 96, "encoder_layers": 1, "decoder_layers": 1}
        | {"max_source_positions": 32, "decoder_attention_heads": 4, "decoder_ffn_dim": 96},
        {"encoder_layers": 1, "decoder_layers": 1},
        given="input_features",
    ),
    _vision(
        "clip.CLIP", "encoder.layers.0", _SMALL | {"image_size": 64}, {"num_hidden_layers": 1}, suffix="VisionModel"
    ),
    _vision("vit.ViT", "layers.0", _SMALL | {"image_size": 64}, _BERT_LARGE),
    _vision("swin.Swin", "encoder.layers.0.blocks.1", {"embed_dim": 24, "image_size": 64, "window_size": 4}, {}),
    _encoder("convbert.ConvBert", embedding_size=64),
    _own(
        "rwkv.Rwkv",
        "blocks.0",
        {"hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 2},
        {"num_hidden_layers": 2, "hidden_size": 1024},
    ),
    _layer("olmo2.Olmo2", grouped=True),
    _layer("cohere.Cohere", grouped=True),
    _layer("stablelm.StableLm", grouped=True),
    _layer("glm.Glm", grouped=True, head_dim=16, pad_token_id=0),
    _encoder(
        "modernbert.ModernBert",
        "layers.0",
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
        cls_token_id=1,
        sep_token_id=1,
    ),
    _encoder("albert.Albert", "encoder.albert_layer_groups.0", embedding_size=32),
    _own(
        "distilbert.DistilBert",
        "transformer.layer.0",
        {"dim": 64, "hidden_dim": 96, "n_heads": 4, "n_layers": 1},
        {"n_layers": 1},
    ),
    _own("fnet.FNet", "encoder.layer.0", _SMALL, _BERT_LARGE),
    _own("xlnet.XLNet", "layer.0", {"d_model": 64, "n_layer": 1, "n_head": 4, "d_inner": 96}, {"n_layer": 1}),
    _layer(
        "qwen3_moe.Qwen3Moe", grouped=True, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32
    ),
    _layer(
        "deepseek_v3.DeepseekV3",
        "layers.1",
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
        first_k_dense_replace=2,
        q_lora_rank=32,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=16,
        num_key_value_heads=4,
    ),
    _vision("dinov2.Dinov2", "encoder.layer.0", _SMALL | {"image_size": 56, "patch_size": 14}, _BERT_LARGE),
    _vision("segformer.Segformer", "stages.1.blocks.0", {}, {}),
]

BLOCKS = [*TIMM, *TRANSFORMERS]


class _Called(Exception):
    """Ends the model's forward."""


def _model(block: Block, arguments: dict[str, Any]) -> nn.Module:
    if block.package == "timm":
        import timm

        return timm.create_model(block.model, pretrained=False, **arguments)
    folder, prefix = block.model.split(".")
    configuration = importlib.import_module(f"transformers.models.{folder}.configuration_{folder}")
    kind = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    kind = getattr(kind, f"{prefix}{block.suffix}")
    chosen = getattr(configuration, kind.config_class.__name__)(**arguments)
    return kind(chosen)


def _input(block: Block, model: nn.Module, small: bool, batch: int) -> dict[str, torch.Tensor]:
    if block.given == "input_features":
        return {"input_features": torch.randn(batch, 80, 2 * model.config.max_source_positions)}
    if block.image[0]:
        height = block.image[0 if small else 1]
        return {"x" if block.package == "timm" else block.given: torch.randn(batch, 3, height, height)}
    return {block.given: torch.randint(2, 90, (batch, 20 if small else 1024))}


def built(block: Block, *, small: bool) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """The module with random parameters, and the arguments and keyword arguments that its model calls it with."""
    torch.manual_seed(0)
    model = _model(block, block.small if small else block.large).eval()
    module = model.get_submodule(block.path)
    found: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def called(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found.append((args, kwargs))
        raise _Called

    module.register_forward_pre_hook(called, with_kwargs=True)
    given = _input(block, model, small, 2 if small else 16)
    if block.package == "transformers" and hasattr(model.config, "use_cache"):
        given["use_cache"] = False
    try:
        with torch.no_grad():
            model(**given) if block.package == "transformers" else model(given["x"])
    except _Called:
        pass
    module._forward_pre_hooks.clear()
    module._forward_pre_hooks_with_kwargs.clear()
    with torch.no_grad():  # what begins as zero or one would hide errors
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        for name, buffer in module.named_buffers():
            if "running" in name:
                buffer += torch.rand_like(buffer)
    ((args, kwargs),) = found
    return module, args, kwargs
