# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/sam/automatic.safetensors: automatic masks of segment_anything from stored logits.

"logits" [K, 24, 24] f32 are low-resolution masks and "iou" [M] f32 predicted IoUs. Mask m of point p of crop c has
logits (31 c + 7 p + 13 m) mod K and IoU (5 c + 11 p + 3 m) mod M. The metadata "config" lists for each set of
parameters the masks that SamAutomaticMaskGenerator returns for an image of 200 × 150 pixels.
"""

import json
import pathlib
import types

import numpy
import segment_anything
import torch
from safetensors.numpy import save_file
from segment_anything.automatic_mask_generator import SamAutomaticMaskGenerator
from segment_anything.modeling import Sam

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/sam/automatic.safetensors"
WIDTH, HEIGHT, SIDE, INPUT = 200, 150, 24, 96
K, M = 37, 53


def blob(random, index):
    if index % 12 == 5:
        return -numpy.ones((SIDE, SIDE))
    if index % 12 == 11:
        return 4 * numpy.ones((SIDE, SIDE))
    y, x = numpy.mgrid[:SIDE, :SIDE]
    family = numpy.random.default_rng(index % 6)  # some blobs are nearly equal
    cx, cy = family.uniform(5, 18, 2) + random.uniform(-0.6, 0.6, 2)
    rx, ry = family.uniform(2, 6, 2) + random.uniform(-0.3, 0.3, 2)
    logits = (1 - numpy.hypot((x - cx) / rx, (y - cy) / ry)) * random.choice([1.5, 6, 25])
    if index % 4 == 1:  # a hole and an island
        logits[int(cy), int(cx)] = -6
        logits[2 if cy > 12 else 20, 3] = 5
    return logits + random.normal(size=logits.shape) * 0.02


class StoredPredictor(segment_anything.SamPredictor):
    crop = -1

    def set_image(self, image):
        self.crop, self.point = self.crop + 1, 0
        self.original_size = image.shape[:2]
        self.input_size = self.transform.get_preprocess_shape(*self.original_size, INPUT)

    def predict_torch(self, points, labels, multimask_output, return_logits):
        assert multimask_output and return_logits and (labels == 1).all()
        p = self.point + torch.arange(len(points))[:, None]
        self.point += len(points)
        m = torch.arange(3)[None]
        low = self.model.logits[(31 * self.crop + 7 * p + 13 * m) % K]
        iou = self.model.iou[(5 * self.crop + 11 * p + 3 * m) % M]
        return Sam.postprocess_masks(self.model, low, self.input_size, self.original_size), iou, low


PARAMETERS = {
    "defaults": {"pred_iou_thresh": 0.88, "stability_score_thresh": 0.95},
    "fewer_points": {"points_per_side": 4},
    "batches_of_seven": {"points_per_batch": 7},
    "no_thresholds": {"pred_iou_thresh": 0, "stability_score_thresh": 0, "box_nms_thresh": 1.0},
    "iou_threshold": {"pred_iou_thresh": 0.5},
    "stability_threshold": {"stability_score_thresh": 0.6},
    "stability_offset": {"stability_score_offset": 0.2},
    "box_nms": {"pred_iou_thresh": 0, "box_nms_thresh": 0.2},
    "crops": {"crop_n_layers": 1},
    "two_layers": {"crop_n_layers": 2, "crop_n_points_downscale_factor": 2, "stability_score_thresh": 0.5},
    "overlap": {"crop_n_layers": 1, "crop_overlap_ratio": 0.05, "pred_iou_thresh": 0.2},
    "crop_nms": {"crop_n_layers": 1, "crop_nms_thresh": 0.1, "pred_iou_thresh": 0.2},
    "small_regions": {
        "min_mask_region_area": 200,
        "pred_iou_thresh": 0,
        "stability_score_thresh": 0.3,
        "box_nms_thresh": 0.5,
        "crop_nms_thresh": 0.5,
    },
    "large_regions": {"min_mask_region_area": 3000, "pred_iou_thresh": 0.3, "stability_score_thresh": 0.5},
    "small_regions_of_crops": {
        "min_mask_region_area": 60,
        "crop_n_layers": 1,
        "crop_nms_thresh": 0.4,
        "pred_iou_thresh": 0.3,
        "stability_score_thresh": 0,
    },
    "grids": {"points_per_side": None, "point_grids": [[[0.1, 0.9], [0.5, 0.5], [0.25, 0.75]]], "pred_iou_thresh": 0.1},
}

random = numpy.random.default_rng(2023)
model = types.SimpleNamespace(
    mask_threshold=0.0,
    device="cpu",
    image_encoder=types.SimpleNamespace(img_size=INPUT),
    logits=torch.from_numpy(numpy.stack([blob(random, i) for i in range(K)]).astype(numpy.float32)),
    iou=torch.from_numpy((random.integers(0, 24, M) / 22).astype(numpy.float32)),  # with ties
)
image = numpy.zeros((HEIGHT, WIDTH, 3), numpy.uint8)
cases = {}
for name, given in PARAMETERS.items():
    parameters = {"points_per_side": 6, "stability_score_thresh": 0.8, "pred_iou_thresh": 0.4} | given
    grids = {"point_grids": [numpy.array(grid) for grid in given["point_grids"]]} if "point_grids" in given else {}
    generator = SamAutomaticMaskGenerator(model, output_mode="coco_rle", **(parameters | grids))
    generator.predictor = StoredPredictor(model)
    masks = generator.generate(image)
    for mask in masks:
        mask["segmentation"] = mask["segmentation"]["counts"]
        mask["stability_score"] = str(mask["stability_score"])  # NaN of an empty mask
    cases[name] = {"parameters": parameters, "masks": masks}
    print(name, len(masks))
save_file(
    {"logits": model.logits.numpy(), "iou": model.iou.numpy()},
    PATH,
    metadata={"config": json.dumps(cases), "reference": "segment-anything 1.0"},
)
