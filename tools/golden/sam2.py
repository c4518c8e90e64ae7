# SPDX-License-Identifier: Apache-2.0
"""Fixtures of SAM 2 on images: small random models of transformers, with their outputs.

    tools/golden/sam2.py [NAME...]

Each is a folder tests/fixtures/sam/NAME as tools/golden/sam.py describes it.  Stages have windows that divide their map
and windows that do not, a global block, and positions of another grid.
  sam2          transformers' names and config.json; prompts of all kinds; mask 0 is not stable, so that single masks
                are the best of three
  sam2_authors  the names and nesting of facebookresearch/sam2, vitrail's config.json; a single mask that is mask 0
"""

import copy
import json
import re
import sys
import zlib

import torch
import transformers
from sam_fixture import PROMPTS, ROOT, WELL_CONDITIONED, difference, draw_parameters, prompt_of, write

GRID, WIDTH, IMAGE = 6, 16, (37, 58)  # cells of the embedding, its channels, height and width of the image
SIDE = 16 * GRID
BACKBONE = dict(
    hidden_size=8,
    image_size=[SIDE, SIDE],
    blocks_per_stage=[1, 2, 3, 1],
    embed_dim_per_stage=[8, 16, 24, 32],
    num_attention_heads_per_stage=[1, 2, 2, 4],
    window_size_per_stage=[8, 6, 4, 2],
    global_attention_blocks=[4],
    window_positional_embedding_background_size=[5, 3],
    mlp_ratio=2.0,
)


