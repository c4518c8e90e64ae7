// SPDX-License-Identifier: Apache-2.0
// What self-supervised pretraining computes beside its model, against PyTorch:
// tests/fixtures/ops/pretraining_losses.safetensors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

#include "tests/ops/inputs.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/batch_norm.h"
#include "vitrail/ops/l2_normalize.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mean_squared_error.h"
#include "vitrail/ops/random_directions.h"
#include "vitrail/ops/sigreg.h"
#include "vitrail/ops/sort.h"
#include "vitrail/ops/visreg.h"

namespace vitrail::ops {
namespace {

using autograd::grad_of;
using testing::close;
using testing::error_of;
using In = const std::vector<Tensor>&;

struct Case {
  std::vector<std::string> inputs;
  std::function<Tensor(In)> run;
};

class PretrainingLosses : public ::testing::Test {
 protected:
  std::vector<Tensor> inputs_of(const Case& each, DType dtype = DType::f64) const {
    std::vector<Tensor> inputs;
    for (const std::string& name : each.inputs) inputs.push_back(leaf_of(golden_[name].to(dtype)));
    return inputs;
  }

  const testing::Golden golden_ = testing::read_golden(testing::fixture("ops/pretraining_losses.safetensors"));
  const Tensor directions_ = golden_["directions"];
  const std::map<std::string, Case> cases_{
      {"batch_norm", {{"x", "gamma", "beta"}, [](In in) { return batch_norm(in[0], in[1], in[2], 1e-3); }}},
      {"l2_normalize", {{"rows"}, [](In in) { return l2_normalize(in[0]); }}},
      {"mean_squared_error", {{"x", "target"}, [](In in) { return mean_squared_error(in[0], in[1]); }}},
      {"sigreg", {{"z"}, [this](In in) { return sigreg(in[0], directions_); }}},
      {"visreg_center", {{"z"}, [this](In in) { return visreg(in[0], directions_).center; }}},
      {"visreg_scale", {{"z"}, [this](In in) { return visreg(in[0], directions_).scale; }}},
      {"visreg_shape", {{"z"}, [this](In in) { return visreg(in[0], directions_).shape; }}},
  };
};

TEST_F(PretrainingLosses, AndGradientsEqualPyTorchs) {
  for (const auto& [name, each] : cases_) {
    const std::vector<Tensor> inputs = inputs_of(each);
    const Tensor value = each.run(inputs);
    // sigreg's points of the integral are exact in double, and torch.erfinv has an error of some 1e-15.
    EXPECT_TRUE(close(value, golden_[name + ".value"], 1e-12, 1e-12)) << name;
    autograd::backward(value, golden_[name + ".weights"]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& want = golden_[name + ".grad_" + each.inputs[i]];
      EXPECT_TRUE(close(grad_of(inputs[i]), want, 1e-11, 1e-11)) << name << " of " << each.inputs[i];
    }
  }
}

// Some dozens of roundings of 2^-24 of values below 8, and a factor of B = 9 in sigreg.
TEST_F(PretrainingLosses, AndGradientsInSinglePrecisionStayWithinRounding) {
  for (const auto& [name, each] : cases_) {
    const std::vector<Tensor> inputs = inputs_of(each, DType::f32);
    const Tensor value = each.run(inputs);
    EXPECT_EQ(value.dtype(), DType::f32);
    EXPECT_TRUE(close(value, golden_[name + ".value"], 64 * 8 * 0x1p-24)) << name;
    autograd::backward(value, golden_[name + ".weights"].to(DType::f32));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& want = golden_[name + ".grad_" + each.inputs[i]];
      if (each.inputs[i] == "rows") continue;  // its gradient at the zero row is 1e12
      EXPECT_TRUE(close(grad_of(inputs[i]), want, 64 * 8 * 0x1p-24)) << name << " of " << each.inputs[i];
    }
  }
}

// tests/autograd/gradients_test.cpp derives the tolerance.  The gradient of visreg's shape leaves that of the standard
// deviation out, and a zero row is no place for differences.
TEST_F(PretrainingLosses, GradientsEqualCentralDifferences) {
  for (const auto& [name, each] : cases_) {
    if (name == "visreg_shape") continue;
    std::vector<Tensor> inputs = inputs_of(each);
    if (name == "l2_normalize") inputs = {golden_["x"]};
    for (Tensor& input : inputs) input = input.detach();
    const auto check = autograd::check_gradients(each.run, inputs);
    EXPECT_LT(check.worst, 1e-8) << name << ": input " << check.input << ", element " << check.element << ", numerical "
                                 << check.numerical << ", analytic " << check.analytic;
  }
  const auto check = autograd::check_gradients([](In in) { return sort_columns(in[0]); }, {draw({2, 7, 3}, 1)});
  EXPECT_LT(check.worst, 1e-8);
}

TEST_F(PretrainingLosses, DoNotDependOnThreads) {
  const std::vector<Tensor> z{draw({2, 60, 33}, 1)}, x{draw({64, 300}, 1), draw({300}, 2), draw({300}, 3)};
  const Tensor directions = random_directions(33, 200, 1, 2);
  const std::vector<std::pair<std::function<Tensor(In)>, std::vector<Tensor>>> calls{
      {[](In in) { return batch_norm(in[0], in[1], in[2], 1e-3); }, x},
      {[](In in) { return l2_normalize(in[0]); }, z},
      {[](In in) { return mean_squared_error(in[0], in[0].transpose(0, 1).contiguous().view(in[0].shape())); }, z},
      {[&](In in) { return sigreg(in[0], directions); }, z},
      {[&](In in) { return visreg(in[0], directions).shape; }, z}};
  for (const auto& [run, inputs] : calls) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      std::vector<Tensor> results[2];
      for (const int threads : {1, 3}) {
        const ThreadCount count(threads);
        std::vector<Tensor> leaves;
        for (const Tensor& input : inputs) leaves.push_back(input.to(dtype));
        results[threads / 3] = gradients_of(run, leaves, dtype);
        results[threads / 3].push_back(run(leaves));
      }
      for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(close(results[0][i], results[1][i], 0));
    }
  }
}

