// SPDX-License-Identifier: Apache-2.0
// Centred kernel alignment against numpy (tools/golden/cka.py).
#include "vitrail/analysis/cka.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::analysis {
namespace {

std::vector<Tensor> batch_of(const testing::Golden& golden, int batch) {
  std::vector<Tensor> layers;
  for (int layer = 0; layer < 4; ++layer) layers.push_back(golden[std::to_string(batch) + "." + std::to_string(layer)]);
  return layers;
}

// Sums are in double: the result is rounded to float, and near zero it is a difference of values near one.
TEST(Cka, IsThatOfNumpyOverBatchesOfDifferentSizes) {
  const testing::Golden golden = testing::read_golden(testing::fixture("analysis/cka.safetensors"));
  LinearCka cka;
  for (const int batch : {0, 1}) cka.add(batch_of(golden, batch));
  EXPECT_TRUE(testing::close(cka.similarities(), golden["similarities"], 1e-6));
}

TEST(Cka, IsNotANumberForALayerThatDoesNotTellImagesApart) {
  LinearCka cka;
  cka.add({Tensor::full({5, 2}, 1.0), Tensor::randn({5, 3}, 1)});
  const Tensor similarities = cka.similarities();
  for (const int i : {0, 1, 2}) EXPECT_TRUE(std::isnan(similarities.data<float>()[i])) << i;
  EXPECT_EQ(similarities.data<float>()[3], 1);
}

TEST(Cka, NeedsTheSameImagesAndLayers) {
  const Tensor x = Tensor::randn({4, 2}, 1);
  LinearCka cka;
  EXPECT_ERROR(testing::error_of([&] { cka.similarities(); }), "CKA", "none");
  EXPECT_ERROR(testing::error_of([&] { cka.add({}); }), "CKA", "none");
  EXPECT_ERROR(testing::error_of([&] { cka.add({x.narrow(0, 0, 3)}); }), "CKA", "3");
  EXPECT_ERROR(testing::error_of([&] { cka.add({x, Tensor::randn({5, 2}, 1)}); }), "CKA", "5");
  cka.add({x, x});
  EXPECT_ERROR(testing::error_of([&] { cka.add({x}); }), "CKA", "1");
}

}  // namespace
}  // namespace vitrail::analysis
