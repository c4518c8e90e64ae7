# SPDX-License-Identifier: Apache-2.0
"""What a forward hook of PyTorch gets at every module, as a fingerprint: tests/fixtures/trace/NAME.safetensors.

`values` [modules, 3 + 8]: mean, mean square, mean with the signs of `signs()`, and 8 elements spread over the tensor.
The metadata's "config" has the model (a fixture, or DeiT-Tiny of the shared assets with the image), the modules' names
in the reference, in the order in which they run, and their shapes.  References run in float64; attention is computed
unfused, so that its dropout is a module that runs.  A module that runs twice has its last output.
"""

import json
import os
import pathlib

import models_eva
import models_seeds
import numpy
import safetensors.torch
import timm
import torch
import transformers
from models_common import ROOT as MODELS
from PIL import Image
from timm.layers import LayerNorm, SwiGLUPacked

ROOT = MODELS.parent / "trace"
TIMM = "token avg num_classes_0 reg_tokens pre_norm distilled qk_norm layer_scale token_fc_norm no_pool".split()
EVA = {
    "dinov3": ("vit_small_patch16_dinov3", {}),
    "eva02_clip_base": ("eva02_base_patch16_clip_224", {}),
    "rope_mixed": ("vit_small_patch16_rope_mixed_224", {}),
    "pe_core": ("vit_pe_core_base_patch16_224", models_eva.PE_CORE),
}
HUGGING_FACE = "vit deit_teacher dinov2 dinov2_swiglu dinov2_registers".split()
SAMPLES = 8


def signs(n):
    """+1 or −1 for each index, from a multiplicative hash."""
    hashed = numpy.arange(n, dtype=numpy.uint64) * numpy.uint64(2654435761) % numpy.uint64(1 << 32)
    return torch.from_numpy(1 - 2 * (hashed >> numpy.uint64(31)).astype(numpy.float64))


