// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation of 8-bit pixels to planar float32.
#include <array>
#include <vector>

#include "vitrail/image/transform.h"

namespace vitrail::image {

// Throws Error unless mean and std have one value or one per channel, and std is positive.
void check_statistics(const EvalTransform& transform, int64_t channels);

// (x / 255 − mean) / std, or the processor's rescaling and normalisation, from a table of 256 values.  const and
// thread-safe.
class Normalizer {
 public:
  explicit Normalizer(const EvalTransform& transform);
  // Writes out [channels, height, width].  Throws Error if mean and std do not fit the channels.
  void apply_into(const Image& image, float* out) const;

 private:
  EvalTransform transform_;
  std::vector<std::array<float, 256>> tables_;  // one per channel, or one for all
};

// The same for a processor's floats [pixels, channels] from 0 to 255: out [channels, pixels].  `reversed`: the channels
// are in the order blue, green, red.
void normalize_floats(const EvalTransform& transform, const std::vector<float>& pixels, int64_t channels, bool reversed,
                      float* out);

}  // namespace vitrail::image
