# SPDX-License-Identifier: Apache-2.0
"""PyTorch: eager, compiled by Inductor, and with AMD's zentorch."""

import torch

from runtimes import Unsupported, calibration_images


def in_precision(model, images, precision):
    if precision == "half":
        return model.bfloat16(), images.bfloat16()
    if precision == "int8":
        return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8), images
    return model, images


def eager(model, _name, images, precision):
    model, images = in_precision(model, images, precision)
    return lambda: model(images)


def compiled(model, _name, images, precision):
    from torch._inductor import config

    config.freezing = True
    model, images = in_precision(model, images, precision)
    model = torch.compile(model)
    return lambda: model(images)


def quantized_by_pt2e(model, images):
    """Static int8 for Inductor, with a scale per channel of weights."""
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, (images,)).module(), quantizer)
    for batch in calibration_images(images):
        prepared(batch)
    converted = convert_pt2e(prepared)
    move_exported_model_to_eval(converted)
    return converted


def tuned(model, _name, images, precision):
    """max-autotune behind a wrapper in C++; int8 is static."""
    from torch._inductor import config

    config.freezing = config.cpp_wrapper = True
    if precision == "int8":
        model = quantized_by_pt2e(model, images)
    else:
        model, images = in_precision(model, images, precision)
    model = torch.compile(model, mode="max-autotune")
    return lambda: model(images)


def zentorch(model, _name, images, precision):
    import zentorch  # noqa: F401  registers the back end

    if precision == "int8":
        raise Unsupported("zentorch: int8 needs a model that Quark quantised")
    model, images = in_precision(model, images, precision)
    model = torch.compile(model, backend="zentorch")
    return lambda: model(images)
