# SPDX-License-Identifier: Apache-2.0
"""Fixtures of ViTMatte: small random models of transformers with their outputs.

    tools/golden/vitmatte.py                        writes the fixtures
    tools/golden/vitmatte.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/vitmatte has trimaps.safetensors, trimap_N [H, W] u8 of the images of depth.py, and for each model a
folder with
  model.safetensors   the weights as f16, config.json, preprocessor_config.json, as save_pretrained writes them,
  golden.safetensors  every third row and column of alpha_N.
"""

import copy
import zlib

import dense_common
import numpy
import safetensors.torch
import torch
import transformers
from dense_common import STEP, images
from transformers.models.vitmatte.image_processing_pil_vitmatte import VitMatteImageProcessorPil

ROOT = dense_common.FIXTURES / "vitmatte"
VITDET = dict(num_channels=4, use_relative_position_embeddings=True, layer_norm_eps=1e-6)


def model_spec(backbone, processor=None, **config):
    backbone = dict(VITDET, out_features=[f"stage{backbone['num_hidden_layers']}"], **backbone)
    return dict(backbone=backbone, config=dict(config, hidden_size=backbone["hidden_size"]), processor=processor or {})


MODELS = {
    # Windows that do not divide the grid, tables of another length than the grid's, positions of another grid.
    "windows": model_spec(
        dict(
            hidden_size=24,
            num_hidden_layers=4,
            num_attention_heads=3,
            mlp_ratio=2,
            image_size=96,
            pretrain_image_size=64,
            window_size=3,
            window_block_indices=[0, 2],
            residual_block_indices=[1, 3],
        ),
        convstream_hidden_sizes=[6, 8, 10],
        fusion_hidden_sizes=[16, 12, 8, 6],
    ),
    # Patches of 8, three fusions, no bias of q, k, v, ImageNet's statistics and another padding.
    "patch8": model_spec(
        dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            mlp_ratio=3,
            qkv_bias=False,
            patch_size=8,
            image_size=64,
            pretrain_image_size=64,
        ),
        dict(size_divisor=24, **dense_common.IMAGENET),
        convstream_hidden_sizes=[6, 8],
        fusion_hidden_sizes=[12, 8, 6],
        batch_norm_eps=1e-3,
    ),
}
# Published configurations, for --check.
PUBLISHED = {
    name: model_spec(
        dict(
            hidden_size=dim,
            num_hidden_layers=12,
            num_attention_heads=dim // 64,
            image_size=512,
            pretrain_image_size=224,
            window_size=14,
            window_block_indices=[0, 1, 3, 4, 6, 7, 9, 10],
            residual_block_indices=[2, 5, 8, 11],
        ),
        convstream_hidden_sizes=[48, 96, 192],
        fusion_hidden_sizes=[256, 128, 64, 32],
    )
    for name, dim in (("small", 384), ("base", 768))
}


def trimaps():
    """A disc of foreground with an unknown ring around it."""
    result = []
    for height, width in dense_common.SIZES:
        y, x = numpy.mgrid[:height, :width]
        distance = numpy.hypot(y - height * 0.45, x - width * 0.55) / min(height, width)
        result.append(numpy.select([distance < 0.2, distance < 0.4], [255, 128], 0).astype(numpy.uint8))
    return result


def scaled(key, parameter, values):
    """Matrices and convolutions with gain 1 behind a relu, norms near 1, everything else not 0."""
    if "norm" in key or "matting_convs.1." in key:
        return (1 if key.endswith("weight") else 0) + 0.3 * values
    if parameter.dim() >= 2 and key.endswith("weight"):
        return values * (2 / (parameter.numel() / parameter.shape[0])) ** 0.5
    return 0.3 * values


def processor_of(spec):
    return VitMatteImageProcessorPil(**spec["processor"])


def model_of(name, spec):
    config = transformers.VitMatteConfig(
        backbone_config=transformers.VitDetConfig(**spec["backbone"]).to_dict(), **spec["config"]
    )
    model = transformers.VitMatteForImageMatting(config)
    dense_common.draw_parameters(model, zlib.crc32(name.encode()), scaled)
    last = model.decoder.matting_head.matting_convs[3]
    inputs = processor_of(spec)(images()[0], trimaps()[0], return_tensors="pt")
    hidden = dense_common.output_of(last, lambda: model(**inputs))
    with torch.no_grad():  # alpha around a half
        last.weight /= hidden.std() / 2
        last.bias.copy_(-(hidden - last.bias).mean() * 2 / hidden.std())
        last.weight.copy_(last.weight.half())
        last.bias.copy_(last.bias.half())
    return model


def alpha_of(model, processor, image, trimap):
    pixels = processor(image, trimap, return_tensors="pt").pixel_values
    with torch.no_grad():
        alpha = model.double()(pixels.double()).alphas[0, 0]
    return alpha[: image.shape[0], : image.shape[1]]


def write_fixture(name, spec):
    ROOT.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(
        {f"trimap_{i}": torch.tensor(trimap) for i, trimap in enumerate(trimaps())}, ROOT / "trimaps.safetensors"
    )
    model, processor = model_of(name, spec), processor_of(spec)
    dense_common.save(ROOT / name, model, processor)
    golden = {}
    for i, (image, trimap) in enumerate(zip(images(), trimaps(), strict=True)):
        alpha = alpha_of(copy.deepcopy(model), processor, image, trimap)
        print(f"{name} {i}: {tuple(alpha.shape)}, {alpha.min():.3g} to {alpha.max():.3g}, std {alpha.std():.3g}")
        golden[f"alpha_{i}"] = alpha[::STEP, ::STEP].float()
    dense_common.save_golden(ROOT / name, model, golden)


def check(program, root, name, spec):
    """Compares the program's alpha with that of transformers, for files in f16 and in shards."""
    model, processor = model_of(name, spec), processor_of(spec)
    dense_common.save(root / "f16", model, processor)
    model.save_pretrained(root / "shards", max_shard_size="20KB" if name in MODELS else "40MB")
    processor.save_pretrained(root / "shards")
    dense_common.write_images(root / "images", images())
    dense_common.write_images(root / "trimaps", trimaps())
    wanted = [
        alpha_of(copy.deepcopy(model), processor, image, trimap).numpy()
        for image, trimap in zip(images(), trimaps(), strict=True)
    ]
    for file in ("f16", "shards"):
        command = [program, "matte", "-m", root / file, "--arrays", root / "out", "--force", root / "images"]
        dense_common.run_program(*command, "--trimap", root / "trimaps")
        for i, want in enumerate(wanted):
            got = numpy.load(root / "out" / f"{i}.npy")
            error = abs(got - want).max()
            print(f"{name} {file} {i}: {got.shape}, alpha differs by {error:.1e}", flush=True)
            assert got.shape == want.shape and error < 1e-4


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
