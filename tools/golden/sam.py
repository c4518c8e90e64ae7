# SPDX-License-Identifier: Apache-2.0
"""Fixtures of Segment Anything: small random models of PyPI's segment-anything and segment-anything-hq and of
transformers, and an image encoder of timm, with their outputs.

    tools/golden/sam.py [NAME...]

Each is a folder tests/fixtures/sam/NAME with
  model.pth or model.safetensors  the weights as f16, under the names of the reference,
  golden.safetensors              image [H, W, 3] u8, embedding [C, h, w], and for prompt N: mask_N [h, w] (its mask
                                  logits, if it has some), logits_N [masks, h, w], iou_N [masks] and signs_N
                                  [masks, H, W] i8, the signs of the masks at the image's size (0: |logit| <= 1e-3).
The metadata "config" has the prompts as JSON.  Every tensor is drawn with a gain of 2: with the initial weights,
relative positions are 0 and the logits hardly depend on the image, so that mistakes would not be seen.  The outputs are
computed in float64.  Some draws are so badly conditioned that float32 is far from them: such a draw is repeated.
"""

import contextlib
import copy
import json
import sys
import zlib
from functools import partial

import numpy
import segment_anything
import segment_anything_hq
import timm
import torch
import transformers
from sam_fixture import PROMPTS, ROOT, WELL_CONDITIONED, difference, draw_parameters, prompt_of, write
from segment_anything_hq.modeling import tiny_vit_sam

DECODER_HEADS = 8
# grid and window in cells; size: height and width of the image
MODELS = {
    "padded_windows": dict(grid=10, patch=8, dim=32, heads=2, depth=3, window=4, glob=(1,), dec=32, size=(60, 90)),
    "exact_windows": dict(grid=8, patch=16, dim=24, heads=3, depth=2, window=4, glob=(1,), dec=48, size=(90, 61)),
    "odd_width": dict(grid=6, patch=8, dim=20, heads=4, depth=2, window=5, glob=(0,), dec=16, size=(40, 31)),
    "head_dim_14": dict(grid=7, patch=8, dim=28, heads=2, depth=3, window=3, glob=(2,), dec=32, size=(64, 64)),
    "head_dim_32": dict(grid=6, patch=8, dim=64, heads=2, depth=2, window=4, glob=(1,), dec=16, size=(23, 80)),
    "global": dict(grid=6, patch=14, dim=24, heads=2, depth=2, window=0, glob=(0, 1), dec=16, size=(33, 120)),
    "windows": dict(grid=9, patch=4, dim=24, heads=2, depth=2, window=7, glob=(), dec=16, size=(70, 24)),
    "no_qkv_bias": dict(
        grid=5, patch=16, dim=24, heads=2, depth=2, window=4, glob=(1,), dec=16, size=(45, 51), qkv_bias=False
    ),
    "high_quality": dict(
        grid=6,
        patch=8,
        dim=32,
        heads=2,
        depth=3,
        window=4,
        glob=(1, 2),
        dec=32,
        size=(50, 38),
        hq=True,
        kinds=("points", "mask and point", "single mask"),
    ),
}
# TinyViT for MobileSAM and Light HQ-SAM: width, blocks, heads and window of each stage.  6 cells are the whole map.
TINY = dict(
    patch=16, grid=6, dims=(16, 24, 32, 40), depths=(1, 1, 2, 1), heads=(1, 2, 4, 2), windows=(0, 5, 6, 4), dec=16
)
MODELS["mobile"] = dict(TINY, size=(70, 88), kinds=("points", "box", "single mask"))
MODELS["mobile_high_quality"] = dict(TINY, size=(96, 50), hq=True, kinds=("point", "mask and point"))
TIMM = "timm_encoder"
HUGGINGFACE = {"transformers": "Sam", "transformers_high_quality": "SamHQ"}


