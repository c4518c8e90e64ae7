# SPDX-License-Identifier: Apache-2.0
"""Fixtures of ViTPose: small random models of transformers with their outputs.

    tools/golden/vitpose.py                        writes the fixtures
    tools/golden/vitpose.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/vitpose has for each model a folder with
  model.safetensors   the weights as f16, without those of `generated`, config.json, preprocessor_config.json,
  golden.safetensors  for the boxes of the images of tests/fixtures/depth/images.safetensors, all in one list: crops,
                      the bytes of the processor; heatmaps of data set 0; keypoints_N of each data set's expert: x, y,
                      score, whether it is stable; and flipped, the key points of data set 0 with the mirror image,
  and boxes.json      COCO's annotations with the boxes.
"""

import copy
import json
import subprocess
import types
import zlib

import dense_common
import numpy
import torch
import transformers
from dense_common import images
from transformers.models.vitpose.image_processing_pil_vitpose import VitPoseImageProcessorPil

ROOT = dense_common.FIXTURES / "vitpose"
NAMES = ("Nose", "L_Eye", "R_Eye", "left ear", "right ear")
BOXES = ([[30.5, 20.25, 60, 120.75], [-10, 50, 90.5, 60], [90, 150, 80, 80]], [[3, 4, 140, 20]])  # for each image
SMALL = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, mlp_ratio=2, image_size=[64, 48])


def spec(experts=1, head=None, **backbone):
    return dict(experts=experts, head=head or {}, backbone=backbone)


MODELS = {
    "simple": spec(**SMALL, patch_size=[8, 8]),
    "classic": spec(**SMALL, patch_size=[16, 16], head=dict(use_simple_decoder=False)),
    "experts": spec(**SMALL, patch_size=[8, 8], experts=3, num_experts=3, part_features=10, hidden_act="relu"),
}
# Configurations of published sizes, for --check.
PUBLISHED = {
    "base_simple": spec(),
    "base": spec(head=dict(use_simple_decoder=False)),
    "plus_small": spec(
        hidden_size=384, experts=6, num_experts=6, part_features=96, head=dict(use_simple_decoder=False)
    ),
}


def generated(key, shape):
    """The values of large weights, which the test computes too; None: they are in the file."""
    if not key.startswith("head.deconv"):
        return None
    index = numpy.arange(numpy.prod(shape), dtype=numpy.uint64)
    noise = (index * 2654435761 % 2**32).astype(numpy.float64) / 2**32 - 0.5
    return torch.tensor(3 * noise / (shape[0] ** 0.5)).reshape(shape).half().float()


def scaled(key, parameter, values):
    """Matrices with gain 1, norms near 1, positions not 0, and heat maps above 0, whose logarithms are smooth."""
    if (fixed := generated(key, parameter.shape)) is not None:
        return fixed
    if "norm" in key:
        return (1 if key.endswith("weight") else 0) + 0.3 * values
    if key == "head.conv.bias":
        return 2 + 0.3 * values
    if parameter.dim() >= 2 and key.endswith("weight"):
        return values / (parameter.numel() / parameter.shape[0]) ** 0.5
    return 0.3 * values


def model_of(spec, seed):
    backbone = transformers.VitPoseBackboneConfig(**spec["backbone"], out_indices=[-1])
    names = NAMES
    if "image_size" not in spec["backbone"]:
        names = ["Nose", *(f"{side}{i}" for i in range(8) for side in ("L_", "R_"))]
    config = transformers.VitPoseConfig(backbone_config=backbone, id2label=dict(enumerate(names)), **spec["head"])
    if len(names) == len(NAMES):
        config.edges = [[0, 1], [0, 2], [1, 3], [2, 4]]
    height, width = backbone.image_size
    processor = VitPoseImageProcessorPil(size=dict(height=height, width=width))
    return dense_common.draw_parameters(transformers.VitPoseForPoseEstimation(config), seed, scaled), processor


