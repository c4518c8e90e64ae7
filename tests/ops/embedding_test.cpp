// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/embedding.h"

#include <gtest/gtest.h>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::ops {
namespace {

using testing::error_of;

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

TEST(Embedding, KeepsTheDtypeOfItsTableAndTakesIntegersOfAnyWidth) {
  const Tensor table = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const DType ids : {DType::i64, DType::i32, DType::i8, DType::u8}) {
      const Tensor got = embedding(Tensor::from<int64_t>({3}, {2, 0, 2}).to(ids), table.to(dtype));
      EXPECT_EQ(got.dtype(), dtype);
      EXPECT_TRUE(testing::close(got, Tensor::from<float>({3, 2}, {5, 6, 1, 2, 5, 6}), 0));
    }
  }
  Tensor leaf = leaf_of(table);
  autograd::backward(embedding(Tensor::from<int64_t>({3}, {2, 0, 2}), leaf),
                     Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(testing::close(autograd::grad_of(leaf), Tensor::from<float>({3, 2}, {3, 4, 0, 0, 6, 8}), 0));
  EXPECT_ERROR(error_of([&] { embedding(Tensor::zeros({2}), table); }), "embedding", "ids f32 and a weight [3, 2]");
  EXPECT_ERROR(error_of([&] { embedding(Tensor::from<int64_t>({3}, {1, -1, 5}), table); }), "embedding", "-1");
}

}  // namespace
}  // namespace vitrail::ops
