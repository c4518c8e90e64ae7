# SPDX-License-Identifier: Apache-2.0
"""Fixtures of LoRA adapters: tests/fixtures/weights/lora/NAME/, each an adapter as peft saves it.

- `timm`: of tests/fixtures/models/timm_token: the fused projection and the MLP's linear layers, the patch embedding (a
  convolution), and a new head of 4 classes.
- `transformers`: of hf_vit: queries and values by rsLoRA's scale, another alpha for the last block.

golden.safetensors has an image batch and the adapted model's logits in float64; for `timm` also the gradients of the
mean cross-entropy with the labels 0 and 2.
"""

import json
import pathlib
import zlib

import peft
import safetensors.torch
import timm
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
MODELS, OUT = ROOT / "models", ROOT / "weights" / "lora"


def draw(name, shape, scale):
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return torch.randn(shape, generator=generator) * scale


def timm_model():
    folder = MODELS / "timm_token"
    args = json.loads((folder / "config.json").read_text())["model_args"]
    model = timm.models.VisionTransformer(**args, num_classes=10)
    model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
    model.reset_classifier(4)
    return model


def adapted(name, model, config):
    """The model with an adapter of drawn values."""
    model = peft.get_peft_model(model, config)
    for key, parameter in model.named_parameters():
        if parameter.requires_grad:
            fan_in = parameter[0].numel() if parameter.dim() > 1 else 1
            parameter.data = draw(name + key, parameter.shape, fan_in**-0.5)
    return model.eval()


def write(name, model, size, forward, gradients=False):
    folder = OUT / name
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    saved = json.loads((folder / "adapter_config.json").read_text())
    saved["target_modules"] = sorted(saved["target_modules"])
    saved["base_model_name_or_path"] = None  # where it is in this checkout
    (folder / "adapter_config.json").write_text(json.dumps(saved, indent=2) + "\n")
    image = draw(name, (2, 3, size, size), 1.0)
    model = model.double()
    logits = forward(model(image.double()))
    golden = {"input": image, "logits": logits.detach()}
    if gradients:
        torch.nn.functional.cross_entropy(logits, torch.tensor([0, 2])).backward()
        for key, parameter in model.named_parameters():
            if parameter.requires_grad and "original_module" not in key:
                golden["grad." + key.removeprefix("base_model.model.").replace(".default", "")] = parameter.grad
    safetensors.torch.save_file({k: v.contiguous() for k, v in golden.items()}, folder / "golden.safetensors")


def main():
    config = peft.LoraConfig(
        r=2, lora_alpha=3, target_modules=["qkv", "fc1", "fc2", "patch_embed.proj"], modules_to_save=["head"]
    )
    write("timm", adapted("timm", timm_model(), config), 32, lambda out: out, gradients=True)
    config = peft.LoraConfig(
        r=3,
        lora_alpha=4,
        use_rslora=True,
        target_modules=["q_proj", "v_proj", "query", "value"],
        alpha_pattern={"layers.1.attention.v_proj": 7},
    )
    model = transformers.ViTForImageClassification.from_pretrained(MODELS / "hf_vit")
    write("transformers", adapted("transformers", model, config), 16, lambda out: out.logits)


if __name__ == "__main__":
    main()
