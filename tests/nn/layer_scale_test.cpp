// SPDX-License-Identifier: Apache-2.0
// The value, names and type of layer scale.
#include "vitrail/nn/layer_scale.h"

#include <gtest/gtest.h>

#include "tests/nn/traced_layers.h"
#include "tests/support/golden.h"

namespace vitrail::nn {
namespace {

TEST_F(Layers, LayerScaleBeginsWithItsValue) {
  const LayerScale scale(3, 0.125, source());
  EXPECT_TRUE(testing::close(scale.gamma(), Tensor::full({3}, 0.125), 0));
  EXPECT_EQ(names_of(scale), (Names{"gamma"}));
  EXPECT_EQ(scale.type(), "LayerScale");
}

}  // namespace
}  // namespace vitrail::nn
