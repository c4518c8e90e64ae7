// SPDX-License-Identifier: Apache-2.0
// Tensors of static objects outlive all other static objects.
#include <gtest/gtest.h>

#include <cstdlib>

#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

struct Holder {
  ~Holder() { held = Tensor(); }
  Tensor held;
};

// The holder is made before any tensor, so that it is destroyed after everything that the first tensor makes.
TEST(StorageDeathTest, ATensorOfAStaticObjectIsReleasedAtTheEnd) {
  EXPECT_EXIT(
      {
        static Holder holder;
        holder.held = Tensor::zeros({1000});
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace vitrail
