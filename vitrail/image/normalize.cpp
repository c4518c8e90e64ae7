// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/normalize_internal.h"

#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

float of_channel(const std::vector<double>& values, int64_t channel) {
  return static_cast<float>(values.size() == 1 ? values[0] : values[static_cast<size_t>(channel)]);
}

// The normalised value of each of the 256 bytes, in the order and precision of the reference's operations.
std::array<float, 256> normalized_values(const EvalTransform& transform, int64_t channel) {
  const float mean = of_channel(transform.mean, channel), std = of_channel(transform.std, channel);
  std::array<float, 256> values;
  for (int i = 0; i < 256; ++i) {
    // NumPy computes in double and rounds to float; torchvision's ToTensor divides floats.
    const float x =
        transform.processor ? static_cast<float>(i * transform.processor->rescale) : static_cast<float>(i) / 255.0f;
    values[i] = (x - mean) / std;
  }
  return values;
}

}  // namespace

void normalize_floats(const EvalTransform& transform, const std::vector<float>& pixels, int64_t channels, bool reversed,
                      float* out) {
  const auto count = static_cast<int64_t>(pixels.size()) / channels;
  const float factor = static_cast<float>(transform.processor->rescale);
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = of_channel(transform.mean, c), std = of_channel(transform.std, c);
    const float* const from = pixels.data() + (reversed ? channels - 1 - c : c);
    for (int64_t i = 0; i < count; ++i) out[c * count + i] = (factor * from[i * channels] - mean) / std;
  }
}

void check_statistics(const EvalTransform& transform, int64_t channels) {
  for (const auto* values : {&transform.mean, &transform.std}) {
    const int64_t count = static_cast<int64_t>(values->size());
    if (count != 1 && count != channels) {
      throw Error("image transform", str("mean and std with ", channels, " values"), str(count));
    }
  }
  for (const double value : transform.std) {
    if (!(value > 0)) throw Error("image transform", "a positive std", str(value));
  }
}

Normalizer::Normalizer(const EvalTransform& transform) : transform_(transform) {
  const size_t channels = transform.mean.size() == 1 && transform.std.size() == 1 ? 1 : 3;
  check_statistics(transform, static_cast<int64_t>(channels));
  for (size_t c = 0; c < channels; ++c) tables_.push_back(normalized_values(transform, static_cast<int64_t>(c)));
}

void Normalizer::apply_into(const Image& image, float* out) const {
  check_image(image, "image transform");
  check_statistics(transform_, image.channels);
  const int64_t pixels = image.width * image.height;
  for (int64_t c = 0; c < image.channels; ++c, out += pixels) {
    const std::array<float, 256>& values = tables_.size() == 1 ? tables_[0] : tables_[c];
    const uint8_t* in = image.pixels.data() + c;
    for (int64_t i = 0; i < pixels; ++i) out[i] = values[in[i * image.channels]];
  }
}

}  // namespace vitrail::image
