// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct PatchActivation {
  int64_t image = 0, patch = 0;
  float value = 0;
};

// The patches of a set of images that drive a neuron most.
class TopActivations {
 public:
  explicit TopActivations(size_t count) : count_(count) {}

  // values [patches] in f32: the neuron's value at each patch of an image.  NaN is left out.
  void add(int64_t image, const Tensor& values);

  // At most `count`, the largest first, of equal ones that which was added first.
  const std::vector<PatchActivation>& largest_first() const { return top_; }

 private:
  size_t count_;
  std::vector<PatchActivation> top_;
};

}  // namespace vitrail::analysis
