// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses: scalars, differentiable in the logits.  f64 logits are computed in f64, others in f32.
#include <optional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Cross-entropy: the mean over rows of −Σ_c t_c log softmax(x)_c.  logits [B, C]; targets: labels i64 [B] in [0, C), or
// distributions f32 or f64 [B, C], such as those of mixup.  Label smoothing ε replaces t by (1 − ε) t + ε / C (Szegedy
// et al. 2016).  class_weights w [C], f32 or f64, if defined: the term of class c is multiplied by w_c, and for labels
// the sum over rows is divided by Σ w_label instead of B.  Rows with the label `ignored` are left out, as by torch's
// ignore_index; without any other row the loss is 0.  Source: torch.nn.CrossEntropyLoss.  Throws Error for other
// shapes, types or labels.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing = 0,
                     const Tensor& class_weights = {}, std::optional<int64_t> ignored = {});

struct BceOptions {
  double label_smoothing = 0;         // ε: labels become 1 − ε + ε / C and ε / C; distributions are not smoothed
  std::optional<double> threshold{};  // if set: targets above it become 1, others 0
  bool sum_classes = false;  // sum over classes before the mean over the batch; else the mean over all elements
};

// Binary cross-entropy of each class (Wightman et al. 2021, "ResNet strikes back").  logits [B, C]; targets as above.
// Source: timm.loss.BinaryCrossEntropy.
Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, const BceOptions& options = {});

struct DistillationOptions {
  bool hard = false;         // cross-entropy with the teacher's top-1 class (the lowest index on ties)
  double temperature = 1;    // T of the soft loss
  bool per_element = false;  // soft loss: divide by B · C, as DeiT's code, instead of by B
};

// Knowledge distillation (Hinton et al. 2015; Touvron et al. 2021, DeiT, eqs. 2 and 3): soft,
// T² KL(softmax(teacher / T) ‖ softmax(student / T)) / B, or hard.  Both [B, C].  Differentiable in the student's
// logits only.
Tensor distillation(const Tensor& student, const Tensor& teacher, const DistillationOptions& options = {});

// Σ weight_i · term_i of losses with one element and the same dtype.  Differentiable.
Tensor weighted_sum(const std::vector<Tensor>& terms, const std::vector<double>& weights);

}  // namespace vitrail::ops