TEST(BatchNorm, LeavesOutParametersThatAreUndefined) {
  const Tensor x = Tensor::from<double>({2, 2}, {1, 5, 3, 5});
  const double unit = 1 / std::sqrt(1 + 0.25);
  EXPECT_TRUE(close(batch_norm(x, {}, {}, 0.25), Tensor::from<double>({2, 2}, {-unit, 0, unit, 0}), 1e-15));
  const Tensor beta = Tensor::from<double>({2}, {2, -1});
  EXPECT_TRUE(close(batch_norm(x, {}, beta, 0.25), Tensor::from<double>({2, 2}, {2 - unit, -1, 2 + unit, -1}), 1e-15));
}

TEST(L2Normalize, GivesRowsOfLengthOneAndLeavesZeros) {
  const Tensor x = Tensor::from<float>({2, 1, 2}, {3, -4, 0, 0});
  EXPECT_TRUE(close(l2_normalize(x), Tensor::from<float>({2, 1, 2}, {0.6f, -0.8f, 0, 0}), 1e-7));
  EXPECT_EQ(l2_normalize(Tensor::zeros({0, 3})).shape(), (Shape{0, 3}));
  // A row below 1e-12 is multiplied by 1e12, a constant.
  const Tensor tiny = leaf_of(Tensor::from<double>({2}, {3e-13, 4e-13}));
  const Tensor result = l2_normalize(tiny);
  EXPECT_TRUE(close(result, Tensor::from<double>({2}, {0.3, 0.4}), 1e-15));
  autograd::backward(result, Tensor::from<double>({2}, {1, 2}));
  EXPECT_TRUE(close(grad_of(tiny), Tensor::from<double>({2}, {1e12, 2e12}), 0, 1e-15));
}

