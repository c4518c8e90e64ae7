// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/copied_params.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/linear.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

TEST(CopiedParams, GiveCopiesOfTheModulesOrOfOthers) {
  RandomParams random(1);
  const Linear original(3, 2, true, ParamSource(random));
  const Tensor other = Tensor::full({2}, 5);
  CopiedParams copies(original, {{"bias", other}});
  const Linear copy(3, 2, true, ParamSource(copies));
  const Tensor weight = copy.parameter("weight"), bias = copy.parameter("bias");
  EXPECT_TRUE(testing::close(weight, original.parameter("weight"), 0));
  EXPECT_TRUE(testing::close(bias, other, 0));
  weight.data<float>()[0] += 1;
  bias.data<float>()[0] += 1;
  EXPECT_FALSE(testing::close(weight, original.parameter("weight"), 0.5)) << "the original must not change";
  EXPECT_EQ(other.data<float>()[0], 5);
  EXPECT_TRUE(copies.has("weight"));
  EXPECT_FALSE(copies.has("scale"));
}

TEST(CopiedParams, OfAnotherStructureAreErrors) {
  RandomParams random(1);
  const Linear original(3, 2, false, ParamSource(random));
  CopiedParams copies(original);
  EXPECT_THROW(Linear(4, 2, false, ParamSource(copies)), Error) << "another shape";
  EXPECT_THROW(Linear(3, 2, true, ParamSource(copies)), std::out_of_range) << "a bias that the module does not have";
  EXPECT_THROW(CopiedParams(original, {{"bias", Tensor::zeros({2})}}), std::out_of_range);
}

TEST_F(Layers, CopiedParamsNameAShapeThatDiffers) {
  const Linear original(3, 2, false, source());
  CopiedParams copies(original);
  EXPECT_ERROR(error_of([&] { Linear(4, 2, false, ParamSource(copies)); }), "weight", "[2, 3]");
}

}  // namespace
}  // namespace vitrail::nn
