// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::optim {
namespace {

// A parameter with this gradient.
Parameter parameter(const std::string& name, const Tensor& gradient) {
  Tensor leaf = Tensor::zeros(gradient.shape(), gradient.dtype());
  autograd::set_requires_grad(leaf, true);
  autograd::variable_of(leaf)->grad = gradient;
  return {name, leaf};
}

TEST(GradientNorm, IsTheNormOfAllGradientsTogether) {
  std::vector<Parameter> parameters{parameter("a", Tensor::full({50000}, 0.5)), parameter("b", Tensor::full({4}, 50))};
  parameters.push_back({"without", Tensor::zeros({2})});
  EXPECT_NEAR(gradient_norm(parameters), 150, 1e-10);  // √(50000/4 + 4 · 2500)
}

TEST(GradientNorm, DoesNotDependOnTheNumberOfThreads) {
  const std::vector<Parameter> parameters{parameter("a", Tensor::randn({123457}, 1)),
                                          parameter("b", Tensor::randn({7, 31}, 2))};
  double one = 0;
  {
    const ThreadCount threads(1);
    one = gradient_norm(parameters);
  }
  const ThreadCount threads(3);
  EXPECT_EQ(gradient_norm(parameters), one);
}

TEST(GradientNorm, OfHugeGradientsDoesNotOverflow) {
  EXPECT_NEAR(gradient_norm({parameter("a", Tensor::full({4}, 3e38))}) / 6e38, 1, 1e-6);
}

TEST(GradientNorm, IsNonFiniteExactlyIfAGradientIs) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<Parameter> parameters{parameter("fine", Tensor::full({5}, 1)),
                                      parameter("bad", Tensor::randn({20011}, 1))};
    EXPECT_TRUE(std::isfinite(gradient_norm(parameters)));
    autograd::grad_of(parameters[1].tensor).data<float>()[20010] = bad;
    EXPECT_FALSE(std::isfinite(gradient_norm(parameters)));
  }
}

// torch.nn.utils.clip_grad_norm_ multiplies by max_norm / (norm + 1e-6) if that is below 1.
TEST(ClipGradients, ScalesOnlyGradientsAboveTheMaximumNorm) {
  const std::vector<Parameter> parameters{parameter("a", Tensor::full({4}, 3, DType::f64))};
  EXPECT_DOUBLE_EQ(clip_gradients(parameters, 7), 6);
  EXPECT_EQ(autograd::grad_of(parameters[0].tensor).data<double>()[3], 3);
  EXPECT_DOUBLE_EQ(clip_gradients(parameters, 2), 6);
  EXPECT_DOUBLE_EQ(autograd::grad_of(parameters[0].tensor).data<double>()[3], 3 * (2 / (6 + 1e-6)));
}

TEST(ClipFactor, IsOneForANonFiniteNormAndWithoutClipping) {
  EXPECT_EQ(clip_factor(std::numeric_limits<double>::infinity(), 1), 1);
  EXPECT_EQ(clip_factor(std::nan(""), 1), 1);
  EXPECT_EQ(clip_factor(5, 0), 1);
  EXPECT_NEAR(clip_factor(5, 1), 0.2, 1e-7);
}

