// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/preprocess.h"

#include "tests/support/golden.h"

namespace vitrail::infer {
namespace {

// (200 · 0.001 − 0.1) / 0.5
TEST(Preprocess, TakesTheProcessorsRescaleFactorMeanAndStd) {
  models::Preprocessing settings;
  settings.rule = models::ResizeRule::huggingface;
  settings.input_size = settings.resize_to = {4, 6};
  settings.interpolation = "bilinear";
  settings.rescale_factor = 0.001;
  settings.mean = {0.1}, settings.std = {0.5};
  image::Image grey = image::make_image(9, 7, 1);
  std::ranges::fill(grey.pixels, uint8_t{200});
  const Tensor input = image::apply(grey, transform_of(settings, "test"));
  EXPECT_TRUE(testing::close(input, Tensor::full({1, 4, 6}, 0.2, DType::f32), 1e-6));
}

}  // namespace
}  // namespace vitrail::infer
