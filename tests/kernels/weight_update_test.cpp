// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/optimizer/weight_update.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/kernels/optimizer/scalar_optimizer_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::kEps;
using testing::random_floats;

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

// One step of each rule on elements that are all alike, by hand.
template <class T>
struct OneStep {
  static constexpr int64_t kCount = 11;
  std::vector<T> w, g, m, v;
  OneStep(T w, T g, T m, T v = 0) : w(kCount, w), g(kCount, g), m(kCount, m), v(kCount, v) {}
  static void expect(const std::vector<T>& values, double want) {
    for (const T value : values) EXPECT_NEAR(value, want, (sizeof(T) == 8 ? 1e-14 : 1e-6) * (1 + std::abs(want)));
  }
};

template <class T>
void expect_steps_by_hand() {
  using Step = OneStep<T>;
  constexpr int64_t n = Step::kCount;
  // m: 1 + ¼ (2 − 1), v: ½ 14 + ½ 2², √v / ½ + ¼ = 6¼
  const AdamStep adam{.gradient_scale = 0.5,
                      .beta1 = 0.75,
                      .beta2 = 0.5,
                      .eps = 0.25,
                      .bias_correction1 = 0.5,
                      .sqrt_bias_correction2 = 0.5,
                      .rate = 0.1,
                      .weight_decay = 0.3};
  Step a(2, 4, 1, 14);
  adamw(a.w.data(), a.g.data(), a.m.data(), a.v.data(), n, adam);
  Step::expect(a.m, 1.25);
  Step::expect(a.v, 9);
  Step::expect(a.w, 2 * 0.97 - 0.04);
  Step l(2, 4, 1, 14);
  const LambSquares squares = lamb_moments(l.w.data(), l.g.data(), l.m.data(), l.v.data(), n, adam);
  Step::expect(l.m, 1.25);
  Step::expect(l.v, 9);
  Step::expect(l.w, 2);
  EXPECT_NEAR(squares.weight, 4 * n, 1e-5);
  EXPECT_NEAR(squares.update, n, 1e-5) << "0.4 + 0.3 · 2 each";
  lamb_apply(l.w.data(), l.m.data(), l.v.data(), n, 0.7, adam);
  Step::expect(l.w, 2 - 0.1 * 0.7);
  for (const bool nesterov : {false, true}) {
    const SgdStep sgd_step{
        .gradient_scale = 0.5, .rate = 0.1, .weight_decay = 0.25, .momentum = 0.5, .nesterov = nesterov};
    Step s(2, 4, 3);  // d = 2.5
    sgd(s.w.data(), s.g.data(), s.m.data(), n, sgd_step);
    Step::expect(s.m, 4);
    Step::expect(s.w, nesterov ? 2 - 0.1 * 4.5 : 2 - 0.1 * 4);
    Step alone(2, 4, 3);
    sgd(alone.w.data(), alone.g.data(), nullptr, n, sgd_step);
    Step::expect(alone.w, 2 - 0.25);
  }
  const LionStep lion_step{.gradient_scale = 0.5, .beta1 = 0.75, .beta2 = 0.5, .rate = 0.1, .weight_decay = 0.3};
  Step up(2, -4, 1);  // the direction is 1 + ¼ (−2 − 1) > 0
  lion(up.w.data(), up.g.data(), up.m.data(), n, lion_step);
  Step::expect(up.w, 2 * 0.97 - 0.1);
  Step::expect(up.m, -0.5);
  Step down(2, -10, 1);  // 1 + ¼ (−5 − 1) < 0
  lion(down.w.data(), down.g.data(), down.m.data(), n, lion_step);
  Step::expect(down.w, 2 * 0.97 + 0.1);
  Step::expect(down.m, -2);
  Step near(1, 5, 0), far(1, 5, 0), there(1, 5, 0);
  lerp(near.w.data(), near.g.data(), n, 0.25);
  Step::expect(near.w, 2);
  lerp(far.w.data(), far.g.data(), n, 0.75);
  Step::expect(far.w, 4);
  lerp(there.w.data(), there.g.data(), n, 1);
  EXPECT_EQ(there.w, there.g);
  scale(near.w.data(), n, -1.5);
  Step::expect(near.w, -3);
  EXPECT_NEAR(sum_of_squares(near.w.data(), n), 9 * n, 1e-4);
}

TEST(WeightUpdate, StepsAreTheirFormulasInF64) { expect_steps_by_hand<double>(); }

TEST(WeightUpdate, StepsAreTheirFormulasOnEveryIsa) {
  testing::for_each_isa([](Isa) { expect_steps_by_hand<float>(); });
}

TEST(WeightUpdate, StepsHaveTheDefaultsOfTheirPapers) {
  const AdamStep adam;
  EXPECT_EQ(adam.beta1, 0.9);
  EXPECT_EQ(adam.beta2, 0.999);
  EXPECT_EQ(adam.eps, 1e-8);
  EXPECT_EQ(adam.gradient_scale, 1);
  EXPECT_EQ(adam.bias_correction1, 1);
  EXPECT_EQ(adam.sqrt_bias_correction2, 1);
  EXPECT_EQ(adam.rate, 0);
  EXPECT_EQ(adam.weight_decay, 0);
  const LionStep lion;
  EXPECT_EQ(lion.beta1, 0.9);
  EXPECT_EQ(lion.beta2, 0.99);
  EXPECT_EQ(lion.gradient_scale, 1);
  const SgdStep sgd;
  EXPECT_EQ(sgd.gradient_scale, 1);
  EXPECT_EQ(sgd.momentum, 0);
  EXPECT_FALSE(sgd.nesterov);
}

// At ½ from b; from a the result would be another double.
TEST(WeightUpdate, LerpTurnsToTheOtherEndAtOneHalf) {
  EXPECT_EQ(scalar::lerp(-5.0, -1.8, 0.5), -1.8 - (-1.8 - -5.0) * 0.5);
  EXPECT_NE(scalar::lerp(-5.0, -1.8, 0.5), -5.0 + 0.5 * (-1.8 - -5.0));
  EXPECT_EQ(scalar::lerp(3.0f, 5.0f, 0.0f), 3.0f);
  EXPECT_EQ(scalar::lerp(1e30f, 5.0f, 1.0f), 5.0f);
  EXPECT_EQ(scalar::sign(-2.5), -1);
  EXPECT_EQ(scalar::sign(0.0), 0);
  EXPECT_EQ(scalar::sign(1e-300), 1);
  EXPECT_TRUE(std::isnan(scalar::sign(std::numeric_limits<double>::quiet_NaN())));
}

TEST(SumOfSquares, FitsF64WhereItExceedsF32) {
  testing::for_each_isa([](Isa) {
    const std::vector<float> x(19, 0x1p127f);
    EXPECT_EQ(sum_of_squares(x.data(), 19), 19 * 0x1p254);
  });
}

}  // namespace
}  // namespace vitrail::kernels