TEST(ClipGradients, ScalesStridedGradientsAndBothPrecisions) {
  const Tensor memory = Tensor::full({2, 3}, 2, DType::f64), strided = memory.transpose(0, 1);
  const std::vector<Parameter> parameters{
      parameter("strided", strided), parameter("single", Tensor::full({40'000}, 1)), {"without", Tensor::zeros({2})}};
  const double norm = std::sqrt(6 * 4 + 40'000.0), factor = 10 / (norm + 1e-6);
  EXPECT_NEAR(clip_gradients(parameters, 10), norm, 1e-9);
  EXPECT_TRUE(testing::close(memory, Tensor::full({2, 3}, 2 * factor, DType::f64), 1e-15));
  EXPECT_TRUE(testing::close(autograd::grad_of(parameters[1].tensor), Tensor::full({40'000}, factor), 1e-8));
  EXPECT_NEAR(gradient_norm(parameters), 10, 1e-5);
}

TEST(ClipGradients, OfEachParameterByItself) {
  const std::vector<Parameter> parameters{parameter("large", Tensor::full({4}, 3, DType::f64)),
                                          parameter("small", Tensor::full({4}, 0.5)),
                                          {"without", Tensor::zeros({2})}};
  clip_each_gradient(parameters, 2);
  EXPECT_DOUBLE_EQ(autograd::grad_of(parameters[0].tensor).data<double>()[3], 3 * (2 / (6 + 1e-6)));
  EXPECT_EQ(autograd::grad_of(parameters[1].tensor).data<float>()[3], 0.5F);
}

TEST(GradientNorm, WithoutGradientsIsZero) {
  EXPECT_EQ(gradient_norm({}), 0);
  EXPECT_EQ(gradient_norm({{"without", Tensor::zeros({2})}}), 0);
  EXPECT_EQ(clip_gradients({}, 1), 0);
}

TEST(GradientNorm, OfHalfPrecisionIsAnError) {
  EXPECT_THROW(gradient_norm({parameter("half", Tensor::zeros({2}, DType::bf16))}), Error);
}

TEST(ClipFactor, IsAtMostOneAndRefusesNegativeNorms) {
  EXPECT_EQ(clip_factor(0, 1), 1);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_LT(clip_factor(1, 1), 1) << "by the 1e-6 that PyTorch adds";
  EXPECT_DOUBLE_EQ(clip_factor(3, 2), 2 / (3 + 1e-6));
  EXPECT_THROW(clip_factor(1, -1), Error);
  EXPECT_THROW(clip_factor(1, std::nan("")), Error);
}

TEST(GradientNorm, ErrorsNameTheParameter) {
  EXPECT_ERROR(
      testing::error_of([] {
        gradient_norm({parameter("fine", Tensor::zeros({2})), parameter("half", Tensor::zeros({2}, DType::f16))});
      }),
      "gradients", "f16 for 'half'");
  EXPECT_ERROR(testing::error_of([] { clip_factor(1, -0.5); }), "clipping", "-0.5");
}

// Chunks have 16384 elements: at their borders each element counts once.
TEST(GradientNorm, CountsEachElementOnceAtTheBordersOfChunks) {
  for (const int64_t size : {1, 16383, 16384, 16385, 32768, 32769}) {
    const Tensor gradient = Tensor::full({size}, 2);
    gradient.data<float>()[size - 1] = 3;
    const std::vector<Parameter> parameters{parameter("a", gradient), parameter("b", Tensor::full({1}, 4, DType::f64))};
    EXPECT_NEAR(gradient_norm(parameters), std::sqrt(4.0 * static_cast<double>(size - 1) + 9 + 16), 1e-9) << size;
    clip_gradients(parameters, 1);
    EXPECT_NEAR(gradient_norm(parameters), 1, 1e-4) << size;
    EXPECT_NEAR(gradient.data<float>()[size - 1] / 3, autograd::grad_of(parameters[1].tensor).data<double>()[0] / 4,
                1e-7);
  }
}

TEST(ClipGradients, LeavesGradientsThatAreNotFiniteOrAreNotClipped) {
  const Tensor gradient = Tensor::from<float>({2}, {3, std::numeric_limits<float>::infinity()});
  const std::vector<Parameter> parameters{parameter("a", gradient)};
  EXPECT_TRUE(std::isinf(clip_gradients(parameters, 1)));
  EXPECT_EQ(gradient.data<float>()[0], 3);
  gradient.data<float>()[1] = 4;
  EXPECT_EQ(clip_gradients(parameters, 0), 5);
  EXPECT_EQ(gradient.data<float>()[1], 4);
}

}  // namespace
}  // namespace vitrail::optim
