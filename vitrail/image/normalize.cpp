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
  const bool normalize = !transform.processor || transform.processor->normalize;
  const float mean = normalize ? of_channel(transform.mean, channel) : 0.0f,
              std = normalize ? of_channel(transform.std, channel) : 1.0f;
  std::array<float, 256> values;
  for (int i = 0; i < 256; ++i) {
    float x = static_cast<float>(i);
    if (!transform.processor) {
      x /= 255.0f;  // torchvision's ToTensor
    } else if (transform.processor->rescale) {
      x = static_cast<float>(i * *transform.processor->rescale);  // NumPy: computed in double, rounded to float
    }
    values[i] = normalize ? (x - mean) / std : x;
  }
  return values;
}

}  // namespace

void normalize_floats(const EvalTransform& transform, const std::vector<float>& pixels, int64_t channels, bool reversed,
                      float* out) {
  const auto count = static_cast<int64_t>(pixels.size()) / channels;
  const ProcessorSteps& steps = *transform.processor;
  const float factor = static_cast<float>(steps.rescale.value_or(1.0));
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = steps.normalize ? of_channel(transform.mean, c) : 0.0F,
                std = steps.normalize ? of_channel(transform.std, c) : 1.0F;
    const float* const from = pixels.data() + (reversed ? channels - 1 - c : c);
    for (int64_t i = 0; i < count; ++i) out[c * count + i] = (factor * from[i * channels] - mean) / std;
  }
}

void check_statistics(const EvalTransform& transform, int64_t channels) {
  if (transform.processor && !transform.processor->normalize) return;
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
