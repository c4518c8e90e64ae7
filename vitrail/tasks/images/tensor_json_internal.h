// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors and sizes of images in JSON.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vitrail/pipeline/model.h"
#include "vitrail/tasks/task.h"

namespace vitrail::tasks {

inline std::vector<float> values_of(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  return {values.data<float>(), values.data<float>() + values.numel()};
}

// What maps cover: the size of the image, and the part of it that the model sees.
inline nlohmann::ordered_json region_json(const Model& model, const Item& item) {
  const image::Region region = visible_region(model.transform(), item.width, item.height);
  return {{"width", item.width}, {"height", item.height}, {"left", region.left},
          {"top", region.top},   {"right", region.right}, {"bottom", region.bottom}};
}

}  // namespace vitrail::tasks
