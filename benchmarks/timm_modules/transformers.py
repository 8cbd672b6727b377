"""Example inputs for blocks of vision transformers, as the timm package has them. No weights are downloaded."""

import torch
from timm.models.cait import LayerScaleBlock
from timm.models.convit import GPSA
from timm.models.davit import SpatialBlock
from timm.models.edgenext import SplitTransposeBlock
from timm.models.efficientvit_mit import EfficientVitBlock
from timm.models.eva import EvaBlock
from timm.models.mlp_mixer import MixerBlock
from timm.models.mobilevit import MobileVitV2Block
from timm.models.pvt_v2 import Block as PyramidBlock
from timm.models.swin_transformer import SwinTransformerBlock
from timm.models.vision_transformer import Block
from timm.models.volo import Outlooker

__all__ = [
    "GPSA",
    "Block",
    "EfficientVitBlock",
    "EvaBlock",
    "LayerScaleBlock",
    "MixerBlock",
    "MobileVitV2Block",
    "Outlooker",
    "PyramidBlock",
    "SpatialBlock",
    "SplitTransposeBlock",
    "SwinTransformerBlock",
]

BATCH = 32


def get_init_inputs_Block():
    """Of ViT-S/16."""
    return [[384, 6], {"qkv_bias": True, "init_values": 1e-5}]


def get_inputs_Block():
    return [torch.randn(BATCH, 197, 384)]


def get_init_inputs_SwinTransformerBlock():
    """Of Swin-T, with shifted windows."""
    return [[96, (56, 56)], {"num_heads": 3, "window_size": 7, "shift_size": 3}]


def get_inputs_SwinTransformerBlock():
    return [torch.randn(BATCH, 56, 56, 96)]


def get_init_inputs_MixerBlock():
    return [512, 196]


def get_inputs_MixerBlock():
    return [torch.randn(BATCH, 196, 512)]


def get_init_inputs_EvaBlock():
    return [[192, 3], {"swiglu_mlp": True}]


def get_inputs_EvaBlock():
    """With the sines and cosines of its rotary embedding."""
    return [[torch.randn(BATCH, 257, 192)], {"rope": torch.randn(256, 128)}]


def get_init_inputs_SpatialBlock():
    return [192, 6]


def get_inputs_SpatialBlock():
    return [torch.randn(BATCH, 192, 28, 28)]


def get_init_inputs_PyramidBlock():
    return [[64, 2], {"sr_ratio": 4, "qkv_bias": True}]


def get_inputs_PyramidBlock():
    return [torch.randn(BATCH, 784, 64), (28, 28)]


def get_init_inputs_LayerScaleBlock():
    return [[192, 4], {"qkv_bias": True}]


def get_inputs_LayerScaleBlock():
    return [torch.randn(BATCH, 196, 192)]


def get_init_inputs_Outlooker():
    return [[192, 3, 1], {"stride": 2, "num_heads": 6}]


def get_inputs_Outlooker():
    return [torch.randn(BATCH, 28, 28, 192)]


def get_init_inputs_SplitTransposeBlock():
    return [[48], {"num_scales": 2, "num_heads": 4}]


def get_inputs_SplitTransposeBlock():
    return [torch.randn(BATCH, 48, 28, 28)]


def get_init_inputs_MobileVitV2Block():
    return [[128], {"bottle_ratio": 0.5, "transformer_depth": 2, "patch_size": 2}]


def get_inputs_MobileVitV2Block():
    return [torch.randn(BATCH, 128, 28, 28)]


def get_init_inputs_EfficientVitBlock():
    return [[64], {"head_dim": 16}]


def get_inputs_EfficientVitBlock():
    return [torch.randn(BATCH, 64, 14, 14)]


def get_init_inputs_GPSA():
    return [[192], {"num_heads": 4}]


def get_inputs_GPSA():
    return [torch.randn(BATCH, 196, 192)]