TEST(SortColumns, SortsEachColumnWithNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({3, 2}, {nan, 1, 2, 1, -3, 0}), leaf = leaf_of(x);
  const Tensor sorted = sort_columns(leaf);
  EXPECT_TRUE(close(sorted, Tensor::from<float>({3, 2}, {-3, 0, 2, 1, nan, 1}), 0));
  autograd::backward(sorted, Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(close(grad_of(leaf), Tensor::from<float>({3, 2}, {5, 4, 3, 6, 1, 2}), 0))
      << "equal values keep their order";
}

// Independent columns: directions that are the axes.
Tensor axes(int64_t dim) {
  Tensor result = Tensor::zeros({dim, dim}, DType::f64);
  for (int64_t i = 0; i < dim; ++i) result.data<double>()[i * dim + i] = 1;
  return result;
}

double weight_of(int k) { return (k == 16 ? 1 : 2) * 3.0 / 16 * std::exp(-std::pow(3.0 * k / 16, 2) / 2); }

// For B draws of N(0, 1), E |φ_u(t) − φ(t)|² = (1 − φ(t)²) / B, so that the expected loss is Σ w_k (1 − e^{−t_k²}).
// The statistic of a column has a standard deviation of 0.93, in a simulation; that of the mean of 512 columns is
// 0.041.
TEST(Sigreg, OfNormalDrawsIsItsExpectationAndVanishesBesideTheNumberOfDraws) {
  double expected = 0;
  for (int k = 1; k <= 16; ++k) expected += weight_of(k) * (1 - std::exp(-std::pow(3.0 * k / 16, 2)));
  for (const int64_t rows : {32, 2048}) {
    const double loss = sigreg(draw({1, rows, 512}, 5), axes(512)).item<double>();
    EXPECT_NEAR(loss, expected, 4 * 0.041) << rows;
  }
  const double many = sigreg(draw({1, 1'000'000, 1}, 7), axes(1)).item<double>();
  EXPECT_LT(many / 1e6, 5e-6);
}

// The characteristic function of a constant c is e^{itc}.
TEST(Sigreg, OfAConstantIsItsClosedForm) {
  for (const double c : {0.0, 0.5, -3.0}) {
    double expected = 0;
    for (int k = 1; k <= 16; ++k) {
      const double t = 3.0 * k / 16, phi = std::exp(-t * t / 2);
      expected += 5 * weight_of(k) * (1 - 2 * phi * std::cos(t * c) + phi * phi);
    }
    EXPECT_NEAR(sigreg(Tensor::full({2, 5, 3}, c, DType::f64), axes(3)).item<double>(), expected, 1e-13);
    EXPECT_NEAR(sigreg(Tensor::full({2, 5, 3}, c), axes(3)).item<double>(), expected, 1e-5);
  }
}

// The mean over the sphere does not depend on the axes of z, here rotated by 45°.  The test differs from direction to
// direction, because z is wide along one axis: by 0.013 per row, in a simulation, so that two means of 4,096 directions
// differ by 3e-4, and of 4 by 9e-3.
TEST(Sigreg, DoesNotChangeByARotation) {
  const int64_t rows = 64, dim = 8;
  Tensor z = draw({1, rows, dim}, 1), rotated = z.clone();
  for (int64_t r = 0; r < rows; ++r) {
    double* const row = z.data<double>() + r * dim;
    row[0] *= 1.3;
    double* const turned = rotated.data<double>() + r * dim;
    std::copy_n(row, dim, turned);
    turned[0] = (row[0] - row[1]) * std::numbers::sqrt2 / 2;
    turned[1] = (row[0] + row[1]) * std::numbers::sqrt2 / 2;
  }
  const auto per_row = [&](const Tensor& x, int64_t count) {
    return sigreg(x, random_directions(dim, count, 3, 4).to(DType::f64)).item<double>() / static_cast<double>(rows);
  };
  EXPECT_NEAR(per_row(z, 4096), per_row(rotated, 4096), 1e-3);
  EXPECT_GT(std::abs(per_row(z, 4) - per_row(rotated, 4)), 1e-3) << "the directions differ";
}

TEST(Visreg, OfQuantilesOfTheNormalDistributionIsZero) {
  // Φ⁻¹(1/6), Φ⁻¹(2/6), …, of scipy.stats.norm.ppf, divided by their standard deviation.
  const double quantiles[] = {-0.967421566101701, -0.430727299295457, 0, 0.430727299295457, 0.967421566101701};
  double squares = 0;
  for (const double q : quantiles) squares += q * q / 5;
  Tensor z = Tensor::zeros({1, 5, 1}, DType::f64);
  for (size_t i = 0; i < 5; ++i) z.data<double>()[i] = quantiles[(3 * i) % 5] / std::sqrt(squares);
  const VisregTerms terms = visreg(z, axes(1));
  EXPECT_NEAR(terms.center.item<double>(), 0, 1e-30);
  EXPECT_NEAR(terms.scale.item<double>(), 1e-12, 1e-14) << "1e-6 is added to the deviation";
  // The rows have deviation 1 and the quantiles √squares, in the same order.
  EXPECT_NEAR(terms.shape.item<double>(), std::pow(1 - std::sqrt(squares), 2), 2e-6);
}

TEST(Visreg, OfAConstantPullsTheCenterAlone) {
  const Tensor z = leaf_of(Tensor::full({2, 4, 3}, 2, DType::f64));
  const VisregTerms terms = visreg(z, axes(3));
  EXPECT_DOUBLE_EQ(terms.center.item<double>(), 4);
  EXPECT_NEAR(terms.scale.item<double>(), 1, 3e-6);
  autograd::backward(weighted_sum({terms.center, terms.scale, terms.shape}, {1, 1, 0}));
  EXPECT_TRUE(close(grad_of(z), Tensor::full({2, 4, 3}, 2 * 2 / 24.0, DType::f64), 1e-12));
}

TEST(RandomDirections, HaveLengthOneAndDependOnSeedAndStep) {
  const Tensor directions = random_directions(24, 500, 7, 3);
  EXPECT_EQ(directions.shape(), (Shape{24, 500}));
  EXPECT_TRUE(directions.is_contiguous());
  EXPECT_TRUE(close(directions, random_directions(24, 500, 7, 3), 0));
  EXPECT_FALSE(close(directions, random_directions(24, 500, 7, 4), 0));
  EXPECT_FALSE(close(directions, random_directions(24, 500, 8, 3), 0));
  const Tensor rows = directions.transpose(0, 1).contiguous();
  EXPECT_TRUE(close(l2_normalize(rows), rows, 2e-7));
  double mean = 0, square = 0;  // along the first axis: those of a uniform point on the sphere
  for (int64_t i = 0; i < 500; ++i) {
    const double x = directions.data<float>()[i];
    mean += x / 500, square += x * x / 500;
  }
  EXPECT_NEAR(mean, 0, 4 * std::sqrt(1 / 24.0 / 500));
  EXPECT_NEAR(square, 1 / 24.0, 4 * std::sqrt(2.0 / 500) / 24);
  EXPECT_ERROR(error_of([] { random_directions(0, 4, 1, 1); }), "random_directions", "0, 4");
}

TEST(PretrainingLoss, RefusesOtherShapes) {
  const auto f = [](const Shape& shape) { return Tensor::zeros(shape); };
  EXPECT_ERROR(error_of([&] { batch_norm(f({1, 4}), {}, {}, 1e-5); }), "batch_norm", "[1, 4]");
  EXPECT_ERROR(error_of([&] { batch_norm(f({2, 3, 4}), {}, {}, 1e-5); }), "batch_norm", "[2, 3, 4]");
  EXPECT_ERROR(error_of([&] { batch_norm(f({2, 4}), f({2}), {}, 1e-5); }), "batch_norm", "[2]");
  EXPECT_ERROR(error_of([&] { batch_norm(f({2, 4}), {}, f({1, 4}), 1e-5); }), "batch_norm", "[1, 4]");
  EXPECT_ERROR(error_of([&] { l2_normalize(f({})); }), "l2_normalize", "a scalar");
  EXPECT_ERROR(error_of([&] { mean_squared_error(f({2}), f({2, 1})); }), "mean_squared_error", "[2] and [2, 1]");
  EXPECT_ERROR(error_of([&] { mean_squared_error(f({0}), f({0})); }), "mean_squared_error", "[0] and [0]");
  EXPECT_ERROR(error_of([&] { sort_columns(f({3})); }), "sort_columns", "[3]");
  for (const auto& [z, directions] : std::vector<std::pair<Shape, Shape>>{
           {{2, 3}, {3, 4}}, {{2, 3, 4}, {4}}, {{2, 3, 4}, {5, 4}}, {{2, 3, 4}, {4, 0}}, {{2, 0, 4}, {4, 1}}}) {
    const std::string shapes = str(z, " and ", directions);
    EXPECT_ERROR(error_of([&, &z = z, &directions = directions] { sigreg(f(z), f(directions)); }), "sigreg", shapes);
    EXPECT_ERROR(error_of([&, &z = z, &directions = directions] { visreg(f(z), f(directions)); }), "visreg", shapes);
  }
}

}  // namespace
}  // namespace vitrail::ops
