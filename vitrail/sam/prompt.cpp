// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/prompt.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace vitrail::sam {
namespace {

void check_position(double x, double y, int64_t width, int64_t height, const std::string& where) {
  const bool inside = x >= 0 && y >= 0 && x <= static_cast<double>(width) && y <= static_cast<double>(height);
  if (!inside) throw Error(where, str("coordinates in the image of ", width, "×", height), str("(", x, ", ", y, ")"));
}

// True if all values are 0 or one other value.
bool is_binary(const float* values, int64_t count) {
  const float* const end = values + count;
  const float* const other = std::find_if(values, end, [](float v) { return v != 0; });
  return std::find(values, end, 0.0f) != end &&
         (other == end || std::all_of(values, end, [other](float v) { return v == 0 || v == *other; }));
}

void check_mask(const Tensor& mask, int64_t size, const std::string& where) {
  if (!(mask.shape() == Shape{size, size}) || mask.dtype() != DType::f32) {
    throw Error(where, str("mask logits [", size, ", ", size, "] in f32"),
                str(name_of(mask.dtype()), " ", mask.shape()));
  }
  const Tensor dense = mask.contiguous();
  const float* const values = dense.data<float>();
  if (!std::all_of(values, values + dense.numel(), [](float v) { return std::isfinite(v); })) {
    throw Error(where, "finite mask logits", "a NaN or infinity");
  }
  if (is_binary(values, dense.numel())) {
    throw Error(where, "mask logits, negative outside the object", "a binary mask");
  }
}

}  // namespace

void clip_box(Prompt& prompt, int64_t width, int64_t height, const std::string& where) {
  if (!prompt.box) return;
  const auto right = static_cast<double>(width), bottom = static_cast<double>(height);
  bool is_near = true, is_outside = false;
  const auto check = [&](double value, double side) {
    is_near = is_near && value > -1 && value < side + 1;
    is_outside = is_outside || value < 0 || value > side;
  };
  Box& box = *prompt.box;
  check(box.x0, right), check(box.x1, right), check(box.y0, bottom), check(box.y1, bottom);
  if (!is_near || !is_outside) return;
  warn(str(where, ": the box ", box.x0, ", ", box.y0, ", ", box.x1, ", ", box.y1, " is clipped to the image of ", width,
           "×", height));
  box = {std::clamp(box.x0, 0.0, right), std::clamp(box.y0, 0.0, bottom), std::clamp(box.x1, 0.0, right),
         std::clamp(box.y1, 0.0, bottom)};
}

void check_prompt(const Prompt& prompt, int64_t width, int64_t height, int64_t mask_size, const std::string& where) {
  if (prompt.points.empty() && !prompt.box && !prompt.mask_logits.defined()) {
    throw Error(where, "points, a box or a mask", "none");
  }
  for (const Point& point : prompt.points) {
    check_position(point.x, point.y, width, height, where);
    if (point.label != 0 && point.label != 1) {
      throw Error(where, "the label 1 (in the object) or 0 (outside it)", str(point.label));
    }
  }
  if (prompt.box) {
    const Box& box = *prompt.box;
    check_position(box.x0, box.y0, width, height, where);
    check_position(box.x1, box.y1, width, height, where);
    if (box.x0 >= box.x1 || box.y0 >= box.y1) {
      throw Error(where, "a box x0, y0, x1, y1 with x0 < x1 and y0 < y1",
                  str(box.x0, ", ", box.y0, ", ", box.x1, ", ", box.y1));
    }
  }
  if (prompt.mask_logits.defined()) check_mask(prompt.mask_logits, mask_size, where);
}

}  // namespace vitrail::sam