def heat_maps(model, pixels, dataset, dtype, pairs=None):
    index = torch.full((len(pixels),), dataset) if model.config.backbone_config.num_experts > 1 else None
    with torch.no_grad():
        return copy.deepcopy(model).to(dtype)(pixels.to(dtype), dataset_index=index, flip_pairs=pairs).heatmaps


def keypoints(processor, maps, boxes):
    """[boxes, K, 3]: x, y, score."""
    found = processor.post_process_pose_estimation(types.SimpleNamespace(heatmaps=maps.double()), boxes=[boxes])[0]
    return torch.stack([torch.cat([each["keypoints"], each["scores"][:, None]], 1) for each in found]).double()


def pairs_of(names):
    other = [name.translate(str.maketrans("LR", "RL")) if name[:2] in ("L_", "R_") else name for name in names]
    other = [name.replace("left", "?").replace("right", "left").replace("?", "right") for name in other]
    return torch.tensor([[i, names.index(name)] for i, name in enumerate(other) if names.index(name) > i])


def pixels_of(processor, samples, boxes):
    pairs = zip(samples, boxes, strict=True)
    return torch.cat([processor(image, boxes=[b], return_tensors="pt").pixel_values for image, b in pairs])


def stable(processor, maps, boxes):
    """Whether each key point stays within 5e-3 pixels where the maps change by 1e-5."""
    noise = torch.randn(maps.shape, generator=torch.Generator().manual_seed(1)) * 1e-5
    moved = keypoints(processor, maps * (1 + noise), boxes) - keypoints(processor, maps, boxes)
    return moved[..., :2].abs().amax(-1) < 5e-3


def flipped_maps(model, pixels, dtype):
    names = list(model.config.id2label.values())
    other = heat_maps(model, pixels.flip(-1), 0, dtype, pairs_of(names))
    return (heat_maps(model, pixels, 0, dtype) + other) / 2


def fixture_of(name, spec, seed):
    """None if more than a quarter of the key points are not stable."""
    model, processor = model_of(spec, seed)
    boxes = [box for each in BOXES for box in each]
    pixels = pixels_of(processor, images(), BOXES).double()
    mean, std = (torch.tensor(v).double().reshape(3, 1, 1) for v in (processor.image_mean, processor.image_std))
    golden = {"crops": ((pixels * std + mean) * 255).round().to(torch.uint8).permute(0, 2, 3, 1)}
    for dataset in range(spec["experts"]):
        maps = heat_maps(model, pixels, dataset, torch.float64)
        single = heat_maps(model, pixels, dataset, torch.float32)
        sure = stable(processor, maps, boxes)
        if sure.float().mean() < 0.75:
            return None
        want = torch.cat([keypoints(processor, maps, boxes), sure[..., None]], 2)
        error = float((single - maps).abs().max() / maps.abs().max())
        print(f"{name} {dataset}: float32 differs by {error:.1e} of the largest")
        golden[f"keypoints_{dataset}"] = want.float()
        if dataset == 0:
            golden["heatmaps"] = maps.float()
    maps = flipped_maps(model, pixels, torch.float64)
    want = keypoints(processor, maps, boxes)
    golden["flipped"] = torch.cat([want, stable(processor, maps, boxes)[..., None]], 2).float()
    return model, processor, golden


def write_fixture(name, spec):
    seed = zlib.crc32(name.encode())
    while not (fixture := fixture_of(name, spec, seed)):
        seed += 1
    model, processor, golden = fixture
    save = model.state_dict
    model.state_dict = lambda *args, **kw: {k: v for k, v in save(*args, **kw).items() if generated(k, v.shape) is None}
    small = {key: value.half() if value.is_floating_point() else value for key, value in model.state_dict().items()}
    folder = ROOT / name
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    processor.save_pretrained(folder)
    dense_common.save_golden(folder, model, small, "model.safetensors", format="pt")
    dense_common.save_golden(folder, model, golden)
    entries = [(i, box) for i, boxes in enumerate(BOXES) for box in boxes]
    document = {
        "images": [{"id": 7 + i, "file_name": f"photos/{i}.png"} for i in range(len(BOXES))],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}],
        "annotations": [dict(id=n, image_id=7 + i, category_id=1, bbox=box) for n, (i, box) in enumerate(entries)],
    }
    (ROOT / "boxes.json").write_text(json.dumps(document) + "\n")


