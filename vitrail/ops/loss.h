// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses: scalars, differentiable in the logits.  Logits of 16 bits are widened; f64 stays f64.
#include <optional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// −mean over rows of Σ_c t_c log softmax(x)_c.  logits [B, C]; targets: labels i64 [B] in [0, C), or a distribution f32
// or f64 [B, C] (what mixing makes).  With smoothing ε both become (1 − ε) t + ε / C (Szegedy et al. 2016), as
// torch.nn.CrossEntropyLoss.  Loss and gradient come from one pass over the logits.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing = 0);

struct BceOptions {
  double label_smoothing = 0;  // of labels: ε / C off, 1 − ε + ε / C on; given distributions are left as they are
  std::optional<double> threshold;  // targets above it become 1, the others 0
  bool sum_classes = false;         // sum over classes before the mean over the batch; else the mean over all elements
};

// Binary cross-entropy of every class on its own, as timm.loss.BinaryCrossEntropy ("ResNet strikes back", 2021).
// logits [B, C]; targets as above.
Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, const BceOptions& options = {});

struct DistillationOptions {
  bool hard = false;         // cross-entropy with the teacher's most likely class (the lowest on ties)
  double temperature = 1;    // soft
  bool per_element = false;  // soft: divide by B · C, as DeiT's own code does, instead of by B
};

// What the student learns from the teacher's logits (Hinton et al. 2015; Touvron et al. 2021, DeiT): soft,
// T² KL(softmax(teacher / T) ‖ softmax(student / T)) / B; or hard.  Both [B, C]; nothing flows into the teacher.
Tensor distillation(const Tensor& student, const Tensor& teacher, const DistillationOptions& options = {});

// Σ weight_i · term_i of losses of one element and one dtype.
Tensor weighted_sum(const std::vector<Tensor>& terms, const std::vector<double>& weights);

}  // namespace vitrail::ops
