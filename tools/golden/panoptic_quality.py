# SPDX-License-Identifier: Apache-2.0
"""Panoptic quality of random segments by the formula of COCO's panopticapi (pq_compute_single_core), in numpy.

tests/fixtures/analysis/panoptic_quality.safetensors has truth_N and predicted_N [H, W] i32, their segments as rows of
id, category and crowd, truth_segments_N and predicted_segments_N, and scores [categories, 3], f64: PQ, SQ and RQ, NaN
for a category without a segment.  panopticapi itself has no package.
"""

import pathlib

import numpy
import safetensors.numpy

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "analysis" / "panoptic_quality.safetensors"
CATEGORIES = 6  # none has the last one
IMAGES = 12
SIZE = (24, 30)


def draw_map(draw, void, crowds):
    """Rectangles over each other: ids, and the segments that have pixels."""
    ids = numpy.zeros(SIZE, numpy.int32)
    rows = {}
    for _ in range(draw.integers(3, 9)):
        segment = int(draw.integers(1, 1 << 24))
        top, left = draw.integers(0, SIZE[0] - 4), draw.integers(0, SIZE[1] - 4)
        ids[top : top + draw.integers(4, 16), left : left + draw.integers(4, 20)] = segment
        rows[segment] = [segment, int(draw.integers(0, CATEGORIES - 1)), int(crowds and draw.random() < 0.2)]
    if void:
        ids[draw.random(SIZE) < 0.05] = 0
    return ids, [rows[i] for i in numpy.unique(ids) if i in rows]


def disturbed(draw, ids, rows):
    """A prediction that is similar to the truth: shifted, with other ids, some segments lost or of another category."""
    ids = numpy.roll(ids, draw.integers(-1, 2, 2), (0, 1))
    result, kept = numpy.zeros_like(ids), []
    for segment, category, _ in rows:
        if draw.random() < 0.15 or not (ids == segment).any():
            continue
        other = int(draw.integers(1, 1 << 24))
        result[ids == segment] = other
        kept.append([other, int(draw.integers(0, CATEGORIES - 1)) if draw.random() < 0.15 else category, 0])
    extra = int(draw.integers(1, 1 << 24))
    result[2:9, 3:11] = extra
    kept.append([extra, int(draw.integers(0, CATEGORIES - 1)), 0])
    present = set(numpy.unique(result).tolist())
    return result, [row for row in kept if row[0] in present]


def count(totals, truth, truth_rows, predicted, predicted_rows):
    area = {i: int((predicted == i).sum()) for i, _, _ in predicted_rows}
    truth_area = {i: int((truth == i).sum()) for i, _, _ in truth_rows}
    truth_info, predicted_info = {r[0]: r for r in truth_rows}, {r[0]: r for r in predicted_rows}
    pairs, counts = numpy.unique(numpy.stack([truth.ravel(), predicted.ravel()]), axis=1, return_counts=True)
    both = {(int(a), int(b)): int(n) for (a, b), n in zip(pairs.T, counts, strict=True)}
    truth_matched, predicted_matched = set(), set()
    for (a, b), intersection in both.items():
        if a not in truth_info or b not in predicted_info or truth_info[a][2]:
            continue
        if truth_info[a][1] != predicted_info[b][1]:
            continue
        union = area[b] + truth_area[a] - intersection - both.get((0, b), 0)
        if intersection / union > 0.5:
            totals[truth_info[a][1]] += [intersection / union, 1, 0, 0]
            truth_matched.add(a)
            predicted_matched.add(b)
    crowds = {}
    for a, category, crowd in truth_rows:
        if a in truth_matched:
            continue
        if crowd:
            crowds[category] = a
            continue
        totals[category][2] += 1
    for b, category, _ in predicted_rows:
        if b in predicted_matched:
            continue
        intersection = both.get((0, b), 0)
        if category in crowds:
            intersection += both.get((crowds[category], b), 0)
        if intersection / area[b] > 0.5:
            continue
        totals[category][3] += 1


def main():
    draw = numpy.random.default_rng(7)
    totals = numpy.zeros((CATEGORIES, 4))
    arrays = {}
    for i in range(IMAGES):
        truth, truth_rows = draw_map(draw, void=True, crowds=True)
        predicted, predicted_rows = disturbed(draw, truth, truth_rows)
        count(totals, truth, truth_rows, predicted, predicted_rows)
        arrays |= {
            f"truth_{i}": truth,
            f"predicted_{i}": predicted,
            f"truth_segments_{i}": numpy.array(truth_rows, numpy.int32),
            f"predicted_segments_{i}": numpy.array(predicted_rows, numpy.int32),
        }
    print(totals)
    iou, hits, missed, wrong = totals.T
    with numpy.errstate(invalid="ignore"):
        every = hits + missed / 2 + wrong / 2
        arrays["scores"] = numpy.stack([iou / every, iou / numpy.maximum(hits, 1), hits / every], axis=1)
    arrays["scores"][every == 0] = numpy.nan
    safetensors.numpy.save_file(arrays, FILE)


if __name__ == "__main__":
    main()