def vision_config():
    return dict(
        backbone_config=dict(BACKBONE, model_type="sam2_hiera_det_model"),
        backbone_channel_list=BACKBONE["embed_dim_per_stage"][::-1],
        backbone_feature_sizes=[[SIDE // stride] * 2 for stride in (4, 8, 16)],
        fpn_hidden_size=WIDTH,
    )


def parts(stability):
    return dict(
        vision_config=vision_config(),
        prompt_encoder_config=dict(hidden_size=WIDTH, image_size=SIDE, mask_input_channels=8),
        mask_decoder_config=dict(
            hidden_size=WIDTH,
            mlp_dim=40,
            iou_head_hidden_dim=24,
            num_attention_heads=4,
            **stability,
        ),
    )


def call_of(prompt, mask):
    """The arguments of Sam2Model.forward(), with coordinates in pixels of its input."""
    factors = torch.tensor([SIDE / IMAGE[1], SIDE / IMAGE[0]]).double()
    call = dict(multimask_output=prompt["multimask"])
    if "points" in prompt:
        points = torch.tensor(prompt["points"], dtype=torch.float64)
        call["input_points"] = (points[:, :2] * factors)[None, None]
        call["input_labels"] = points[:, 2].long()[None, None]
    if "box" in prompt:
        call["input_boxes"] = (torch.tensor(prompt["box"]).double() * factors.repeat(2))[None, None]
    if mask is not None:
        call["input_masks"] = mask[None, None].double()
    return call


def decode(model, maps, call):
    """As sam2's SAM2ImagePredictor: a mask alone is without points, where transformers adds two padding points."""
    dtype = maps[-1].dtype
    call = {
        key: value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value
        for key, value in call.items()
    }
    if "input_points" in call or "input_boxes" in call:
        return model(image_embeddings=maps, **call)
    dense = model.prompt_encoder.mask_embed(call["input_masks"])
    masks, iou, _, score = model.mask_decoder(
        image_embeddings=maps[-1],
        image_positional_embeddings=model.get_image_wide_positional_embeddings(),
        sparse_prompt_embeddings=torch.zeros(1, 1, 0, WIDTH, dtype=dtype),
        dense_prompt_embeddings=dense,
        multimask_output=call["multimask_output"],
        high_resolution_features=maps[:-1],
    )
    return transformers.models.sam2.modeling_sam2.Sam2ImageSegmentationOutput(
        iou_scores=iou, pred_masks=masks, object_score_logits=score
    )


@torch.no_grad()
def outputs(model, kinds, stable, generator):
    image = torch.randint(0, 256, (*IMAGE, 3), generator=generator, dtype=torch.uint8)
    processor = transformers.Sam2ImageProcessor(
        size=dict(height=SIDE, width=SIDE), mask_size=dict(height=4 * GRID, width=4 * GRID)
    )
    pixels = processor(image.permute(2, 0, 1), return_tensors="pt")["pixel_values"]
    exact = copy.deepcopy(model).double()
    exact.shared_image_embedding.positional_embedding = exact.shared_image_embedding.positional_embedding.double()
    maps, approximate = exact.get_image_embeddings(pixels.double()), model.get_image_embeddings(pixels)
    tensors = {"image": image, "embedding": maps[-1][0].float()}
    worst = max(map(difference, maps, approximate))
    prompts = []
    for number, kind in enumerate(kinds):
        prompt = prompt_of(kind, dict(grid=GRID, size=IMAGE), number, generator, tensors)
        call = call_of(prompt, tensors.get(f"mask_{number}"))
        out, out32 = decode(exact, maps, call), decode(model, approximate, call)
        worst = max(worst, difference(out.pred_masks, out32.pred_masks), difference(out.iou_scores, out32.iou_scores))
        full = torch.nn.functional.interpolate(out.pred_masks[0], IMAGE, mode="bilinear", align_corners=False)[0]
        tensors[f"logits_{number}"] = out.pred_masks[0, 0].float()
        tensors[f"iou_{number}"] = out.iou_scores[0, 0].float()
        tensors[f"object_score_{number}"] = out.object_score_logits[0, 0].float()
        tensors[f"signs_{number}"] = torch.where(full.abs() > 1e-3, full.sign(), 0).char()
        prompts.append(prompt)
        if not prompt["multimask"]:
            several = decode(exact, maps, dict(call, multimask_output=True))
            best = several.pred_masks[0, 0, several.iou_scores.argmax()]
            assert torch.equal(out.pred_masks[0, 0, 0], best) == (not stable), "draw another one"
    return tensors, prompts, worst


# transformers' names to those of facebookresearch/sam2, in this order.
AUTHORS_NAMES = [
    (r"^vision_encoder\.backbone\.", "image_encoder.trunk."),
    (r"patch_embed\.projection", "patch_embed.proj"),
    (r"^vision_encoder\.neck\.convs\.(\d)", r"image_encoder.neck.convs.\1.conv"),
    (r"^no_memory_embedding", "no_mem_embed"),
    (r"^shared_image_embedding\.positional_embedding", "prompt_encoder.pe_layer.positional_encoding_gaussian_matrix"),
    (r"mask_embed\.conv(\d)", lambda match: f"mask_downscaling.{3 * int(match[1]) - 3}"),
    (r"mask_embed\.layer_norm(\d)", lambda match: f"mask_downscaling.{3 * int(match[1]) - 2}"),
    (r"upscale_conv1", "output_upscaling.0"),
    (r"upscale_layer_norm", "output_upscaling.1"),
    (r"upscale_conv2", "output_upscaling.3"),
    (r"o_proj", "out_proj"),
    (r"layer_norm_final_attn", "norm_final_attn"),
    (r"layer_norm(\d)", r"norm\1"),
    (r"layers\.0\.(weight|bias)$", r"layers.1.\1"),
    (r"((?:_head|_mlps\.\d))\.proj_out", r"\1.layers.2"),
    (r"mlp\.proj_out", "mlp.layers.1"),
    (r"proj_in", "layers.0"),
    (r"^(prompt_encoder|mask_decoder)", r"sam_\1"),
]


def authors_state(model):
    state = {}
    for name, tensor in model.state_dict().items():
        if name == "prompt_encoder.shared_embedding.positional_embedding":
            continue
        if name == "prompt_encoder.point_embed.weight":
            state |= {f"sam_prompt_encoder.point_embeddings.{i}.weight": tensor[i : i + 1].clone() for i in range(4)}
            continue
        for pattern, replacement in AUTHORS_NAMES:
            name = re.sub(pattern, replacement, name)
        state[name] = tensor
    # What the memory of videos has, and images do not need.
    dropped = ["memory_attention.layers.0.norm1.weight", "memory_encoder.out_proj.bias", "mask_downsample.weight"]
    dropped += ["obj_ptr_proj.layers.0.bias", "obj_ptr_tpos_proj.weight", "maskmem_tpos_enc", "no_mem_pos_enc"]
    dropped += ["no_obj_ptr", "no_obj_embed_spatial"]
    return state | {name: torch.zeros(2) for name in dropped}


def vitrail_config():
    keys = ["blocks_per_stage", "num_attention_heads_per_stage", "window_size_per_stage"]
    stages = zip(*(BACKBONE[key] for key in keys), strict=True)
    return dict(
        architecture="segment_anything",
        image_size=SIDE,
        num_attention_heads=4,
        stages=[dict(depth=depth, num_heads=heads, window=window) for depth, heads, window in stages],
        global_attn_indexes=BACKBONE["global_attention_blocks"],
    )


def fixture(name, stability, kinds, seed):
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    while True:
        model = draw_parameters(transformers.Sam2Model(transformers.Sam2Config(**parts(stability))), generator)
        model.prompt_encoder.shared_embedding.positional_embedding = model.shared_image_embedding.positional_embedding
        tensors, prompts, worst = outputs(model, kinds, not stability, generator)
        print(f"{name}: float32 differs by {worst:.1e}")
        if worst < WELL_CONDITIONED:
            break
    with torch.no_grad():
        if name == "sam2":
            write(name, dict(model.state_dict()), "safetensors", tensors, prompts)
            config = dict(parts(stability), model_type="sam2")
        else:
            write(name, authors_state(model), "pth", tensors, prompts)
            path = ROOT / name / "model.pth"
            torch.save({"model": torch.load(path)}, path)
            config = vitrail_config()
    (ROOT / name / "config.json").write_text(json.dumps(config) + "\n")


UNSTABLE = dict(dynamic_multimask_stability_delta=1.0, dynamic_multimask_stability_thresh=0.95)
FIXTURES = {
    "sam2": (UNSTABLE, list(PROMPTS), "sam2"),
    "sam2_authors": ({}, ["single mask", "box"], "sam2_video"),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FIXTURES:
        fixture(name, *FIXTURES[name])
