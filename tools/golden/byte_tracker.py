# SPDX-License-Identifier: Apache-2.0
"""Fixtures of ByteTrack: tests/fixtures/analysis/byte_tracker.safetensors.

Scenes are drawn: objects enter, cross, hide behind each other, disappear for a while and leave; a detector misses some,
is unsure of hidden ones, and finds some that are not there.  NAME.boxes [boxes, 5] has left, top, right, bottom and
score, NAME.labels [boxes], and NAME.ids [boxes] its identity by the tracker below, or 0.  NAME.counts [frames] is the
number of boxes of each frame, and NAME.steps [frames] is 2 where the frame in front was dropped, else 1.

The tracker is written from Zhang et al. 2022 (algorithm 1 and the released BYTETracker) with the whole matrices of the
Kalman filter of Wojke et al. 2017.  Assignment with a limit of the cost is that of lap.lapjv(extend_cost=True,
cost_limit=…): the costs of rows and columns without a partner, half the limit each, extend the matrix.
"""

import pathlib

import numpy
import safetensors.numpy
from scipy.optimize import linear_sum_assignment

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "analysis" / "byte_tracker.safetensors"
HIGH, LOW, NEW, MAX_LOST = 0.5, 0.1, 0.6, 30
TRANSITION = numpy.eye(8) + numpy.eye(8, k=4)
OBSERVATION = numpy.eye(4, 8)


def measured(box):
    left, top, right, bottom = box
    return numpy.array([(left + right) / 2, (top + bottom) / 2, (right - left) / (bottom - top), bottom - top])


def noise(height, position, aspect, velocity=None, aspect_velocity=None):
    std = [position * height, position * height, aspect, position * height]
    if velocity is not None:
        std += [velocity * height, velocity * height, aspect_velocity, velocity * height]
    return numpy.diag(numpy.square(std))


class Track:
    def __init__(self, box, label, number, frame, confirmed):
        z = measured(box)
        self.mean = numpy.concatenate([z, numpy.zeros(4)])
        self.covariance = noise(z[3], 2 / 20, 1e-2, 10 / 160, 1e-5)
        self.label, self.number, self.confirmed = label, number, confirmed
        self.first = self.last = frame
        self.is_lost = False

    def predict(self):
        if self.is_lost:
            self.mean[7] = 0
        added = noise(self.mean[3], 1 / 20, 1e-2, 1 / 160, 1e-5)
        self.mean = TRANSITION @ self.mean
        self.covariance = TRANSITION @ self.covariance @ TRANSITION.T + added

    def correct(self, box, frame):
        innovation = measured(box) - OBSERVATION @ self.mean
        s = OBSERVATION @ self.covariance @ OBSERVATION.T + noise(self.mean[3], 1 / 20, 1e-1)
        gain = numpy.linalg.solve(s, OBSERVATION @ self.covariance).T
        self.mean = self.mean + gain @ innovation
        self.covariance = self.covariance - gain @ s @ gain.T
        self.last, self.confirmed, self.is_lost = frame, True, False

    def box(self):
        x, y, aspect, height = self.mean[:4]
        return numpy.array([x - aspect * height / 2, y - height / 2, x + aspect * height / 2, y + height / 2])