def save_authors(path, model):
    """The weights under the authors' names."""
    state = {}
    names = {"deconv1": "deconv_layers.0", "batchnorm1": "deconv_layers.1", "deconv2": "deconv_layers.3"}
    names |= {"batchnorm2": "deconv_layers.4", "conv": "final_layer"}
    weights = model.state_dict()
    for key, value in weights.items():
        if key.startswith("head."):
            _, layer, suffix = key.split(".", 2)
            state[f"keypoint_head.{names[layer]}.{suffix}"] = value
            continue
        name = key.replace("encoder.layer.", "blocks.").replace("layernorm_before", "norm1")
        name = name.replace("layernorm_after", "norm2").replace("backbone.layernorm", "backbone.last_norm")
        name = name.replace("embeddings.patch_embeddings.projection", "patch_embed.proj")
        name = name.replace("embeddings.position_embeddings", "pos_embed")
        name = name.replace("attention.output.dense", "attn.proj")
        if "attention.attention.query" in key:
            value = torch.cat([weights[key.replace("query", part)] for part in ("query", "key", "value")])
            name = name.replace("attention.attention.query", "attn.qkv")
        elif "attention.attention" in key:
            continue
        state[name] = value
    torch.save({"state_dict": state}, path)


def check(program, folder, name, spec):
    """Compares the program's key points with those of transformers in float32."""
    spec = copy.deepcopy(spec)
    model, processor = model_of(spec, zlib.crc32(name.encode()))
    model.config.backbone_config.layer_norm_eps = 1e-6  # that of the authors' code
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    model.save_pretrained(folder / "model")
    processor.save_pretrained(folder / "model")
    models = [folder / "model"]
    if not spec["backbone"].get("image_size"):
        save_authors(folder / "authors.pth", model)
        models.append(folder / "authors.pth")
    pixels = pixels_of(processor, images(), BOXES)
    files = dense_common.write_images(folder / "photos", images())
    for dataset in range(spec["experts"]):
        maps = heat_maps(model, pixels, dataset, torch.float32)
        for flip in (False, True) if dataset == 0 else (False,):
            shown = flipped_maps(model, pixels, torch.float32) if flip else maps
            want = keypoints(processor, shown, [box for boxes in BOXES for box in boxes])
            sure = stable(processor, shown, [box for boxes in BOXES for box in boxes])
            for path in models:
                if dataset > 0 and path.suffix:
                    continue  # it has the head of data set 0 alone
                command = [program, "pose", "-m", path, *files, "--boxes", ROOT / "boxes.json", "--dataset", dataset]
                command += ["--flip-test"] if flip else []
                output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout
                lines = [json.loads(line) for line in output.splitlines()]
                got = {tuple(p["box"]): p["keypoints"] for line in lines for p in line["persons"]}
                rows = [got[(x, y, x + w, y + h)] for boxes in BOXES for x, y, w, h in boxes]
                error = (torch.tensor(rows) - want).abs()
                pixels_off, scores_off = error[..., :2].amax(-1)[sure].max(), error[..., 2].max()
                print(
                    f"{name} {path.name} {dataset}{' flipped' if flip else ''}: {int(sure.sum())} of {sure.numel()} "
                    f"stable, which differ by {pixels_off:.1e} px, scores {scores_off:.1e}",
                    flush=True,
                )
                assert pixels_off < 0.05


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
