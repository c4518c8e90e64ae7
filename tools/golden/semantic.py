# SPDX-License-Identifier: Apache-2.0
"""Fixtures of semantic segmenters: small random models of transformers with their outputs.

    tools/golden/semantic.py                        writes the fixtures
    tools/golden/semantic.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/semantic has for each model a folder with
  model.safetensors   the weights as f16, config.json, and preprocessor_config.json, as save_pretrained writes them,
  golden.safetensors  every third row and column of logits_N [h, w, classes], the model's output for image N of
                      tests/fixtures/depth, and of labels_N, the map at the image's size (transformers'
                      post_process_semantic_segmentation), 255 where the two best classes differ by less than 1e-3.
linear/windows.safetensors has labels_N from averaged windows, whose sizes its metadata has.
"linear" is a linear head with DINOv2's names in MMSegmentation on transformers' DINOv2.
"""

import copy
import itertools
import json
import zlib

import dense_common
import numpy
import safetensors.torch
import torch
import transformers
from dense_common import IMAGENET, STEP, images
from transformers.models.beit.image_processing_pil_beit import BeitImageProcessorPil
from transformers.models.dpt.image_processing_pil_dpt import DPTImageProcessorPil

ROOT = dense_common.FIXTURES / "semantic"
IGNORED = 255
LAST_LAYERS = ("decode_head.conv_seg", "decode_head.classifier", "head.head.4")
DINOV2 = dict(hidden_size=24, num_hidden_layers=4, num_attention_heads=3, image_size=70, patch_size=14)
LABELS = ["wall", "building", "sky", "floor", "tree", "ceiling", "road"]


