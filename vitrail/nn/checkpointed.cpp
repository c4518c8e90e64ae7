// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/checkpointed.h"

#include <utility>

#include "vitrail/autograd/checkpoint.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/precision.h"

namespace vitrail::nn {

Tensor checkpointed(std::function<Tensor(const Tensor&)> forward, const Tensor& x) {
  auto recompute = [forward = std::move(forward), draws = RandomScope::current(),
                    precision = ops::MixedPrecision::current()](const Tensor& input) {
    const RandomScope random(draws);
    const ops::MixedPrecision mixed(precision);
    return forward(input);
  };
  return autograd::checkpoint(recompute, x);
}

}  // namespace vitrail::nn
