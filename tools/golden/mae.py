# SPDX-License-Identifier: Apache-2.0
"""Fixtures of masked autoencoders: small random models of transformers, with losses, gradients and training steps.

tests/fixtures/mae has the folders `plain` and `norm_pix` with
  model.safetensors      the weights as f16, config.json, preprocessor_config.json; those of norm_pix have the names of
                         the published files, those of plain the names that transformers 5 writes,
  golden.safetensors     `images`, and for each of STEPS steps of AdamW the `noise`, the indices of the patches that it
                         keeps (`kept`), `mask`, `predictions` and `loss`, in float64,
  gradients.safetensors  the gradients of the first step's loss under the names of the weights, 0 for the positions,
  trained.safetensors    the weights after all steps,
and `authors` with the weights of plain under the names of facebookresearch/mae, checkpoint.pth.
"""

import copy
import re
import zlib

import dense_common
import safetensors.torch
import torch
import transformers

ROOT = dense_common.FIXTURES / "mae"
STEPS, RATE, BETAS, DECAY, BATCH = 3, 1e-3, (0.9, 0.95), 0.05, 2
SIZES = dict(
    image_size=16,
    patch_size=4,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=40,
    decoder_hidden_size=20,
    decoder_num_hidden_layers=2,
    decoder_num_attention_heads=2,
    decoder_intermediate_size=28,
)
MODELS = {
    "plain": dict(SIZES, layer_norm_eps=1e-3),
    "norm_pix": dict(SIZES, norm_pix_loss=True, mask_ratio=0.5, hidden_act="relu", qkv_bias=False),
}
PUBLISHED = ("decoder.decoder_encoder.layer.", "decoder.decoder_layers.")


def scaled(key, parameter, values):
    """Matrices with gain 1, norms near 1, everything else, biases and positions as well, not 0."""
    if "norm" in key:
        return (1 if key.endswith("weight") else 0) + 0.3 * values
    if parameter.dim() >= 2 and key.endswith("weight"):
        return values / (parameter.numel() / parameter.shape[0]) ** 0.5
    return 0.3 * values


def tensors_of(folder):
    return safetensors.torch.load_file(folder / "model.safetensors")


def save_tensors(folder, file, model, names):
    """The parameters of `model` in float32 under the names that save_pretrained() gives them, or the published ones."""
    copy.deepcopy(model).float().save_pretrained(folder / "temporary")
    tensors = {names(key): value for key, value in tensors_of(folder / "temporary").items()}
    safetensors.torch.save_file(tensors, folder / file, metadata={"format": "pt"})
    for path in (folder / "temporary").iterdir():
        path.unlink()
    (folder / "temporary").rmdir()


def with_gradients(model):
    """A copy whose parameters are the gradients."""
    result = copy.deepcopy(model)
    with torch.no_grad():
        for to, parameter in zip(result.parameters(), model.parameters(), strict=True):
            to.copy_(torch.zeros_like(to) if parameter.grad is None else parameter.grad)
    return result


def groups_of(model):
    """The authors' groups: weight decay of all but vectors, thus also of the class token and the mask token."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    assert len(trained) == len(list(model.parameters())) - 2, "all but the two tables of positions"
    matrices, vectors = [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]


def write_fixture(name, config):
    seed = zlib.crc32(name.encode())
    model = transformers.ViTMAEForPreTraining(transformers.ViTMAEConfig(**config))
    dense_common.draw_parameters(model, seed, scaled)
    size = {"height": config["image_size"], "width": config["image_size"]}
    folder, processor = ROOT / name, transformers.ViTImageProcessor(size=size, **dense_common.IMAGENET)
    names = (lambda key: key.replace(*PUBLISHED)) if name == "norm_pix" else (lambda key: key)
    dense_common.save(folder, model, processor)
    weights = {names(key): value.contiguous() for key, value in tensors_of(folder).items()}
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    draw = torch.Generator().manual_seed(seed)
    images = torch.randn((BATCH, 3, config["image_size"], config["image_size"]), generator=draw).double()
    golden = {"images": images}
    model.double().train()
    optimizer = torch.optim.AdamW(groups_of(model), lr=RATE, betas=BETAS)
    for step in range(STEPS):
        noise = torch.rand((BATCH, (config["image_size"] // config["patch_size"]) ** 2), generator=draw)
        out = model(images, noise=noise)
        optimizer.zero_grad()
        out.loss.backward()
        if step == 0:
            save_tensors(folder, "gradients.safetensors", with_gradients(model), names)
        optimizer.step()
        kept = noise.argsort(dim=1)[:, : int((out.mask[0] == 0).sum())]
        values = {"noise": noise, "kept": kept, "mask": out.mask, "predictions": out.logits, "loss": out.loss}
        golden |= {f"{key}_{step}": value.detach().clone() for key, value in values.items()}
        print(f"{name}: step {step}, loss {out.loss.item():.6f}")
    save_tensors(folder, "trained.safetensors", model, names)
    settings = dict(rate=RATE, beta1=BETAS[0], beta2=BETAS[1], decay=DECAY, steps=STEPS)
    dense_common.save_golden(folder, model, golden, **settings)


def authors_name(key):
    """The inverse of transformers' convert_vit_mae_to_pytorch.py."""
    key = key.replace(*PUBLISHED).replace("decoder.mask_token", "mask_token").replace("decoder.decoder_", "decoder_")
    for old, new in (
        ("vit.embeddings.cls_token", "cls_token"),
        ("vit.embeddings.position_embeddings", "pos_embed"),
        ("vit.embeddings.patch_embeddings.projection", "patch_embed.proj"),
        ("vit.layernorm", "norm"),
        ("vit.encoder.layer", "blocks"),
        ("decoder_layers", "decoder_blocks"),
        ("attention.output.dense", "attn.proj"),
        ("layernorm_before", "norm1"),
        ("layernorm_after", "norm2"),
        ("intermediate.dense", "mlp.fc1"),
        ("output.dense", "mlp.fc2"),
    ):
        key = key.replace(old, new)
    return key


def write_authors():
    tensors, joined = tensors_of(ROOT / "plain"), {}
    for key, value in tensors.items():
        attention = re.fullmatch(r"(.*)\.attention\.attention\.(query|key|value)\.(weight|bias)", key)
        if not attention:
            joined[authors_name(key)] = value
        elif attention[2] == "query":
            parts = [key.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
            joined[f"{authors_name(attention[1])}.attn.qkv.{attention[3]}"] = torch.cat([tensors[p] for p in parts])
    (ROOT / "authors").mkdir(parents=True, exist_ok=True)
    torch.save({"model": joined, "epoch": 799}, ROOT / "authors" / "checkpoint.pth")


def main():
    torch.set_num_threads(1)
    for name, config in MODELS.items():
        write_fixture(name, config)
    write_authors()


if __name__ == "__main__":
    main()
