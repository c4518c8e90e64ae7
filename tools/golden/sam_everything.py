# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/sam/everything.json: automatic masks of segment_anything, from an image to its masks.

The model and the image are those of the fixture "exact_windows" (tools/golden/sam.py). For each set of parameters the
file lists the masks that SamAutomaticMaskGenerator returns. A set is refused if it has no masks, or if a score is so
near a threshold that another order of additions could change the result.
"""

import json
import pathlib

import torch
from safetensors.numpy import load_file
from sam import MODELS, ROOT, build
from segment_anything.automatic_mask_generator import SamAutomaticMaskGenerator

NAME = "exact_windows"
PATH = ROOT / "everything.json"
LOOSE = {"points_per_side": 4, "pred_iou_thresh": 0, "stability_score_thresh": 0, "box_nms_thresh": 1.0}
PARAMETERS = {
    "all": {},
    "thresholds": {"pred_iou_thresh": 0.88, "stability_score_thresh": 0.5},
    "stability_offset": {"stability_score_offset": 0.3, "stability_score_thresh": 0.8},
    "suppression": {"box_nms_thresh": 0.9},
    "crops": {"points_per_side": 3, "crop_n_layers": 1, "crop_nms_thresh": 1.0},
    "small_regions": {"min_mask_region_area": 60},
}
MARGIN = 1e-3


def check_margins(parameters, generator):
    """Refuses parameters for which a score of any point is nearly a threshold."""
    loose = parameters | {"pred_iou_thresh": 0, "stability_score_thresh": 0, "min_mask_region_area": 0}
    for mask in generator(loose | {"box_nms_thresh": 1.0, "crop_nms_thresh": 1.0}):
        for score, name in (("predicted_iou", "pred_iou_thresh"), ("stability_score", "stability_score_thresh")):
            threshold = parameters[name]
            if threshold > 0 and abs(mask[score] - threshold) < MARGIN:
                raise SystemExit(f"{score} {mask[score]} is near the threshold {threshold}: choose another one")


golden = load_file(ROOT / NAME / "golden.safetensors")
model = build(MODELS[NAME], torch.Generator())
state = torch.load(pathlib.Path(ROOT / NAME / "model.pth"), weights_only=True)
model.load_state_dict({name: value.float() for name, value in state.items()})


def generated(parameters):
    return SamAutomaticMaskGenerator(model, output_mode="coco_rle", **parameters).generate(golden["image"])


cases = {}
for name, given in PARAMETERS.items():
    parameters = LOOSE | given
    check_margins({"min_mask_region_area": 0} | parameters, generated)
    masks = generated(parameters)
    for mask in masks:
        mask["segmentation"] = mask["segmentation"]["counts"]
    if not masks:
        raise SystemExit(f"{name}: no masks")
    cases[name] = {"parameters": parameters, "masks": masks}
    print(name, len(masks))
PATH.write_text(json.dumps({"reference": "segment-anything 1.0", "cases": cases}, separators=(",", ":")) + "\n")
