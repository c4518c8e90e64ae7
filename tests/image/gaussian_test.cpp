// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::image {
namespace {

// scipy.ndimage.gaussian_filter(numpy.arange(12.0).reshape(3, 4) ** 1.5, 1.5): the radius, 6, exceeds both sides.
TEST(GaussianFilter, EqualsThatOfScipy) {
  const std::vector<double> expected{8.903973,  10.098969, 11.829167, 13.084068, 12.532813, 13.91153,
                                     15.895426, 17.325937, 16.204655, 17.764959, 19.999723, 21.603964};
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(std::pow(i, 1.5)));
  const Tensor smoothed = gaussian_filter(Tensor::from<float>({3, 4}, values), 1.5);
  ASSERT_EQ(smoothed.shape(), (Shape{3, 4}));
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(smoothed.data<float>()[i], expected[i], 36 * 13 * 6e-8);
}

TEST(GaussianFilter, TakesAPlaneAndAWidth) {
  const auto message = [](const Shape& shape, double sigma) {
    return testing::error_of([&] { gaussian_filter(Tensor::zeros(shape), sigma); });
  };
  EXPECT_ERROR(message({2, 2, 2}, 1), "gaussian_filter", "[2, 2, 2]");
  EXPECT_ERROR(message({2, 2}, 0), "sigma", "0");
}

}  // namespace
}  // namespace vitrail::image
