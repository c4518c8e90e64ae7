// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/convert/calibration_images.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/vitrail/input/image_inputs.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/random_area_crop.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::app {
namespace {

// Preprocessed images in batches of 8.
class Batches {
 public:
  explicit Batches(const image::EvalTransform& transform) : transform_(transform) {}
  void add(const image::Image& source) {
    constexpr int64_t kBatch = 8;
    const Tensor input = image::apply(source, transform_).unsqueeze(0);
    if (batches_.empty() || batches_.back().size(0) == kBatch) {
      batches_.push_back(input);
    } else {
      batches_.back() = ops::cat({batches_.back(), input}, 0);
    }
  }
  const std::vector<Tensor>& all() const { return batches_; }

 private:
  const image::EvalTransform& transform_;
  std::vector<Tensor> batches_;
};

}  // namespace

void read_calibration_images(const std::vector<std::string>& arguments, const image::DecodeOptions& decode,
                             const CalibrationSets& sets, const std::function<void(const image::Image&)>& calibrate,
                             const std::function<void(const image::Image&)>& validate) {
  ImageInputs inputs(arguments);
  size_t available = 0;
  while (inputs.at(available)) ++available;
  if (available == 0) throw CLI::ValidationError("--calibrate", "no images found");
  const size_t count = std::min(sets.max_images, available);
  RandomStream random(random_key("calibration_images"));
  for (size_t i = 0; i < count; ++i) {
    const image::Image source = inputs.read(i * available / count, decode);
    calibrate(source);
    for (int crop = 0; crop < sets.crops; ++crop) calibrate(data::random_area_crop(source, random));
    if (i % sets.validation_stride == 0) validate(data::random_area_crop(source, random));
  }
}

CalibrationImages calibration_images(const std::vector<std::string>& arguments, const models::ModelConfig& config,
                                     const std::string& where) {
  const image::EvalTransform transform = infer::transform_of(config.preprocessing, where);
  Batches calibration(transform), validation(transform);
  read_calibration_images(
      arguments, {.mode = infer::color_mode_of(config.vit.in_chans)}, {},
      [&](const image::Image& source) { calibration.add(source); },
      [&](const image::Image& source) { validation.add(source); });
  return {calibration.all(), validation.all()};
}

}  // namespace vitrail::app
