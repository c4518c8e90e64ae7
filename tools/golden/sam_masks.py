# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/sam/masks.safetensors: what pycocotools, segment_anything.utils.amg and OpenCV make of masks.

For each case NAME.mask [h, w] u8, NAME.holes and NAME.islands (small regions removed); NAME.logits [h, w] f32 where the
mask is a threshold of logits. The metadata "config" has for each case the run lengths, pycocotools' string, area and
boxes, the numbers of OpenCV's outer and inner contours, the stability scores; and boxes with the kept ones of
torchvision's NMS, crops and grids of points.
"""

import json
import pathlib

import cv2
import numpy
import torch
import torchvision
from pycocotools import mask as coco
from safetensors.numpy import save_file
from segment_anything.utils import amg

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/sam/masks.safetensors"
OFFSETS = [0.0, 0.5, 1.0, 3.0]


def smooth(random, height, width, sigma):
    field = cv2.GaussianBlur(random.normal(size=(height, width)), (0, 0), sigma)
    return (field / field.std() * 3).astype(numpy.float32)


def logits_of_cases():
    random = numpy.random.default_rng(31)
    yield "noise", random.normal(size=(23, 37)).astype(numpy.float32), 4
    yield "sparse", random.normal(-1.5, 1, size=(41, 19)).astype(numpy.float32), 3
    yield "blobs", smooth(random, 60, 70, 3), 30
    yield "large", smooth(random, 101, 130, 5), 150
    yield "rare", smooth(random, 64, 65, 2) - 6, 50
    yield "row", random.normal(size=(1, 17)).astype(numpy.float32), 2
    yield "column", random.normal(size=(17, 1)).astype(numpy.float32), 2
    yield "pixel", numpy.ones((1, 1), numpy.float32), 5
    yield "empty", -numpy.ones((5, 7), numpy.float32), 5
    yield "full", numpy.ones((5, 7), numpy.float32), 50
    squares = -numpy.ones((16, 24), numpy.float32)  # islands of equal size, the first one not in the first row
    for y, x in ((1, 12), (0, 18), (9, 2), (10, 20)):
        squares[y : y + 3, x : x + 3] = 1
    yield "ties", squares, 20
    ring = -numpy.ones((20, 20), numpy.float32)  # a hole with an island, and a hole open at a corner
    ring[2:15, 2:15] = 1
    ring[4:12, 4:12] = -1
    ring[6:9, 6:9] = 1
    ring[7, 7] = -1
    ring[14, 14] = -1
    ring[16:18, 16:18] = 1
    yield "nested", ring, 6


def contours(mask):
    padded = numpy.pad(mask, 1)
    _, hierarchy = cv2.findContours(padded, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    parents = [] if hierarchy is None else hierarchy[0][:, 3]
    return [int(sum(p < 0 for p in parents)), int(sum(p >= 0 for p in parents))]


def case_of(logits, min_area):
    mask = logits > 0
    rle = amg.mask_to_rle_pytorch(torch.from_numpy(mask)[None])[0]
    encoded = coco.encode(numpy.asfortranarray(mask.astype(numpy.uint8)))
    assert encoded["counts"].decode() == amg.coco_encode_rle(rle)["counts"]
    holes, holes_changed = amg.remove_small_regions(mask, min_area, "holes")
    islands, islands_changed = amg.remove_small_regions(mask, min_area, "islands")
    return (
        {"mask": mask, "holes": holes, "islands": islands},
        {
            "counts": rle["counts"],
            "coco": encoded["counts"].decode(),
            "area": int(coco.area(encoded)),
            "coco_bbox": coco.toBbox(encoded).tolist(),
            "box": amg.batched_mask_to_box(torch.from_numpy(mask)).tolist(),
            "min_area": min_area,
            "holes_changed": holes_changed,
            "islands_changed": islands_changed,
            "contours": contours(mask.astype(numpy.uint8)),
            "stability": [
                str(float(amg.calculate_stability_score(torch.from_numpy(logits)[None], 0.0, offset)[0]))
                for offset in OFFSETS
            ],
        },
    )


def suppression(seed, count, threshold):
    random = numpy.random.default_rng(seed)
    corner = random.integers(0, 40, size=(count, 2))
    boxes = numpy.concatenate([corner, corner + random.integers(0, 25, size=(count, 2))], axis=1)
    scores = random.integers(0, 12, size=count).astype(numpy.float32) / 8  # with ties
    kept = torchvision.ops.nms(torch.from_numpy(boxes).float(), torch.from_numpy(scores), threshold)
    return {"boxes": boxes.tolist(), "scores": scores.tolist(), "threshold": threshold, "kept": kept.tolist()}


tensors, config = {}, {"cases": {}, "offsets": OFFSETS}
for name, logits, min_area in logits_of_cases():
    arrays, config["cases"][name] = case_of(logits, min_area)
    tensors |= {f"{name}.{key}": value.astype(numpy.uint8) for key, value in arrays.items()}
    tensors[f"{name}.logits"] = logits
config["nms"] = [suppression(seed, 60, threshold) for seed, threshold in ((1, 0.7), (2, 0.3), (3, 0.0), (4, 1.0))]
config["crops"] = [
    {"size": [w, h], "layers": n, "ratio": ratio, "boxes": boxes, "layer": layers}
    for w, h, n, ratio in ((640, 480, 1, 512 / 1500), (333, 517, 2, 512 / 1500), (100, 100, 3, 0.0), (97, 250, 1, 1.0))
    for boxes, layers in [amg.generate_crop_boxes((h, w), n, ratio)]
]
config["grids"] = {str(n): amg.build_point_grid(n).tolist() for n in (1, 2, 3, 7, 10)}
PATH.parent.mkdir(exist_ok=True)
tensors = {key: numpy.ascontiguousarray(value) for key, value in tensors.items()}
save_file(tensors, PATH, metadata={"config": json.dumps(config), "reference": f"OpenCV {cv2.__version__}"})
print(f"{PATH}: {len(config['cases'])} cases")