class TinyViT(tiny_vit_sam.TinyViT):
    """The reference names its sizes: a map of 64 x 64 cells, a neck of 256 channels, and 320, 448 and 576 as the widths
    to which patches are merged with a stride of 1."""

    def __init__(self, c):
        super().__init__(
            img_size=c["patch"] * c["grid"],
            num_classes=3,
            embed_dims=list(c["dims"]),
            depths=list(c["depths"]),
            num_heads=list(c["heads"]),
            window_sizes=list(c["windows"]),
            mlp_ratio=2,
            drop_path_rate=0,
            mbconv_expand_ratio=2,
        )
        self.layers[2].downsample.conv2.c.stride = (1, 1)
        self.grid, self.high_quality = c["grid"], c.get("hq", False)
        conv, norm = torch.nn.Conv2d, tiny_vit_sam.LayerNorm2d
        first = conv(c["dims"][-1], c["dec"], 1, bias=False)
        second = conv(c["dec"], c["dec"], 3, padding=1, bias=False)
        self.neck = torch.nn.Sequential(first, norm(c["dec"]), second, norm(c["dec"]))

    def forward(self, x):
        x = self.layers[0](self.patch_embed(x))
        maps = []
        for layer in self.layers[1:]:
            x = layer(x)
            maps.append(x.view(len(x), self.grid, self.grid, -1) if x.shape[1] == self.grid**2 else None)
        embedding = self.neck(maps[-1].permute(0, 3, 1, 2))
        return (embedding, maps[:1]) if self.high_quality else embedding


def vit(c, modeling):
    return modeling.ImageEncoderViT(
        img_size=c["grid"] * c["patch"],
        patch_size=c["patch"],
        embed_dim=c["dim"],
        depth=c["depth"],
        num_heads=c["heads"],
        mlp_ratio=2,
        out_chans=c["dec"],
        qkv_bias=c.get("qkv_bias", True),
        norm_layer=partial(torch.nn.LayerNorm, eps=1e-6),
        use_rel_pos=True,
        window_size=c["window"],
        global_attn_indexes=c["glob"],
    )


def package_of(c):
    return segment_anything_hq if c.get("hq") else segment_anything


def build(c, generator):
    modeling = package_of(c).modeling
    encoder = TinyViT(c) if "dims" in c else vit(c, modeling)
    encoder.img_size = c["grid"] * c["patch"]
    prompts = modeling.PromptEncoder(
        embed_dim=c["dec"],
        image_embedding_size=(c["grid"], c["grid"]),
        input_image_size=(encoder.img_size, encoder.img_size),
        mask_in_chans=8,
    )
    transformer = modeling.TwoWayTransformer(depth=2, embedding_dim=c["dec"], num_heads=DECODER_HEADS, mlp_dim=56)
    arguments = dict(transformer_dim=c["dec"], transformer=transformer, iou_head_hidden_dim=24)
    if c.get("hq"):
        decoder = modeling.MaskDecoderHQ(**arguments, vit_dim=c["dims"][2] if "dims" in c else c["dim"])
    else:
        decoder = modeling.MaskDecoder(**arguments)
    return draw_parameters(modeling.Sam(encoder, prompts, decoder), generator)


@contextlib.contextmanager
def float64():
    """The reference names torch.float and torch.float32; inside, both are double."""
    originals = torch.float, torch.float32
    torch.float = torch.float32 = torch.float64
    try:
        yield
    finally:
        torch.float, torch.float32 = originals


def arguments(prompt, mask):
    points = prompt.get("points")
    return dict(
        point_coords=numpy.array(points)[:, :2] if points else None,
        point_labels=numpy.array(points)[:, 2].astype(int) if points else None,
        box=numpy.array(prompt["box"]) if "box" in prompt else None,
        mask_input=mask[None].numpy() if mask is not None else None,
        multimask_output=prompt["multimask"],
    )


def predict(predictor, call):
    """The logits at the image's size, the scores and the logits of a prompt.

    HQ-SAM adds its mask to the best of three; vitrail returns the sum with each of them."""
    decoder = predictor.model.mask_decoder
    if not hasattr(decoder, "hf_token"):
        return tuple(map(torch.from_numpy, predictor.predict(**call, return_logits=True)))
    masks = []
    original = decoder.predict_masks
    decoder.predict_masks = lambda **inputs: masks.append(original(**inputs)) or masks[-1]
    _, best_iou, best = map(torch.from_numpy, predictor.predict(**call, return_logits=True))
    decoder.predict_masks = original
    logits, iou = masks[0]
    chosen = slice(1, 4) if call["multimask_output"] else slice(0, 1)
    low, iou = (logits[:, chosen] + logits[:, 4:])[0].detach(), iou[0, chosen].detach()
    assert iou.max() == best_iou[0] and torch.equal(low[iou.argmax()], best[0])
    full = predictor.model.postprocess_masks(low[None], predictor.input_size, predictor.original_size)
    return full[0], iou, low


@torch.no_grad()
def outputs(c, kinds, generator):
    """The fixture of one draw, and how far float32 is from it, relative to the maximum."""
    model = build(c, generator)
    image = torch.randint(0, 256, (*c["size"], 3), generator=generator, dtype=torch.uint8)
    make = package_of(c).SamPredictor
    approximate, predictor = make(model), make(copy.deepcopy(model).double())
    approximate.set_image(image.numpy())
    with float64():
        predictor.set_image(image.numpy())
    tensors = {"image": image, "embedding": predictor.features[0].float()}
    worst = difference(predictor.features, approximate.features)
    prompts = []
    for number, kind in enumerate(kinds):
        prompt = prompt_of(kind, c, number, generator, tensors)
        call = arguments(prompt, tensors.get(f"mask_{number}"))
        with float64():
            full, iou, low = predict(predictor, call)
        _, iou32, low32 = predict(approximate, call)
        worst = max(worst, difference(low, low32), difference(iou, iou32))
        tensors[f"logits_{number}"] = low.float()
        tensors[f"iou_{number}"] = iou.float()
        tensors[f"signs_{number}"] = torch.where(full.abs() > 1e-3, full.sign(), 0).char()
        prompts.append(prompt)
    return model, tensors, prompts, worst


def meta(name, c, index):
    kinds = list(PROMPTS)
    kinds = kinds if index == 0 else c.get("kinds") or [kinds[(index + step) % len(kinds)] for step in (0, 2, 5)]
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    while True:
        model, tensors, prompts, worst = outputs(c, kinds, generator)
        print(f"{name}: float32 differs by {worst:.1e}")
        if worst < WELL_CONDITIONED:
            break
    write(name, model.state_dict(), "pth", tensors, prompts)
    if "dims" in c:
        (ROOT / name / "config.json").write_text(json.dumps({"image_size": c["grid"] * c["patch"]}) + "\n")


def enlarge_the_transformers_output(decoder):
    """transformers' SamHQMaskDecoder enlarges its input instead of the two-way transformer's output, as SysCV/sam-hq
    does and SamMaskDecoder."""
    maps = []
    transformer, upscale = decoder.transformer.forward, decoder.upscale_conv1.forward

    def attend(*positional, **named):
        result = transformer(*positional, **named)
        maps.append(result[1])
        return result

    def enlarge(x):
        return upscale(maps.pop().transpose(2, 3).reshape(x.shape))

    decoder.transformer.forward, decoder.upscale_conv1.forward = attend, enlarge


def huggingface(name, prefix):
    """transformers' SamModel or SamHQModel: other names, and the same arithmetic."""
    grid, dec, size, high_quality = 6, 32, (48, 37), prefix == "SamHQ"
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    vit = dict(vit_dim=24) if high_quality else {}
    config = getattr(transformers, prefix + "Config")(
        vision_config=dict(
            hidden_size=24,
            output_channels=dec,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=8 * grid,
            patch_size=8,
            window_size=4,
            global_attn_indexes=[1],
            mlp_dim=40,
            num_pos_feats=dec // 2,
        ),
        prompt_encoder_config=dict(
            hidden_size=dec, image_size=8 * grid, patch_size=8, mask_input_channels=8, num_point_embeddings=4
        ),
        mask_decoder_config=dict(
            hidden_size=dec, mlp_dim=56, iou_head_hidden_dim=24, num_attention_heads=DECODER_HEADS, **vit
        ),
    )
    model = draw_parameters(getattr(transformers, prefix + "Model")(config), generator)
    if high_quality:
        enlarge_the_transformers_output(model.mask_decoder)
    # A checkpoint has this buffer twice.
    model.prompt_encoder.shared_embedding.positional_embedding = model.shared_image_embedding.positional_embedding
    image = torch.randint(0, 256, (*size, 3), generator=generator, dtype=torch.uint8)
    pad_size = dict(height=8 * grid, width=8 * grid)
    processor = transformers.SamImageProcessor(size={"longest_edge": 8 * grid}, pad_size=pad_size)
    inputs = processor(image.numpy(), return_tensors="pt")
    with torch.no_grad():
        encoded = model.vision_encoder(inputs["pixel_values"])
    tensors = {"image": image, "embedding": encoded.last_hidden_state[0]}
    features = dict(image_embeddings=tensors["embedding"][None])
    if high_quality:
        features["intermediate_embeddings"] = encoded.intermediate_embeddings
    scale = torch.tensor(inputs["reshaped_input_sizes"][0].tolist()).double() / torch.tensor(size).double()
    prompts = []
    for number, kind in enumerate(["points", "box"]):
        prompt = prompt_of(kind, dict(grid=grid, size=size), number, generator, tensors)
        # transformers sorts the three masks of HQ-SAM by their scores.
        prompt["multimask"] = not high_quality
        call = dict(multimask_output=prompt["multimask"])
        factors = torch.stack([scale[1], scale[0]])
        if "points" in prompt:
            points = torch.tensor(prompt["points"], dtype=torch.float64)
            call["input_points"] = (points[:, :2] * factors).float()[None, None]
            call["input_labels"] = points[:, 2].long()[None, None]
        if "box" in prompt:
            call["input_boxes"] = (torch.tensor(prompt["box"]).double() * factors.repeat(2)).float()[None, None]
        with torch.no_grad():
            out = model(**features, **call)
        tensors[f"logits_{number}"] = out.pred_masks[0, 0]
        tensors[f"iou_{number}"] = out.iou_scores[0, 0]
        prompts.append(prompt)
    with torch.no_grad():
        write(name, dict(model.state_dict()), "safetensors", tensors, prompts)


@torch.no_grad()
def timm_encoder(name):
    """timm's samvit with the preprocessing of Segment Anything.  Its first block has small inputs, so that the eps of
    its norm, which is not that of segment-anything, has an effect."""
    side, size = 48, (37, 48)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    model = timm.create_model(
        "samvit_base_patch16",
        num_classes=0,
        img_size=side,
        patch_size=8,
        embed_dim=24,
        depth=3,
        num_heads=2,
        window_size=4,
        global_attn_indexes=(1,),
        neck_chans=16,
    )
    draw_parameters(model, generator)
    for parameter in (model.pos_embed, model.patch_embed.proj.weight, model.patch_embed.proj.bias):
        parameter.copy_((parameter * 0.004).half().float())
    image = torch.randint(0, 256, (*size, 3), generator=generator, dtype=torch.uint8)
    mean, std = torch.tensor([123.675, 116.28, 103.53]).double(), torch.tensor([58.395, 57.12, 57.375]).double()
    pixels = torch.zeros(1, 3, side, side, dtype=torch.float64)
    pixels[0, :, : size[0], : size[1]] = ((image - mean) / std).permute(2, 0, 1)
    embedding = model.double().forward_features(pixels)[0].float()
    write(name, model.float().state_dict(), "safetensors", {"image": image, "embedding": embedding}, [])


if __name__ == "__main__":
    chosen = sys.argv[1:] or [*MODELS, *HUGGINGFACE, TIMM]
    for index, (name, c) in enumerate(MODELS.items()):
        if name in chosen:
            meta(name, c, index)
    for name, prefix in HUGGINGFACE.items():
        if name in chosen:
            huggingface(name, prefix)
    if TIMM in chosen:
        timm_encoder(TIMM)
