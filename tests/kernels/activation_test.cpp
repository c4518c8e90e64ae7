// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/activation.h"

#include <limits>
#include <string>
#include <utility>

#include "tests/kernels/kernel_testing.h"
#include "tests/support/errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::kEps;

constexpr Activation kAllButTanh[] = {Activation::none,       Activation::gelu, Activation::gelu_tanh,
                                      Activation::quick_gelu, Activation::relu, Activation::silu};

std::vector<double> activation_reference(Activation activation, const std::vector<float>& x) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = scalar::activate<double>(activation, x[i]);
  return y;
}

// The vector functions are good to a few roundings of the result and, where |result| is small beside |x|, to 1e-7
// absolute.  The float reference for erf-GELU computes 1 + erf, whose rounding is multiplied by |x|/2: eps·|x|.
double activation_tolerance(float x, double y) {
  return 4 * kEps * std::abs(y) + 1e-7 + kEps * std::min(std::abs(x), 6.0f);
}

std::vector<float> grid() {
  std::vector<float> x;
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 5e-4f);  // [−20, 20]
  for (float big : {1e-30f, 1e-10f, 50.0f, 87.0f, 88.5f, 89.0f, 100.0f, 1000.0f, 1e10f, 3e38f}) {
    x.push_back(big);
    x.push_back(-big);
  }
  return x;
}

TEST(Activation, MatchesTheDoubleReferenceOnEveryIsa) {
  const std::vector<float> x = grid();
  testing::for_each_isa([&](Isa) {
    for (Activation activation : kAllButTanh) {
      SCOPED_TRACE(name_of(activation));
      std::vector<float> y(x.size());
      activate(activation, x.data(), y.data(), static_cast<int64_t>(x.size()));
      const std::vector<double> want = activation_reference(activation, x);
      testing::expect_close(y, want, [&](int64_t i) { return activation_tolerance(x[i], want[i]); });
    }
  });
}

// The polynomial's 7e-9, the roundings of a product of at most 0.17, and half an ulp of the result.
TEST(Activation, GeluLosesNoDigitsToCancellation) {
  const std::vector<float> x = grid();
  const std::vector<double> want = activation_reference(Activation::gelu, x);
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    std::vector<float> y(x.size());
    activate(Activation::gelu, x.data(), y.data(), static_cast<int64_t>(x.size()));
    testing::expect_close(y, want, [&](int64_t i) { return 7e-8 + 0.5 * kEps * std::abs(want[i]); });
  });
}

TEST(Activation, HandlesAwkwardLengthsMisalignedAndInPlace) {
  testing::for_each_isa([](Isa) {
    for (int64_t n : testing::kAwkwardLengths) {
      for (int64_t offset : {0, 1, 3}) {
        const std::vector<float> x = testing::random_floats(n, static_cast<uint32_t>(n), 3);
        Buffer from(x, offset), to(n, offset), same(x, offset);
        activate(Activation::gelu, from.data(), to.data(), n);
        activate(Activation::gelu, same.data(), same.data(), n);
        to.check();
        same.check();
        const std::vector<double> want = activation_reference(Activation::gelu, x);
        testing::expect_close(to.values(), want, [&](int64_t i) { return activation_tolerance(x[i], want[i]); });
        EXPECT_EQ(to.values(), same.values());
      }
    }
  });
}

TEST(Activation, PropagatesNaNAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  testing::for_each_isa([&](Isa) {
    for (Activation activation : kAllButTanh) {
      std::vector<float> x(19, 0.5f);
      x[3] = x[17] = nan;
      x[4] = x[18] = infinity;
      activate(activation, x.data(), x.data(), 19);
      EXPECT_TRUE(std::isnan(x[3]) && std::isnan(x[17])) << name_of(activation);
      EXPECT_TRUE(x[4] == infinity && x[18] == infinity) << name_of(activation);
      EXPECT_FALSE(std::isnan(x[2]) || std::isnan(x[16]));
    }
  });
}

