// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of a detector: each object is assigned to a prediction, whose class and box are compared with it
// (Carion et al. 2020, "End-to-End Object Detection with Transformers").
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

// The predictions of a detector, or of a part of it, such as an inner layer.
struct DetectorOutput {
  Tensor logits;  // [B, Q, classes], or with a last one of "no object" for ClassLoss::softmax
  Tensor boxes;   // [B, Q, 4]: centre x, centre y, width and height as shares of the image's size
};

// The objects of an image.
struct DetectionTargets {
  std::vector<int64_t> classes{};
  std::vector<float> boxes{};  // four values each, as DetectorOutput::boxes, with positive sizes
};

// softmax: the cross-entropy of DETR and YOLOS; iou_aware: ops::iou_aware_loss() of LW-DETR and RF-DETR.
enum class ClassLoss : uint8_t { softmax, iou_aware };

struct DetectionLossOptions {
  ClassLoss classes = ClassLoss::softmax;
  double class_weight = 1, l1_weight = 5, giou_weight = 2;  // in the loss
  double class_cost = 1, l1_cost = 5, giou_cost = 2;        // in the assignment
  double no_object_weight = 0.1;                            // softmax: of predictions without an object
  // Queries are in this many groups of one size.  Each group finds all objects (Chen et al. 2022, "Group DETR").
  int64_t groups = 1;
};

// The sum of the outputs' losses, each divided by groups · max(1, objects of the batch).  Source: transformers'
// ImageLoss and LwDetrImageLoss.
Tensor detection_loss(const std::vector<DetectorOutput>& outputs, const std::vector<DetectionTargets>& targets,
                      const DetectionLossOptions& options);

}  // namespace vitrail::train