class LinearSegmenter(torch.nn.Module):
    """DINOv2's linear heads: a batch normalisation and a 1x1 convolution on the patches of some layers."""

    def __init__(self, backbone, layers):
        super().__init__()
        self.backbone, self.layers = transformers.Dinov2Model(transformers.Dinov2Config(**backbone)), layers
        self.decode_head = torch.nn.Module()
        channels = len(layers) * backbone["hidden_size"]
        self.decode_head.bn = torch.nn.BatchNorm2d(channels)
        self.decode_head.conv_seg = torch.nn.Conv2d(channels, len(LABELS), 1)

    def forward(self, pixel_values):
        patch = self.backbone.config.patch_size
        rows, columns = (side // patch for side in pixel_values.shape[2:])
        hidden = self.backbone(pixel_values, output_hidden_states=True).hidden_states
        maps = [self.backbone.layernorm(hidden[layer + 1])[:, 1:].transpose(1, 2) for layer in self.layers]
        features = torch.cat(maps, 1).unflatten(2, (rows, columns))
        return self.decode_head.conv_seg(self.decode_head.bn(features))

    def save(self, folder):
        backbone, size = self.backbone.config, 98
        args = dict(
            img_size=backbone.image_size,
            patch_size=backbone.patch_size,
            embed_dim=backbone.hidden_size,
            depth=backbone.num_hidden_layers,
            num_heads=backbone.num_attention_heads,
            init_values=1.0,
            pos_interp={"antialias": False, "offset": 0},
        )
        config = {
            "architecture": "vit",
            "num_classes": 0,
            "model_args": args,
            "pretrained_cfg": {
                "input_size": [3, size, size],
                "interpolation": "bicubic",
                "mean": IMAGENET["image_mean"],
                "std": IMAGENET["image_std"],
            },
            "segmentation": {
                "head": "linear",
                "layers": self.layers,
                "batch_norm": True,
                "labels": LABELS,
                "size": [size, size],
                "keep_aspect_ratio": True,
                "multiple": backbone.patch_size,
            },
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        state = {name: value.contiguous() for name, value in self.half().state_dict().items()}
        safetensors.torch.save_file(state, folder / "model.safetensors")
        self.float()


def linear(backbone, layers):
    processor = dict(size={"height": 98, "width": 98}, keep_aspect_ratio=True, ensure_multiple_of=14, **IMAGENET)
    return dict(make=lambda: LinearSegmenter(backbone, layers), processor=lambda: DPTImageProcessorPil(**processor))


def sliding_logits(model, pixels, size, stride):
    """MMSegmentation's slide_inference with DINOv2's CenterPadding of each window, and the number of windows."""
    patch, sides = model.backbone.config.patch_size, pixels.shape[2:]
    starts = [
        [min(i * step, side - window) for i in range((side - window + step - 1) // step + 1)]
        for side, window, step in zip(sides, size, stride, strict=True)
    ]
    total, count = torch.zeros(1, len(LABELS), *sides).double(), torch.zeros(sides)
    for top, left in itertools.product(*starts):
        cell = (..., slice(top, top + size[0]), slice(left, left + size[1]))
        missing = [-side % patch for side in size[::-1]]  # the last axis first
        crop = torch.nn.functional.pad(pixels[cell], [part for m in missing for part in (m // 2, m - m // 2)])
        total[cell] += torch.nn.functional.interpolate(model(crop), size=size, mode="bilinear", align_corners=False)
        count[cell] += 1
    return total / count, len(starts[0]) * len(starts[1])


def write_windows(model):
    about = dict(size=[60, 60], window=dict(size=[44, 40], stride=[30, 25]), windows=[])
    golden = {}
    for i, image in enumerate(images()):
        scale = 60 / min(image.shape[:2])
        height, width = (round(scale * side) for side in image.shape[:2])
        processor = DPTImageProcessorPil(size=dict(height=height, width=width), **IMAGENET)
        pixels = processor(image, return_tensors="pt").pixel_values.double()
        with torch.no_grad():
            logits, windows = sliding_logits(copy.deepcopy(model).double(), pixels, **about["window"])
        about["windows"].append(windows)
        labels, margin = labels_at(logits, image)
        labels[margin < 1e-3] = IGNORED
        golden[f"labels_{i}"] = labels[::STEP, ::STEP].to(torch.uint8)
    dense_common.save_golden(ROOT / "linear", model, golden, "windows.safetensors", **about)


def classes(count):
    return dict(id2label=dict(enumerate((LABELS * 30)[:count])), label2id={})


def dpt(size, count=7, **config):
    processor = dict(IMAGENET, size={"height": size, "width": size}, keep_aspect_ratio=False, ensure_multiple_of=1)
    return dict(
        make=lambda: transformers.DPTForSemanticSegmentation(
            transformers.DPTConfig(image_size=size, **classes(count), **config)
        ),
        processor=lambda: DPTImageProcessorPil(**processor),
    )


def upernet(kind, size, count=7, **config):
    """UPerNet on BEiT or data2vec."""

    def make():
        made = getattr(transformers, f"{kind}Config")(image_size=size, **classes(count), **config)
        return getattr(transformers, f"{kind}ForSemanticSegmentation")(made)

    processor = dict(size={"height": size, "width": size}, do_center_crop=False)
    return dict(make=make, processor=lambda: BeitImageProcessorPil(**processor))


DPT_NECK = dict(neck_hidden_sizes=[8, 10, 12, 16], fusion_hidden_size=8)
VIT = dict(hidden_size=24, num_hidden_layers=4, num_attention_heads=3, intermediate_size=40)
BEIT = dict(
    VIT,
    hidden_size=16,
    num_hidden_layers=5,
    num_attention_heads=2,
    use_relative_position_bias=True,
    layer_scale_init_value=0.5,
)
MODELS = {
    "linear": linear(DINOV2, [1, 3]),
    "dpt": dpt(64, **VIT, **DPT_NECK, backbone_out_indices=[0, 1, 2, 3]),
    "dpt_norms": dpt(
        80,
        **VIT,
        **DPT_NECK,
        readout_type="add",
        use_batch_norm_in_fusion_residual=True,
        use_auxiliary_head=False,
        backbone_out_indices=[0, 1, 2, 3],
    ),
    "beit": upernet("Beit", 112, **BEIT, out_indices=[2, 3, 4, 5], auxiliary_channels=8),
    "data2vec": upernet("Data2VecVision", 80, **BEIT, out_indices=[2, 3, 4, 5], auxiliary_channels=8),
}
PUBLISHED = {
    "linear_small": linear(dict(DINOV2, hidden_size=384, num_attention_heads=6, num_hidden_layers=12), [8, 9, 10, 11]),
    "dpt_base": dpt(480, count=150, backbone_out_indices=[2, 5, 8, 11]),
    "beit_base": upernet(
        "Beit", 640, count=150, use_relative_position_bias=True, out_indices=[4, 6, 8, 12], use_auxiliary_head=False
    ),
}


def drawn(model, name):
    """Matrices with gain 1, norms and LayerScale near 1, everything else, biases and positions as well, not 0."""
    norms = {
        f"{path}.{key}"
        for path, module in model.named_modules()
        for key, value in module.named_parameters(recurse=False)
        if value.dim() == 1 and ("Norm" in type(module).__name__ or "lambda" in key) and key != "bias"
    }

    def scaled(key, parameter, values):
        if key in norms or "lambda" in key:
            return 1 + 0.3 * values
        if parameter.dim() >= 2 and key.endswith("weight"):
            transposed = key.startswith(("fpn", "neck.reassemble")) and "projection" not in key
            return values / (parameter.numel() / parameter.shape[1 if transposed else 0]) ** 0.5
        return 0.3 * values

    return dense_common.draw_parameters(model, zlib.crc32(name.encode()), scaled)


def model_of(name, spec):
    """A model that finds all classes: the mean of each one's logits is 0."""
    model = drawn(spec["make"](), name)
    heads = [module for path, module in model.named_modules() if path.endswith(LAST_LAYERS)]
    logits = outputs_of(model, spec["processor"](), images()[0])[0]
    with torch.no_grad():
        heads[0].bias.copy_((heads[0].bias - logits.mean((1, 2))).half())
    return model


def save(folder, model, spec):
    if hasattr(model, "save"):
        model.save(folder)
    else:
        dense_common.save(folder, model, spec["processor"]())


def labels_at(logits, image):
    large = torch.nn.functional.interpolate(logits, size=image.shape[:2], mode="bilinear", align_corners=False)[0]
    best = large.topk(2, 0).values
    return large.argmax(0), best[0] - best[1]


def outputs_of(model, processor, image):
    """The logits [classes, h, w] in float64, the classes at the image's size, and how far the two best are apart."""
    pixels = processor(image, return_tensors="pt").pixel_values
    with torch.no_grad():
        out = copy.deepcopy(model).double()(pixels.double())
    logits = out if torch.is_tensor(out) else out.logits
    return logits[0], *labels_at(logits, image)


def write_fixture(name, spec):
    model, processor = model_of(name, spec), spec["processor"]()
    save(ROOT / name, model, spec)
    golden = {}
    for i, image in enumerate(images()):
        logits, labels, margin = outputs_of(model, processor, image)
        counts = torch.bincount(labels.flatten(), minlength=logits.shape[0]).tolist()
        print(f"{name} {i}: {tuple(logits.shape)}, pixels by class {counts}")
        golden[f"logits_{i}"] = logits.permute(1, 2, 0)[::STEP, ::STEP].float()
        labels[margin < 1e-3] = IGNORED
        golden[f"labels_{i}"] = labels[::STEP, ::STEP].to(torch.uint8)
    dense_common.save_golden(ROOT / name, model, golden)
    if name == "linear":
        write_windows(model)


def check(program, root, name, spec):
    """Compares the program's label maps with those of transformers."""
    model, processor = model_of(name, spec), spec["processor"]()
    save(root / "model", model, spec)
    files = dense_common.write_images(root, images())
    dense_common.run_program(program, "segment", "-m", root / "model", "--arrays", root / "out", *files)
    for i, image in enumerate(images()):
        _, want, margin = outputs_of(model, processor, image)
        got = numpy.load(root / "out" / f"{i}.npy")
        other = got != want.numpy()
        worst = margin.numpy()[other].max() if other.any() else 0
        print(
            f"{name} {i}: {got.shape}, {other.sum()} pixels differ, whose best classes are {worst:.1e} apart",
            flush=True,
        )
        assert worst < 1e-3


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