def iou(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def assign(costs, limit):
    rows, columns = costs.shape
    extended = numpy.full((rows + columns, rows + columns), limit / 2)
    extended[rows:, columns:] = 0
    extended[:rows, :columns] = costs
    pairs = zip(*linear_sum_assignment(extended), strict=True)
    return [(i, j) for i, j in pairs if i < rows and j < columns]


class Tracker:
    def __init__(self):
        self.tracked, self.lost, self.frame, self.number = [], [], 0, 0

    def associate(self, tracks, detections, limit, with_score, frame, ids):
        costs = numpy.ones((len(tracks), len(detections)))
        for i, track in enumerate(tracks):
            for j, (_, box, score, label) in enumerate(detections):
                if track.label == label:
                    costs[i, j] = 1 - iou(track.box(), box) * (score if with_score else 1)
        pairs = assign(costs, limit)
        for i, j in pairs:
            tracks[i].correct(detections[j][1], frame)
            ids[detections[j][0]] = tracks[i].number
        rows, columns = {i for i, _ in pairs}, {j for _, j in pairs}
        return (
            [t for i, t in enumerate(tracks) if i in rows],
            [t for i, t in enumerate(tracks) if i not in rows],
            [d for j, d in enumerate(detections) if j not in columns],
        )

    def update(self, boxes, scores, labels, frames=1):
        is_first = self.frame == 0
        self.frame += frames
        ids = {}
        every = list(zip(range(len(boxes)), boxes, scores, labels, strict=True))
        high = [d for d in every if d[2] > HIGH]
        low = [d for d in every if LOW < d[2] < HIGH]
        confirmed = [t for t in self.tracked if t.confirmed]
        unconfirmed = [t for t in self.tracked if not t.confirmed]
        pool = confirmed + self.lost
        for track in pool:
            for _ in range(frames):
                track.predict()
        found, missed, high = self.associate(pool, high, 0.8, True, self.frame, ids)
        missed = [t for t in missed if not t.is_lost]
        again, missed, _ = self.associate(missed, low, 0.5, False, self.frame, ids)
        kept, _, high = self.associate(unconfirmed, high, 0.7, True, self.frame, ids)
        for track in missed:
            track.is_lost = True
        self.tracked = found + again + kept
        self.lost = [t for t in self.lost if t.is_lost and self.frame - t.last <= MAX_LOST] + missed
        for index, box, score, label in high:
            if score < NEW:
                continue
            self.number += 1
            self.tracked.append(Track(box, label, self.number, self.frame, is_first))
            if is_first:
                ids[index] = self.number
        worse = set()
        for a in self.tracked:
            for b in self.lost:
                if a.label == b.label and 1 - iou(a.box(), b.box()) < 0.15:
                    worse.add(b.number if a.last - a.first > b.last - b.first else a.number)
        self.tracked = [t for t in self.tracked if t.number not in worse]
        self.lost = [t for t in self.lost if t.number not in worse]
        alive = {t.number for t in self.tracked}
        return [ids[i] if ids.get(i) in alive else 0 for i in range(len(boxes))]


def drawn(random, frames, objects, kinds, speed, jitter, growth):
    """Boxes, scores and labels of each frame."""
    movers = []
    for _ in range(objects):
        first = int(random.integers(0, frames // 2))
        hidden = int(random.integers(first, frames))
        movers.append(
            {
                "centre": random.uniform(80, 560, 2),
                "velocity": random.normal(0, speed, 2),
                "size": random.uniform([30, 50], [70, 140]),
                "growth": 1 + random.normal(0, growth),
                "label": int(random.integers(0, kinds)),
                "span": (first, int(random.integers(frames // 2, frames + 10))),
                "hidden": (hidden, hidden + int(random.integers(3, 45))),
            }
        )
    result = []
    for frame in range(frames):
        found = []
        for depth, mover in enumerate(movers):
            mover["velocity"] += random.normal(0, speed / 12, 2)
            mover["centre"] = mover["centre"] + mover["velocity"]
            mover["size"] = numpy.clip(mover["size"] * mover["growth"], 12, 300)
            box = numpy.concatenate([mover["centre"] - mover["size"] / 2, mover["centre"] + mover["size"] / 2])
            mover["box"] = box
            if not mover["span"][0] <= frame < mover["span"][1]:
                continue
            if mover["hidden"][0] <= frame < mover["hidden"][1] or random.random() < 0.03:
                continue
            cover = max((iou(box, other["box"]) for other in movers[:depth]), default=0)
            score = random.uniform(0.62, 0.98) - 1.2 * cover - (0.3 if random.random() < 0.1 + jitter / 50 else 0)
            if score > 0.02:
                found.append((box + random.normal(0, jitter, 4), score, mover["label"]))
        for _ in range(random.poisson(0.3)):
            corner = random.uniform(0, 500, 2)
            box = numpy.concatenate([corner, corner + random.uniform(30, 120, 2)])
            found.append((box, random.uniform(0.05, 0.75), int(random.integers(0, kinds))))
        random.shuffle(found)
        result.append(found)
    return result


def main():
    tensors = {}
    scenes = {
        "few": (4, 1, 3, 1.5, 0),
        "crowd": (14, 1, 4, 1.5, 0),
        "labels": (10, 3, 4, 1.5, 0),
        "fast": (6, 1, 14, 3, 0.01),
        "still": (8, 2, 0.5, 1.5, 0),
        "rough": (9, 1, 5, 8, 0),
        "growing": (8, 1, 3, 3, 0.03),
    }
    for seed, (name, scene) in enumerate(scenes.items()):
        tracker, rows, labels, counts, steps, ids = Tracker(), [], [], [], [], []
        random = numpy.random.default_rng(seed)
        for frame, found in enumerate(drawn(random, 90, *scene)):
            if name == "few" and frame % 3 == 1:
                continue  # a dropped frame
            boxes = numpy.array([f[0] for f in found], numpy.float32).reshape(-1, 4)
            scores = numpy.array([f[1] for f in found], numpy.float32)
            steps.append(2 if name == "few" and frame % 3 == 2 else 1)
            counts.append(len(found))
            kept = tracker.update(boxes.astype(float), scores.astype(float), [f[2] for f in found], steps[-1])
            rows += [[*box, score] for box, score in zip(boxes, scores, strict=True)]
            labels += [f[2] for f in found]
            ids += kept
        tensors[f"{name}.boxes"] = numpy.array(rows, numpy.float32)
        tensors[f"{name}.labels"] = numpy.array(labels, numpy.int32)
        tensors[f"{name}.counts"] = numpy.array(counts, numpy.int32)
        tensors[f"{name}.steps"] = numpy.array(steps, numpy.int32)
        tensors[f"{name}.ids"] = numpy.array(ids, numpy.int32)
        print(name, len(rows), "boxes", max(ids), "identities", sum(i == 0 for i in ids), "without one")
    safetensors.numpy.save_file(tensors, FILE)


if __name__ == "__main__":
    main()
