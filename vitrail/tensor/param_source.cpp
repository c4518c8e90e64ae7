// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/param_source.h"

#include "vitrail/base/random.h"

namespace vitrail {

Tensor RandomParams::get(const std::string& path, const Shape& shape, const Initializer& init) {
  Tensor parameter = Tensor::empty(shape, dtype_, device_);
  if (device_ != Device::meta) init(parameter, random_key(path, seed_));
  return parameter;
}

}  // namespace vitrail
