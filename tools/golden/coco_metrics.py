# SPDX-License-Identifier: Apache-2.0
"""COCO's average precision and recall of boxes, masks and key points, by pycocotools.

tests/fixtures/analysis/coco_metrics.json, of drawn objects, and coco_photos.json have for each kind, "bbox", "segm" and
"keypoints", the truth in COCO's JSON, the results in COCO's, "stats" as COCOeval.summarize() prints them, "per_class"
average precisions (null: no object counts) and "curve", the precision of the first category at an overlap of 0.5.

In coco_photos.json the truth was annotated by eye in photographs of at most 640 pixels.  Boxes and masks of the results
are those of `vitrail segment` with the bundled segment-tiny, of everything and in boxes; DeiT-Tiny classified their
crops.  The key points, of heads, are a second annotation with how sure it was.  The script computes its values alone.
"""

import copy
import json
import pathlib

import numpy
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "analysis" / "coco_metrics.json"
PHOTOS = FILE.with_name("coco_photos.json")
WIDTH, HEIGHT, IMAGES = 320, 240, 10
CATEGORIES = [3, 7, 18, 90]  # no object has the last one
POINTS = 17


def draw_box(draw):
    """The sides are those of small, medium and large objects."""
    side = draw.choice([12, 24, 60, 130])
    width, height = numpy.round(side * draw.uniform(0.6, 1.4, 2), 2)
    return [round(draw.uniform(0, WIDTH - width), 2), round(draw.uniform(0, HEIGHT - height), 2), width, height]


def moved(draw, box, by):
    x, y, w, h = box
    x, y = x + draw.normal(0, by) * w, y + draw.normal(0, by) * h
    w, h = w * numpy.exp(draw.normal(0, by)), h * numpy.exp(draw.normal(0, by))
    return [round(float(v), 2) for v in (x, y, w, h)]


def ellipse(box):
    x, y, w, h = box
    rows, columns = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    inside = ((columns - x - w / 2) / (w / 2)) ** 2 + ((rows - y - h / 2) / (h / 2)) ** 2 <= 1
    return inside.astype(numpy.uint8)


def runs(mask, as_text):
    rle = masks.encode(numpy.asfortranarray(mask))
    if as_text:
        return {"size": rle["size"], "counts": rle["counts"].decode()}
    flat = mask.ravel("F")
    changes = numpy.flatnonzero(numpy.diff(flat)) + 1
    edges = [0, *changes.tolist(), flat.size]
    counts = numpy.diff(edges).tolist()
    return {"size": rle["size"], "counts": counts if flat[0] == 0 else [0, *counts]}


def polygons(box):
    x, y, w, h = box
    return [
        [x, y, x + w / 2, y, x + w / 2, y + h, x, y + h],
        [x + w * 0.4, y + h / 4, x + w, y + h / 3, x + w, y + h * 0.9],
    ]


def points_in(draw, box, labelled):
    points = []
    for _ in range(POINTS):
        x, y = box[0] + draw.uniform(0, 1) * box[2], box[1] + draw.uniform(0, 1) * box[3]
        visible = int(draw.integers(0, 3)) if labelled else 0
        points += [round(x, 1), round(y, 1), visible] if visible else [0, 0, 0]
    return points


def segmentation(draw, box, crowd):
    kind = 1 if crowd else draw.integers(0, 3)
    shape = polygons(box) if kind == 0 else runs(ellipse(box), kind == 2)
    of_ellipse = masks.encode(numpy.asfortranarray(ellipse(box)))
    rle = masks.merge(masks.frPyObjects(shape, HEIGHT, WIDTH)) if kind == 0 else of_ellipse
    return shape, float(masks.area(rle))


def annotate(draw, kind, box, number, image):
    crowd = int(draw.random() < 0.08)
    result = {
        "id": number,
        "image_id": image,
        "category_id": int(draw.choice(CATEGORIES[:-1])) if kind != "keypoints" else 1,
        "bbox": box,
        "area": round(box[2] * box[3] * draw.uniform(0.5, 1), 2),
        "iscrowd": crowd,
    }
    if kind == "segm":
        result["segmentation"], result["area"] = segmentation(draw, box, crowd)
    if kind == "keypoints":
        result["keypoints"] = points_in(draw, box, draw.random() > 0.15)
        result["num_keypoints"] = sum(v > 0 for v in result["keypoints"][2::3])
    return result


def detect(draw, kind, truth, box):
    """A detection near an object; some are of another category.  Scores are round, so that many are equal."""
    other = draw.random() < 0.1 and kind != "keypoints"
    result = {
        "image_id": truth["image_id"],
        "category_id": int(draw.choice(CATEGORIES)) if other else truth["category_id"],
        "score": round(float(draw.beta(2, 2)), 2),
    }
    if kind == "bbox":
        result["bbox"] = box
    elif kind == "segm":
        result["segmentation"] = runs(ellipse(box), True)
    else:
        spread = draw.choice([0.01, 0.05, 0.2]) * numpy.sqrt(box[2] * box[3])
        values = numpy.array(truth["keypoints"], float).reshape(-1, 3)
        inside = numpy.array(points_in(draw, box, True), float).reshape(-1, 3)
        values[values[:, 2] == 0] = inside[values[:, 2] == 0]
        values[:, :2] += draw.normal(0, spread, (POINTS, 2))
        values[:, 2] = 1
        result["keypoints"] = [round(v, 1) for v in values.ravel().tolist()]
    return result


def draw_case(draw, kind):
    truth, results = [], []
    images = [int(i) for i in draw.permutation(1000)[:IMAGES]]
    for image in images:
        for _ in range(int(draw.integers(0, 9))):
            box = draw_box(draw)
            truth.append(annotate(draw, kind, box, len(truth) + 1, image))
            for _ in range(int(draw.integers(1, 3))):
                results.append(detect(draw, kind, truth[-1], moved(draw, box, draw.choice([0.01, 0.05, 0.15]))))
        fake = {"image_id": image, "category_id": 1 if kind == "keypoints" else 7, "keypoints": [0, 0, 0] * POINTS}
        results.append(detect(draw, kind, fake, draw_box(draw)))
    draw.shuffle(results)
    ids = [1] if kind == "keypoints" else CATEGORIES
    categories = [{"id": i, "name": f"class {i}"} for i in ids]
    if kind == "keypoints":
        categories[0]["keypoints"] = [f"point {i}" for i in range(POINTS)]
    files = [{"id": i, "file_name": f"{i}.png", "width": WIDTH, "height": HEIGHT} for i in images]
    return {"truth": {"images": files, "annotations": truth, "categories": categories}, "results": results}


def evaluate(case, kind):
    truth = COCO()
    truth.dataset = copy.deepcopy(case["truth"])
    truth.createIndex()
    evaluation = COCOeval(truth, truth.loadRes(copy.deepcopy(case["results"])), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]  # [thresholds, recalls, categories]
    case["stats"] = evaluation.stats.tolist()
    case["per_class"] = [float(p.mean()) if p.max() > -1 else None for p in numpy.moveaxis(precision, 2, 0)]
    case["curve"] = precision[0, :, 0].tolist()


def main():
    draw = numpy.random.default_rng(23)
    cases = {}
    for kind in ("bbox", "segm", "keypoints"):
        cases[kind] = draw_case(draw, kind)
        evaluate(cases[kind], kind)
    photos = json.loads(PHOTOS.read_text())
    for kind, case in photos.items():
        evaluate(case, kind)
    for file, content in ((FILE, cases), (PHOTOS, photos)):
        file.write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
