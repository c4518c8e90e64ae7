// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last step of the transforms alone: 8-bit pixels to normalised float32 planes.
#include <array>
#include <vector>

#include "vitrail/image/transform.h"

namespace vitrail::image {

// Throws Error unless mean and std are one value or one a channel, and std is positive.
void check_statistics(const EvalTransform& transform, int64_t channels);

// (x / 255 − mean) / std, or what the transform's processor says, from a table of the 256 values.  const and
// thread-safe.
class Normalizer {
 public:
  explicit Normalizer(const EvalTransform& transform);
  // To out [channels, height, width].  Throws Error where mean and std do not fit the channels.
  void apply_into(const Image& image, float* out) const;

 private:
  EvalTransform transform_;
  std::vector<std::array<float, 256>> tables_;  // one a channel, or one for all
};

}  // namespace vitrail::image
