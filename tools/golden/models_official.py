# SPDX-License-Identifier: Apache-2.0
"""Small checkpoints in the layouts of official repositories: MoCo v3, MSN, I-JEPA, iBOT, BEiT-3, OpenAI's CLIP.

The repositories are on no package index: their key names and dicts are restated here, around timm's VisionTransformer,
whose values are the reference.  The files have more beside the encoder that is meant: another encoder with other
values, heads, optimiser states, arguments.
"""

import argparse
import functools
import io
import zipfile

import open_clip
import timm
import torch
from models_common import IMAGENET, ROOT, preprocessing, randomise, report, write_fixture, write_json
from timm.models.vision_transformer import VisionTransformer, _convert_beit3

SMALL = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3, mlp_ratio=2.0)


def forward(model, image):
    tokens = model.forward_features(image)
    return model.forward_head(tokens), tokens


def under(prefix, state):
    return {prefix + key: value for key, value in state.items()}


def other(state):
    """The same keys with other values: a student, or an average that is not meant."""
    return {key: value + 0.5 for key, value in state.items()}


def optimizer_of(state):
    moments = {i: {"step": torch.tensor(3.0), "exp_avg": torch.ones(2)} for i in range(len(state))}
    return {"state": moments, "param_groups": [{"lr": 0.1, "params": list(range(len(state)))}]}


def projector(*names):
    return {name: torch.ones(4, 4) for name in names}


def write(name, wrap, *, num_classes=0, vit_changes=None, rename=None, **args):
    model = randomise(VisionTransformer(num_classes=num_classes, **SMALL | args), name)
    plain = {key: value for key, value in (SMALL | args).items() if isinstance(value, (int, float, str))}
    write_fixture(
        name,
        model,
        forward,
        {
            "architecture": "vit",
            "num_classes": num_classes,
            "model_args": plain | (vit_changes or {}),
            "pretrained_cfg": preprocessing(16),
        },
        size=16,
        state=rename(model.state_dict()) if rename else None,
        form="pth",
        wrap=wrap,
        reference=f"timm {timm.__version__}",
        note="keys and dicts as the repository's training writes them",
    )


def moco_v3(state):
    """facebookresearch/moco-v3, main_moco.py; the base encoder is what its transfer scripts read."""
    head = projector("head.0.weight", "head.1.weight", "head.1.running_mean", "head.3.weight")
    base = state | head | {"head.1.num_batches_tracked": torch.tensor(5)}
    module = under("module.base_encoder.", base) | under("module.momentum_encoder.", other(state) | head)
    module |= under("module.predictor.", projector("0.weight", "1.bias"))
    return {
        "epoch": 300,
        "arch": "vit_small",
        "state_dict": module,
        "optimizer": optimizer_of(state),
        "scaler": {"scale": 65536.0, "_growth_tracker": 3},
    }


def msn(state):
    """facebookresearch/msn, src/msn_train.py; the target encoder is the one that is evaluated."""
    fc = projector("fc.fc1.weight", "fc.bn1.running_var", "fc.fc3.weight")
    return {
        "target_encoder": under("module.", state | fc),
        "encoder": under("module.", other(state) | fc),
        "prototypes": torch.ones(5, 4),
        "opt": optimizer_of(state),
        "epoch": 10,
        "loss": 1.5,
        "batch_size": 16,
        "world_size": 8,
        "lr": 0.001,
        "temperature": 0.1,
    }


def i_jepa(state):
    """facebookresearch/ijepa, src/train.py: no class token; the target encoder is the one that is evaluated."""
    predictor = {"predictor_embed.weight": torch.ones(4, 18), "mask_token": torch.zeros(1, 1, 4)}
    predictor |= {"predictor_pos_embed": torch.ones(1, 16, 4), "predictor_blocks.0.norm1.weight": torch.ones(4)}
    return {
        "encoder": under("module.", other(state)),
        "predictor": under("module.", predictor),
        "opt": optimizer_of(state),
        "scaler": {"scale": 1.0},
        "target_encoder": under("module.", state),
        "epoch": 300,
        "loss": 0.2,
        "batch_size": 128,
        "world_size": 16,
        "lr": 0.001,
    }


def ibot(state):
    """bytedance/ibot, main_ibot.py; the teacher is the one that is evaluated."""
    head = projector("head.mlp.0.weight", "head.last_layer.weight_g", "head.mlp2.0.weight", "head.last_layer2.weight_g")
    masked = {"backbone.masked_embed": torch.zeros(1, 18)}
    return {
        "student": under("module.", under("backbone.", other(state)) | masked | head),
        "teacher": under("backbone.", state) | masked | head,
        "optimizer": optimizer_of(state),
        "epoch": 800,
        "args": argparse.Namespace(arch="vit_small", patch_size=4),
        "ibot_loss": {"center": torch.zeros(1, 4), "center2": torch.zeros(1, 1, 4)},
    }


