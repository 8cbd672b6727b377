"""Example inputs for blocks of convolutional networks, as the timm package has them. No weights are downloaded."""

import torch
from timm.layers import ScaledStdConv2d
from timm.models._efficientnet_blocks import InvertedResidual, UniversalInvertedResidual
from timm.models.convnext import ConvNeXtBlock
from timm.models.fastvit import RepMixerBlock
from timm.models.focalnet import FocalNetBlock
from timm.models.ghostnet import GhostBottleneck
from timm.models.inception_next import MetaNeXtBlock
from timm.models.mambaout import GatedConvBlock
from timm.models.metaformer import MetaFormerBlock
from timm.models.nfnet import NormFreeBlock
from timm.models.regnet import Bottleneck
from timm.models.res2net import Bottle2neck
from timm.models.resnest import ResNestBottleneck
from timm.models.sknet import SelectiveKernelBasic
from torch import nn

__all__ = [
    "Bottle2neck",
    "Bottleneck",
    "ConvNeXtBlock",
    "FocalNetBlock",
    "GatedConvBlock",
    "GhostBottleneck",
    "InvertedResidual",
    "MetaFormerBlock",
    "MetaNeXtBlock",
    "NormFreeBlock",
    "RepMixerBlock",
    "ResNestBottleneck",
    "SelectiveKernelBasic",
    "UniversalInvertedResidual",
]

BATCH = 32


def get_init_inputs_ConvNeXtBlock():
    return [192]


def get_inputs_ConvNeXtBlock():
    return [torch.randn(BATCH, 192, 28, 28)]


def get_init_inputs_InvertedResidual():
    """As in EfficientNet-B0, but without its squeeze and excitation."""
    return [[40, 40], {"dw_kernel_size": 5, "exp_ratio": 6.0, "act_layer": nn.SiLU}]


def get_inputs_InvertedResidual():
    return [torch.randn(BATCH, 40, 28, 28)]


def get_init_inputs_UniversalInvertedResidual():
    """As in MobileNetV4."""
    return [[160, 160], {"dw_kernel_size_start": 3, "dw_kernel_size_mid": 3, "exp_ratio": 4.0}]


def get_inputs_UniversalInvertedResidual():
    return [torch.randn(BATCH, 160, 14, 14)]


def get_init_inputs_Bottleneck():
    """Of a RegNetY, with squeeze and excitation."""
    return [[152, 152], {"group_size": 8}]


def get_inputs_Bottleneck():
    return [torch.randn(BATCH, 152, 14, 14)]


def get_init_inputs_GhostBottleneck():
    return [[24, 72, 40], {"dw_kernel_size": 5, "stride": 2, "se_ratio": 0.25}]


def get_inputs_GhostBottleneck():
    return [torch.randn(BATCH, 24, 56, 56)]


def get_init_inputs_ResNestBottleneck():
    return [[256, 64], {"radix": 2}]


def get_inputs_ResNestBottleneck():
    return [torch.randn(BATCH, 256, 56, 56)]


def get_init_inputs_Bottle2neck():
    return [[256, 64], {"base_width": 14, "scale": 8, "norm_layer": nn.BatchNorm2d}]


def get_inputs_Bottle2neck():
    return [torch.randn(BATCH, 256, 56, 56)]


def get_init_inputs_SelectiveKernelBasic():
    return [[64, 64], {"sk_kwargs": {"rd_ratio": 1 / 8, "rd_divisor": 16, "split_input": True}}]


def get_inputs_SelectiveKernelBasic():
    return [torch.randn(BATCH, 64, 56, 56)]


def get_init_inputs_NormFreeBlock():
    return [[512], {"act_layer": nn.SiLU, "conv_layer": ScaledStdConv2d}]


def get_inputs_NormFreeBlock():
    return [torch.randn(BATCH, 512, 28, 28)]


def get_init_inputs_MetaFormerBlock():
    """As in PoolFormer."""
    return [128]


def get_inputs_MetaFormerBlock():
    return [torch.randn(BATCH, 128, 28, 28)]


def get_init_inputs_MetaNeXtBlock():
    return [80]


def get_inputs_MetaNeXtBlock():
    return [torch.randn(BATCH, 80, 28, 28)]


def get_init_inputs_FocalNetBlock():
    return [[192], {"focal_level": 2}]


def get_inputs_FocalNetBlock():
    return [torch.randn(BATCH, 192, 28, 28)]


def get_init_inputs_GatedConvBlock():
    return [96]


def get_inputs_GatedConvBlock():
    """Channels last, as MambaOut keeps them."""
    return [torch.randn(BATCH, 28, 28, 96)]


def get_init_inputs_RepMixerBlock():
    return [96]


def get_inputs_RepMixerBlock():
    return [torch.randn(BATCH, 96, 28, 28)]