TEST(Activation, BitsDoNotDependOnThreads) {
  const std::vector<float> x = testing::random_floats(50001, 3, 3);
  testing::for_each_isa([&](Isa) {
    std::vector<float> one(x.size()), three(x.size());
    {
      ThreadCount threads(1);
      activate(Activation::gelu, x.data(), one.data(), 50001);
    }
    ThreadCount threads(3);
    activate(Activation::gelu, x.data(), three.data(), 50001);
    EXPECT_EQ(one, three);
  });
}

TEST(Activation, SiluGateMatchesItsReference) {
  testing::for_each_isa([](Isa) {
    for (int64_t cols : testing::kAwkwardLengths) {
      const int64_t rows = 5, ldx = 2 * cols + 3, ldy = cols + 1;
      const std::vector<float> x = testing::random_floats(rows * ldx, 11, 2);
      const Buffer from(x, 1);
      Buffer to(rows * ldy, 1);
      std::vector<double> want(rows * ldy, 12345.0);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          const double gate = scalar::activate<double>(Activation::silu, x[r * ldx + c]);
          want[r * ldy + c] = gate * x[r * ldx + cols + c];
        }
      }
      silu_gate(from.data(), ldx, to.data(), ldy, rows, cols);
      to.check();
      testing::expect_close(to.values(), want, [&](int64_t i) { return 6 * kEps * std::abs(want[i]) + 1e-7; });
    }
  });
}

TEST(Activation, NamesAreReadAndWrongOnesAreListed) {
  EXPECT_EQ(activation_from_name("quick_gelu"), Activation::quick_gelu);
  EXPECT_STREQ(name_of(Activation::gelu_tanh), "gelu_tanh");
  try {
    activation_from_name("swish");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("quick_gelu"), std::string::npos);
  }
}

TEST(Activation, HasTheNamesOfConfigurations) {
  const std::vector<std::pair<Activation, std::string>> names{{Activation::none, "none"},
                                                              {Activation::gelu, "gelu"},
                                                              {Activation::gelu_tanh, "gelu_tanh"},
                                                              {Activation::quick_gelu, "quick_gelu"},
                                                              {Activation::relu, "relu"},
                                                              {Activation::silu, "silu"},
                                                              {Activation::tanh, "tanh"}};
  for (const auto& [kind, name] : names) {
    EXPECT_STREQ(name_of(kind), name.c_str());
    if (kind != Activation::none) {
      EXPECT_EQ(activation_from_name(name), kind) << name;
    }
  }
  EXPECT_EQ(name_of(static_cast<Activation>(names.size())), nullptr) << "there is no other";
  for (const std::string wrong : {"none", "GELU", ""}) {
    try {
      activation_from_name(wrong);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_ERROR(std::string(error.what()), "activation", "'" + wrong + "'");
    }
  }
}

TEST(Activation, TanhMatchesTheDoubleReferenceOnEveryIsa) {
  const std::vector<float> x = grid();
  testing::for_each_isa([&](Isa) {
    std::vector<float> y(x.size());
    activate(Activation::tanh, x.data(), y.data(), static_cast<int64_t>(x.size()));
    testing::expect_close(y, activation_reference(Activation::tanh, x), [](int64_t) { return 3 * kEps; });
  });
}

TEST(Activation, SiluKeepsItsRelativePrecisionFarBelowZero) {
  testing::for_each_isa([](Isa) {
    std::vector<float> x;
    for (int i = 1; i <= 172; ++i) x.push_back(-0.5f * static_cast<float>(i));  // down to −86
    std::vector<float> y(x.size());
    activate(Activation::silu, x.data(), y.data(), static_cast<int64_t>(x.size()));
    const std::vector<double> want = activation_reference(Activation::silu, x);
    testing::expect_close(y, want, [&](int64_t i) { return 1e-5 * std::abs(want[i]); });
  });
}

}  // namespace
}  // namespace vitrail::kernels
