// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/optimizer/weight_update.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/kernels/optimizer/scalar_optimizer_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::random_floats;

constexpr double kEps = std::numeric_limits<float>::epsilon();

// What a rule works on: weights, gradients, two buffers; the second, of squares, is not negative.
struct Arrays {
  explicit Arrays(int64_t n, int64_t offset = 0)
      : w(random_floats(n, 1), offset),
        g(random_floats(n, 2), offset),
        m(random_floats(n, 3), offset),
        v(squares(n), offset) {}
  static std::vector<float> squares(int64_t n) {
    std::vector<float> values = random_floats(n, 4);
    for (float& x : values) x *= x;
    return values;
  }
  Buffer w, g, m, v;
};

// The same in double, as the references run it.
struct Doubles {
  explicit Doubles(const Arrays& a) : w(wide(a.w)), g(wide(a.g)), m(wide(a.m)), v(wide(a.v)) {}
  static std::vector<double> wide(const Buffer& buffer) {
    const std::vector<float> values = buffer.values();
    return {values.begin(), values.end()};
  }
  std::vector<double> w, g, m, v;
};

// Runs a rule on every instruction set, length and alignment, and the reference on doubles.  A rule rounds at most
// eight times, and no value exceeds 8 (draws of N(0, 1) are below 5, quotients of moments below 8).
void compare(const std::function<void(Arrays&, int64_t)>& rule,
             const std::function<void(Doubles&, int64_t)>& reference) {
  testing::for_each_isa([&](Isa) {
    for (const int64_t n : testing::kAwkwardLengths) {
      for (const int64_t offset : {0, 1, 3}) {
        Arrays got(n, offset);
        Doubles want(got);
        rule(got, n);
        reference(want, n);
        const auto tolerance = [](int64_t) { return 8 * 8 * kEps; };
        testing::expect_close(got.w.values(), want.w, tolerance);
        testing::expect_close(got.m.values(), want.m, tolerance);
        testing::expect_close(got.v.values(), want.v, tolerance);
        for (const Buffer* buffer : {&got.w, &got.g, &got.m, &got.v}) buffer->check();
      }
    }
  });
}

// ε = 0.1 keeps quotients of random moments in bounds.
AdamStep adam_step(double beta1) {
  return {.gradient_scale = 0.5,
          .beta1 = beta1,
          .beta2 = 0.9,
          .eps = 0.1,
          .bias_correction1 = 1 - beta1 * beta1,
          .sqrt_bias_correction2 = 0.43,
          .rate = 0.1,
          .weight_decay = 0.3};
}

TEST(WeightUpdate, AdamWMatchesTheReferenceOnEveryIsa) {
  for (const double beta1 : {0.9, 0.2}) {
    const AdamStep s = adam_step(beta1);
    compare([&](Arrays& a, int64_t n) { adamw(a.w.data(), a.g.data(), a.m.data(), a.v.data(), n, s); },
            [&](Doubles& d, int64_t n) { scalar::adamw(d.w.data(), d.g.data(), d.m.data(), d.v.data(), n, s); });
  }
}

TEST(WeightUpdate, LambMatchesTheReferenceOnEveryIsa) {
  const AdamStep s = adam_step(0.9);
  LambSquares got, want;
  compare(
      [&](Arrays& a, int64_t n) {
        got = lamb_moments(a.w.data(), a.g.data(), a.m.data(), a.v.data(), n, s);
        lamb_apply(a.w.data(), a.m.data(), a.v.data(), n, 0.7, s);
      },
      [&](Doubles& d, int64_t n) {
        want = scalar::lamb_moments(d.w.data(), d.g.data(), d.m.data(), d.v.data(), n, s);
        scalar::lamb_apply(d.w.data(), d.m.data(), d.v.data(), n, 0.7, s);
        EXPECT_NEAR(got.weight, want.weight, 1e-12 * want.weight);
        EXPECT_NEAR(got.update, want.update, 20 * kEps * want.update + 1e-12);  // an update has about ten roundings
      });
}

TEST(WeightUpdate, SgdMatchesTheReferenceOnEveryIsa) {
  for (const bool nesterov : {false, true}) {
    const SgdStep s{.gradient_scale = 0.5, .rate = 0.1, .weight_decay = 0.3, .momentum = 0.9, .nesterov = nesterov};
    compare([&](Arrays& a, int64_t n) { sgd(a.w.data(), a.g.data(), a.m.data(), n, s); },
            [&](Doubles& d, int64_t n) { scalar::sgd(d.w.data(), d.g.data(), d.m.data(), n, s); });
  }
  const SgdStep plain{.rate = 0.1};
  compare([&](Arrays& a, int64_t n) { sgd(a.w.data(), a.g.data(), nullptr, n, plain); },
          [&](Doubles& d, int64_t n) { scalar::sgd<double>(d.w.data(), d.g.data(), nullptr, n, plain); });
}

TEST(WeightUpdate, LionMatchesTheReferenceOnEveryIsa) {
  const LionStep s{.gradient_scale = 0.5, .rate = 0.1, .weight_decay = 0.3};
  compare([&](Arrays& a, int64_t n) { lion(a.w.data(), a.g.data(), a.m.data(), n, s); },
          [&](Doubles& d, int64_t n) { scalar::lion(d.w.data(), d.g.data(), d.m.data(), n, s); });
}

TEST(WeightUpdate, LionStandsStillWhereNothingPulls) {
  testing::for_each_isa([](Isa) {
    std::vector<float> w(11, 2), zero(11, 0), m(11, 0);
    lion(w.data(), zero.data(), m.data(), 11, {.rate = 0.1});
    EXPECT_EQ(w, std::vector<float>(11, 2));
  });
}

TEST(WeightUpdate, LerpAndScaleMatchTheReferenceOnEveryIsa) {
  for (const double weight : {0.0, 1e-4, 0.4, 0.6}) {
    compare([&](Arrays& a, int64_t n) { lerp(a.w.data(), a.g.data(), n, weight); },
            [&](Doubles& d, int64_t n) { scalar::lerp(d.w.data(), d.g.data(), n, weight); });
  }
  compare([&](Arrays& a, int64_t n) { scale(a.w.data(), n, -0.3); },
          [&](Doubles& d, int64_t n) { scalar::scale(d.w.data(), n, -0.3); });
}

TEST(WeightUpdate, LerpOfWeightOneIsACopy) {
  testing::for_each_isa([](Isa) {
    std::vector<float> a(13, 1e30f);
    const std::vector<float> b = random_floats(13, 1);
    lerp(a.data(), b.data(), 13, 1);
    EXPECT_EQ(a, b);
  });
}

TEST(SumOfSquares, IsExactToDoubleRoundingOnEveryIsa) {
  testing::for_each_isa([](Isa) {
    for (const int64_t n : testing::kAwkwardLengths) {
      const Buffer x(random_floats(n, 1, 1e15f), 1);
      const std::vector<float> values = x.values();
      const double want = scalar::sum_of_squares(values.data(), n);
      EXPECT_NEAR(sum_of_squares(x.data(), n), want, 1e-13 * want);
    }
  });
}

TEST(WeightUpdate, NonFiniteGradientsReachTheWeights) {
  testing::for_each_isa([](Isa) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Arrays a(9);
      a.g.data()[8] = bad;
      adamw(a.w.data(), a.g.data(), a.m.data(), a.v.data(), 9, adam_step(0.9));
      EXPECT_TRUE(std::isnan(a.w.data()[8]));
      EXPECT_TRUE(std::isfinite(a.w.data()[7]));
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels
