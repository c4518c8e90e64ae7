# SPDX-License-Identifier: Apache-2.0
"""Models that give maps, as peer.py times them: classes of transformers with random weights.

MODELS has name: (function, height and width of the input, "size" of its image processor).  They have the published
sizes.
"""

import json

import torch


def depth_anything_v2_small(transformers):
    backbone = transformers.Dinov2Config(
        hidden_size=384,
        num_attention_heads=6,
        num_hidden_layers=12,
        image_size=518,
        patch_size=14,
        out_indices=[3, 6, 9, 12],
        reshape_hidden_states=False,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=384, neck_hidden_sizes=[48, 96, 192, 384]
    )
    return transformers.DepthAnythingForDepthEstimation(config)


def dpt_large(transformers):
    config = transformers.DPTConfig(
        hidden_size=1024,
        num_attention_heads=16,
        num_hidden_layers=24,
        intermediate_size=4096,
        image_size=384,
        backbone_out_indices=[5, 11, 17, 23],
        neck_hidden_sizes=[256, 512, 1024, 1024],
        is_hybrid=False,
    )
    return transformers.DPTForDepthEstimation(config)


def eomt_base(transformers):
    config = transformers.EomtConfig(
        hidden_size=768,
        num_attention_heads=12,
        num_hidden_layers=12,
        image_size=640,
        patch_size=16,
        num_queries=200,
        num_blocks=3,
        id2label={index: str(index) for index in range(133)},
    )
    model = transformers.EomtForUniversalSegmentation(config)
    model.attn_mask_probs.zero_()  # as in published models, whose training has ended
    return model


MODELS = {
    "depth_anything_v2_small": (depth_anything_v2_small, (518, 518), {"height": 518, "width": 518}),
    "dpt_large": (dpt_large, (384, 384), {"height": 384, "width": 384}),
    "eomt_base": (eomt_base, (640, 640), {"shortest_edge": 640, "longest_edge": 640}),
}


class Output(torch.nn.Module):
    """A model that gives the field of its output that the task is about."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        if hasattr(model, "attn_mask_probs"):  # numbers, because exporters refuse branches on tensors
            probabilities = model.attn_mask_probs.tolist()
            del model.attn_mask_probs
            model.attn_mask_probs = probabilities

    def forward(self, images):
        output = self.model(pixel_values=images)
        depth = getattr(output, "predicted_depth", None)
        return depth if depth is not None else output.masks_queries_logits


def make(name):
    """The model and the height and width of its input."""
    import transformers

    function, size, _ = MODELS[name]
    torch.manual_seed(0)
    return function(transformers), size


def save(name, folder):
    """Writes the model as vitrail reads it, once."""
    if not (folder / "preprocessor_config.json").exists():
        make(name)[0].save_pretrained(folder)
        with open(folder / "preprocessor_config.json", "w") as file:
            json.dump({"size": MODELS[name][2]}, file)
    return folder


if __name__ == "__main__":
    import pathlib
    import sys

    print(save(sys.argv[1], pathlib.Path(sys.argv[2])))