def fingerprint(tensor):
    x = tensor.detach().double().flatten()
    at = [i * (len(x) - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    return torch.cat([torch.stack([x.mean(), x.square().mean(), (x * signs(len(x))).mean()]), x[at]])


def tensor_of(output):
    """A module's tensor: of several outputs the first, which is also the tokens or logits of transformers' outputs."""
    return output if torch.is_tensor(output) else output[0]


def record(outputs, path, output):
    outputs.pop(path, None)
    outputs[path] = tensor_of(output)


def write(name, model, image, about):
    outputs = {}
    for path, module in model.named_modules():
        if path:
            module.register_forward_hook(lambda _, __, output, path=path: record(outputs, path, output))
    with torch.no_grad():
        model.double().eval()(image.double())
    paths = list(outputs)
    values = torch.stack([fingerprint(outputs[path]) for path in paths])
    config = about | {"names": paths, "shapes": [list(outputs[path].shape) for path in paths]}
    ROOT.mkdir(exist_ok=True)
    metadata = {"config": json.dumps(config, separators=(",", ":"))}
    safetensors.torch.save_file({"values": values.float()}, ROOT / f"{name}.safetensors", metadata=metadata)
    print(f"{name:22} {len(paths):4} modules {(ROOT / f'{name}.safetensors').stat().st_size / 1024:6.1f} KiB")


def fixture(name, model):
    image = safetensors.torch.load_file(MODELS / name / "golden.safetensors")["input"]
    write(name, model, image, {"model": name})


def load(model, name):
    model.load_state_dict(safetensors.torch.load_file(MODELS / name / "model.safetensors"))
    return model


def timm_models():
    for name in TIMM:
        fixture(f"timm_{name}", timm.create_model(f"local-dir:{MODELS / f'timm_{name}'}", pretrained=True))
    small = dict(img_size=16, patch_size=4, depth=2, num_classes=10)
    swiglu = dict(embed_dim=20, num_heads=2, mlp_ratio=2 * 56 / 20, mlp_layer=SwiGLUPacked, act_layer=torch.nn.SiLU)
    norm = dict(embed_dim=18, num_heads=3, mlp_ratio=1.5, embed_norm_layer=LayerNorm)
    for name, options in (("timm_swiglu", swiglu), ("timm_patch_norm_post", norm)):
        fixture(name, load(timm.models.vision_transformer.VisionTransformer(**small, **options), name))


def eva_models():
    for name, (architecture, options) in EVA.items():
        folder = MODELS / f"timm_{name}"
        config = json.loads((folder / "config.json").read_text())
        model = timm.create_model(architecture, num_classes=config["num_classes"], **models_eva.SMALL | options)
        fixture(f"timm_{name}", load(model, f"timm_{name}"))


def hugging_face_models():
    for name in HUGGING_FACE:
        folder = MODELS / f"hf_{name}"
        kind = json.loads((folder / "config.json").read_text())["architectures"][0]
        model = getattr(transformers, kind).from_pretrained(folder, attn_implementation="eager")
        fixture(f"hf_{name}", model)


def documents_models():
    for name, model in (("seed_003", models_seeds.Vit003()), ("seed_004", models_seeds.Vit004())):
        model.load_state_dict(torch.load(MODELS / name / "model.pth"))
        fixture(name, model)


def as_hugging_face(state, depth):
    """timm's tensors of DeiT-Tiny under the names of transformers' ViTForImageClassification."""
    renamed = {
        "vit.embeddings.cls_token": state["cls_token"],
        "vit.embeddings.position_embeddings": state["pos_embed"],
    }
    plain = {"patch_embed.proj": "vit.embeddings.patch_embeddings.projection", "norm": "vit.layernorm"}
    plain["head"] = "classifier"
    for i in range(depth):
        block, layer = f"blocks.{i}.", f"vit.layers.{i}."
        names = {"attn.proj": "attention.o_proj", "norm1": "layernorm_before", "norm2": "layernorm_after"}
        names |= {"mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}
        plain |= {block + old: layer + new for old, new in names.items()}
        for kind in ("weight", "bias"):
            for part, tensor in zip("qkv", state[f"{block}attn.qkv.{kind}"].chunk(3), strict=True):
                renamed[f"{layer}attention.{part}_proj.{kind}"] = tensor
    for old, new in plain.items():
        renamed |= {f"{new}.{kind}": state[f"{old}.{kind}"] for kind in ("weight", "bias")}
    return renamed


def deit_tiny(assets):
    folder, file = assets / "weights" / "deit_tiny_patch16_224.fb_in1k", "images/nips2017/56e9d5f63cfc507e.png"
    config = json.loads((folder / "config.json").read_text())
    state = safetensors.torch.load_file(folder / "model.safetensors")
    model = timm.create_model(config["architecture"], checkpoint_path=str(folder / "model.safetensors"))
    settings = timm.data.resolve_data_config(config["pretrained_cfg"])
    image = timm.data.create_transform(**settings, is_training=False)(Image.open(assets / file).convert("RGB"))[None]
    about = {"assets": "weights/deit_tiny_patch16_224.fb_in1k", "image": file}
    write("deit_tiny", model, image, about)
    sizes = dict(hidden_size=192, num_attention_heads=3, intermediate_size=768, layer_norm_eps=1e-6, num_labels=1000)
    made = transformers.ViTConfig(**sizes, attn_implementation="eager")
    renamed = transformers.ViTForImageClassification(made)
    renamed.load_state_dict(as_hugging_face(state, 12))
    write("deit_tiny_hugging_face", renamed, image, about)


if __name__ == "__main__":
    transformers.logging.disable_progress_bar()
    timm.layers.set_fused_attn(False)
    timm_models()
    eva_models()
    hugging_face_models()
    documents_models()
    if assets := os.environ.get("VITRAIL_ASSETS"):
        deit_tiny(pathlib.Path(assets))