def beit3_names(state):
    """The names of BEiT-3's repository (microsoft/unilm), the inverse of timm's _convert_beit3."""
    out = {"beit3.text_embed.weight": torch.ones(3, 18), "beit3.vision_embed.mask_token": torch.zeros(1, 1, 18)}
    for key, value in state.items():
        parts = key.split(".")
        if key == "cls_token":
            out["beit3.vision_embed.cls_token"] = value
        elif key == "pos_embed":  # two rows of the paddings of fairseq's embeddings in front
            out["beit3.encoder.embed_positions.A.weight"] = torch.cat([torch.ones(2, value.shape[2]), value[0]])
            out["beit3.encoder.embed_positions.B.weight"] = torch.ones(4, value.shape[2])
        elif parts[0] == "patch_embed":
            out["beit3.vision_embed." + ".".join(parts[1:])] = value
        elif parts[0] == "blocks":
            block, remaining = f"beit3.encoder.layers.{parts[1]}.", ".".join(parts[2:-1])
            for branch, tensor in (("A", value), ("B", value + 0.5)):
                if remaining == "attn.qkv":
                    for which, part in zip("qkv", tensor.chunk(3), strict=True):
                        out[f"{block}self_attn.{which}_proj.{branch}.{parts[-1]}"] = part
                    continue
                theirs = {
                    "norm1": "self_attn_layer_norm.{}",
                    "norm2": "final_layer_norm.{}",
                    "attn.norm": "self_attn.inner_attn_ln.{}",
                    "attn.proj": "self_attn.out_proj.{}",
                    "mlp.norm": "ffn.{}.ffn_layernorm",
                    "mlp.fc1": "ffn.{}.fc1",
                    "mlp.fc2": "ffn.{}.fc2",
                }[remaining]
                out[f"{block}{theirs.format(branch)}.{parts[-1]}"] = tensor
        else:
            out[key] = value
    again = _convert_beit3(dict(out), None)
    assert all(torch.equal(again[key], value) for key, value in state.items())
    return out


class Scripted(torch.nn.Module):
    """A module with the given state: what OpenAI's files give to readers of tensors."""

    def __init__(self, state):
        super().__init__()
        for key, value in state.items():
            parts, at = key.split("."), self
            for part in parts[:-1]:
                if not hasattr(at, part):
                    at.add_module(part, torch.nn.Module())
                at = getattr(at, part)
            at.register_buffer(parts[-1], value)

    def forward(self, x):
        return x


def openai_clip(name):
    """OpenAI's ViT-B-32.pt: a TorchScript archive in fp16 with both towers and three integers beside them."""
    vision = dict(image_size=16, layers=2, width=20, head_width=10, patch_size=4, mlp_ratio=2.0)
    text = dict(context_length=12, vocab_size=40, width=18, heads=3, layers=1, mlp_ratio=2.0)
    config = dict(embed_dim=12, vision_cfg=vision, text_cfg=text, quick_gelu=True)
    model = randomise(open_clip.CLIP(**config), name)

    def run(model, image):
        tokens = []
        hook = model.visual.ln_post.register_forward_hook(lambda module, inputs, output: tokens.append(output))
        logits = model.encode_image(image)
        hook.remove()
        return logits, tokens[0]

    write_fixture(
        name, model, run, None, size=16, dtype=torch.float16, reference=f"open_clip {open_clip.__version__} CLIP"
    )
    folder = ROOT / name
    (folder / "model.safetensors").unlink()
    write_json(folder / "open_clip_config.json", {"model_cfg": config, "preprocess_cfg": IMAGENET})
    state = {key: value.half() for key, value in model.state_dict().items() if key != "attn_mask"}
    integers = {"input_resolution": 16, "context_length": 12, "vocab_size": 40}
    state |= {key: torch.tensor(value) for key, value in integers.items()}
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(Scripted(state), torch.ones(1)), buffer)
    with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(folder / "model.pth", "w") as out:
        for entry in archive.infolist():  # without the paths of the sources
            if not entry.filename.endswith(".debug_pkl"):
                out.writestr(zipfile.ZipInfo(entry.filename), archive.read(entry.filename))


if __name__ == "__main__":
    torch.manual_seed(0)
    write("official_moco_v3", moco_v3)
    write("official_msn", msn)
    write(
        "official_i_jepa",
        i_jepa,
        vit_changes={"class_token": False, "fc_norm": False},
        class_token=False,
        global_pool="avg",
        fc_norm=False,
    )
    write("official_ibot", ibot)
    write(
        "official_beit3",
        lambda state: {"model": state},
        num_classes=7,
        rename=beit3_names,
        global_pool="avg",
        scale_attn_norm=True,
        scale_mlp_norm=True,
        norm_layer=functools.partial(timm.layers.LayerNorm, eps=1e-5),
        vit_changes={"norm_eps": 1e-5},
    )
    openai_clip("official_openai_clip")
    report()
