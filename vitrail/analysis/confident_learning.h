// SPDX-License-Identifier: Apache-2.0
#pragma once
// Confident learning: which labels are probably wrong (Northcutt, Jiang & Chuang 2021, "Confident Learning: Estimating
// Uncertainty in Dataset Labels").
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct LabelQuality {
  std::vector<double> self_confidence;  // for each sample, the probability of its label
  std::vector<int64_t> predicted;       // its most probable class, the first of equal ones
  // [label][class]: the numbers of samples with this label that confidently belong to this class: their probability of
  // it is at least the mean over the samples with that label.  Of several such classes the most probable counts.
  std::vector<std::vector<int64_t>> confident_joint;
  // The samples off the diagonal of the confident joint whose predicted class is not their label: the lowest
  // self-confidence first.
  std::vector<int64_t> errors;
};

// probabilities [n, classes]: each row from a model that was not fitted to the sample; labels [n] in [0, classes).
// Throws Error for another number of labels, and for labels out of range.
LabelQuality label_quality(const Tensor& probabilities, const std::vector<int64_t>& labels);

}  // namespace vitrail::analysis
