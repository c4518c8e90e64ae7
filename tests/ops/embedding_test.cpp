// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/embedding.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

TEST(Embedding, PicksRowsByIndex) {
  const Tensor weight = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor ids = Tensor::from<int64_t>({2, 2}, {2, 0, 1, 2});
  EXPECT_TRUE(testing::close(embedding(ids, weight), Tensor::from<float>({2, 2, 2}, {5, 6, 1, 2, 3, 4, 5, 6}), 0));
}

// The gradients of equal ids are summed.
TEST(Embedding, GradientEqualsCentralDifferences) {
  const Tensor ids = Tensor::from<int64_t>({5}, {2, 0, 2, 3, 2});
  const autograd::GradientCheck check = autograd::check_gradients(
      [&](const std::vector<Tensor>& in) { return embedding(ids, in[0]); }, {Tensor::randn({4, 3}, 1, DType::f64)});
  EXPECT_LT(check.worst, 1e-8) << "element " << check.element;
}

TEST(Embedding, RejectsIdsOutsideTheTableAndFloatingIds) {
  const Tensor weight = Tensor::zeros({3, 2});
  const std::string message = testing::error_of([&] { embedding(Tensor::from<int64_t>({2}, {0, 3}), weight); });
  EXPECT_TRUE(testing::contains(message, "ids from 0 to 2, got 3")) << message;
  EXPECT_THROW(embedding(Tensor::from<int64_t>({1}, {-1}), weight), Error);
  EXPECT_THROW(embedding(Tensor::zeros({2}), weight), Error);
}

}  // namespace
}  // namespace vitrail::ops
