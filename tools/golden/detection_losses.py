# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the losses of detectors, in float64 by PyTorch's autograd.

tests/fixtures/ops/box_losses.safetensors: NAME.loss and NAME.grad of `l1`, `giou` and `iou_aware`, by the formulas of
transformers' image losses.  tests/fixtures/train/detection_losses.safetensors: `softmax.*`, the loss of transformers'
YolosForObjectDetection, and `iou_aware.*`, that of its LW-DETR and RF-DETR with two groups of queries, outputs of the
encoder and of the decoder's layers; .loss, and .logits.i.grad and .boxes.i.grad of each output i.
"""

import json

import safetensors.torch
import torch
from losses import ROOT, draw
from transformers.image_transforms import center_to_corners_format
from transformers.loss.loss_for_object_detection import HungarianMatcher, ImageLoss, generalized_box_iou
from transformers.loss.loss_lw_detr import LwDetrHungarianMatcher, LwDetrImageLoss

CLASSES, GROUPS, QUERIES = 4, 2, 5
WEIGHTS = {"loss_ce": 1.0, "loss_bbox": 5.0, "loss_giou": 2.0}


def boxes(name, *shape):
    """Centres in the image, sizes from 0.1 to 0.5."""
    values = draw(name, *shape, 4).sigmoid()
    values[..., 2:] = 0.1 + 0.4 * values[..., 2:]
    return values.float().double()


def save(path, tensors, **config):
    path.parent.mkdir(exist_ok=True)
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    safetensors.torch.save_file(tensors, path, {"config": json.dumps(config)})
    print(path, path.stat().st_size)


def box_losses():
    predicted, target = boxes("predicted", 12), boxes("target", 12)
    target[:3] = predicted[:3] + 0.01 * torch.tensor([1.0, -2, 3, 1])  # overlapping pairs
    target[3, :2], target[3, 2:] = predicted[3, :2] + 0.003, predicted[3, 2:] / 4  # one inside the other
    target = target.float().double()
    logits, quality = draw("logits", 6, CLASSES, scale=3.0), draw("quality", 6, CLASSES).sigmoid()
    quality = torch.where(draw("matched", 6, CLASSES) > 0.5, quality, 0).float().double()
    tensors = {"predicted": predicted, "target": target, "logits": logits, "quality": quality}

    def iou_aware(x):
        p = x.sigmoid()
        negative = torch.where(quality > 0, 1 - quality, p**2)
        return (-quality * p.log() - negative * (1 - p).log()).sum()

    def giou(x):
        return (1 - generalized_box_iou(center_to_corners_format(x), center_to_corners_format(target)).diag()).sum()

    cases = {
        "l1": (predicted, lambda x: (x - target).abs().sum()),
        "giou": (predicted, giou),
        "iou_aware": (logits, iou_aware),
    }
    for name, (values, loss) in cases.items():
        x = values.clone().requires_grad_()
        result = loss(x)
        result.backward()
        tensors[f"{name}.loss"], tensors[f"{name}.grad"] = result, x.grad
    save(ROOT / "box_losses.safetensors", tensors)


def targets():
    """Objects of three images: two, none, and more than a group has queries."""
    numbers = {0: 2, 1: 0, 2: QUERIES + 1}
    return [
        {
            "class_labels": torch.arange(count) * (i + 1) % CLASSES,
            "boxes": boxes(f"objects {i}", count),
        }
        for i, count in numbers.items()
    ]


def total(losses):
    return sum(value * WEIGHTS[name.rsplit("_", 1)[0] if name not in WEIGHTS else name]
               for name, value in losses.items() if not name.startswith("cardinality"))  # fmt: skip


def detection_losses():
    objects, tensors = targets(), {}
    for i, image in enumerate(objects):
        tensors[f"classes.{i}"], tensors[f"objects.{i}"] = image["class_labels"], image["boxes"]

    def outputs(name, count, queries, columns):
        made = []
        for i in range(count):
            logits = draw(f"{name} logits {i}", len(objects), queries, columns, scale=2.0).requires_grad_()
            made.append({"logits": logits, "pred_boxes": boxes(f"{name} boxes {i}", len(objects), queries)})
            made[-1]["pred_boxes"].requires_grad_()
        return made

    softmax = outputs("softmax", 1, 2 * QUERIES, CLASSES + 1)
    criterion = ImageLoss(HungarianMatcher(1, 5, 2), CLASSES, 0.1, ["labels", "boxes"]).double()
    aware = outputs("iou_aware", 3, GROUPS * QUERIES, CLASSES)
    matcher = LwDetrHungarianMatcher(2, 5, 2)
    grouped = LwDetrImageLoss(matcher, CLASSES, 0.25, ["labels", "boxes"], GROUPS).double().train()
    parts = {"auxiliary_outputs": [aware[1]], "enc_outputs": aware[2]}
    for name, made, loss in [
        ("softmax", softmax, total(criterion(softmax[0], objects))),
        ("iou_aware", aware, total(grouped({**aware[0], **parts}, objects))),
    ]:
        loss.backward()
        tensors[f"{name}.loss"] = loss
        for i, output in enumerate(made):
            for key, tensor in (("logits", output["logits"]), ("boxes", output["pred_boxes"])):
                tensors[f"{name}.{key}.{i}"], tensors[f"{name}.{key}.{i}.grad"] = tensor, tensor.grad
    save(ROOT.parent / "train" / "detection_losses.safetensors", tensors, groups=GROUPS)


if __name__ == "__main__":
    box_losses()
    detection_losses()
