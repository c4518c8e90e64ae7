# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/infer/token_merging.safetensors: logits of timm models whose blocks merge tokens.

Token Merging (Bolya et al. 2023) after section 3 and appendix D of the paper, in torch and float64: bipartite soft
matching on the mean of the heads' keys, a size-weighted mean, proportional attention.  Two choices are vitrail's:
remaining tokens stay in order also without a class token, and registers never merge.

The models are fixtures of models_timm.py, which must run first.  NAME.R are the logits of NAME's "input" with R tokens
merged per block.
"""

import json
import pathlib

import safetensors.torch
import timm
import torch

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
MODELS = ["timm_token", "timm_distilled", "timm_avg", "timm_avg_no_class_token", "timm_reg_tokens", "timm_qk_norm"]
COUNTS = [1, 3, 100]  # 100 exceeds the number of tokens: merges as many as possible


def merge(x, keys, sizes, count, prefix):
    """x [N, C], keys [N, d], sizes [N] of one sample → x and sizes of N − count tokens."""
    n = len(x)
    count = min(count, (n - prefix) // 2)
    if count == 0:
        return x, sizes
    sources = [i for i in range(prefix, n) if i % 2 == 0]
    targets = [i for i in range(prefix, n) if i % 2 == 1]
    directions = keys / keys.norm(dim=-1, keepdim=True)
    cosines = directions[sources] @ directions[targets].T
    best, partner = cosines.max(dim=1)
    merged = best.argsort(descending=True)[:count].tolist()
    sums, total = x * sizes[:, None], sizes.clone()
    for i in merged:
        target = targets[partner[i]]
        sums[target] += x[sources[i]] * sizes[sources[i]]
        total[target] += sizes[sources[i]]
    remaining = [token for i, token in enumerate(sources) if i not in merged]
    order = list(range(prefix)) + remaining + targets
    return (sums / total[:, None])[order], total[order]


def run_block(block, x, sizes, count, prefix):
    attention, normed = block.attn, block.norm1(x)
    batch, n, _ = x.shape
    qkv = attention.qkv(normed).reshape(batch, n, 3, attention.num_heads, attention.head_dim).permute(2, 0, 3, 1, 4)
    q, k, v = attention.q_norm(qkv[0]), attention.k_norm(qkv[1]), qkv[2]
    scores = q @ k.transpose(-2, -1) * attention.scale + sizes.log()[:, None, None, :]
    context = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(batch, n, -1)
    x = x + block.ls1(attention.proj(context))
    pairs = [merge(x[i], k[i].mean(dim=0), sizes[i], count, prefix) for i in range(batch)]
    x, sizes = torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])
    return x + block.ls2(block.mlp(block.norm2(x))), sizes


def logits_of(model, image, count):
    prefix = model.num_prefix_tokens
    x = model.norm_pre(model.patch_drop(model._pos_embed(model.patch_embed(image))))
    patches = x.shape[1] - prefix
    sizes = torch.ones(x.shape[:2], dtype=x.dtype)
    for block in model.blocks:
        x, sizes = run_block(block, x, sizes, count, prefix)
    x = model.norm(x)
    if model.global_pool == "avg":
        # The head averages over the remaining tokens.  The scale makes that the average over all patches.
        kept = x.shape[1] - prefix
        x = torch.cat([x[:, :prefix], x[:, prefix:] * sizes[:, prefix:, None] * kept / patches], dim=1)
    logits = model.forward_head(x)
    return sum(logits) / len(logits) if isinstance(logits, tuple) else logits


def main():
    stored = {}
    for name in MODELS:
        folder = FIXTURES / "models" / name
        config = json.loads((folder / "config.json").read_text())
        model = timm.create_model(config["architecture"], num_classes=config["num_classes"], **config["model_args"])
        model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
        model.double().eval()
        golden = safetensors.torch.load_file(folder / "golden.safetensors")
        image = golden["input"].double()
        with torch.no_grad():
            assert torch.allclose(logits_of(model, image, 0).float(), golden["logits"], atol=1e-6), name
            for count in COUNTS:
                stored[f"{name}.{count}"] = logits_of(model, image, count).float().contiguous()
    path = FIXTURES / "infer" / "token_merging.safetensors"
    path.parent.mkdir(exist_ok=True)
    safetensors.torch.save_file(stored, path)
    print(f"{path.name}: {len(stored)} results, {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
