// SPDX-License-Identifier: Apache-2.0
// The bf16 GEMM of mixed-precision training, and conversions.
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/base/dtype.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/rowwise/bf16_conversion.h"

namespace vitrail::kernels {
namespace {

using testing::kEps;
using testing::random_floats;

// Every transposition, strides, both types of result, and shapes that fill no vector.
template <class C>
void check_bf16_gemm(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool with_bias) {
  SCOPED_TRACE(::testing::Message() << m << ' ' << n << ' ' << k << ' ' << ta << tb << with_bias);
  const int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 3, ldc = n + 1;
  std::vector<BFloat16> a, b;
  for (const float value : random_floats((ta ? k : m) * lda, 1)) a.push_back(BFloat16(value));
  for (const float value : random_floats((tb ? n : k) * ldb, 2)) b.push_back(BFloat16(value));
  const std::vector<float> bias = random_floats(n, 3);
  std::vector<C> c(m * ldc, C(-7.0f));
  gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, with_bias ? bias.data() : nullptr, c.data(), ldc);
  // A result in bf16 is rounded by at most 2⁻⁸ of itself.
  const double rounding = std::is_same_v<C, BFloat16> ? 1.0 / 256 : 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double want = with_bias ? bias[j] : 0.0, size = std::abs(want);
      for (int64_t p = 0; p < k; ++p) {
        const double x{static_cast<float>(a[ta ? p * lda + i : i * lda + p])},
            y{static_cast<float>(b[tb ? j * ldb + p : p * ldb + j])};
        want += x * y;
        size += std::abs(x * y);
      }
      EXPECT_NEAR(static_cast<float>(c[i * ldc + j]), want, kEps * (k + 2) * size + rounding * std::abs(want) * 1.01);
    }
    EXPECT_EQ(static_cast<float>(c[i * ldc + n]), -7.0f);
  }
}

TEST(Bf16Gemm, EqualsTheSumInF64) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs AVX-512 BF16 and oneDNN";
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {65, 96, 192}, {31, 33, 200}, {4, 8, 0}}) {
    for (const int options : {0, 1, 2, 3, 4, 5, 6, 7}) {
      check_bf16_gemm<float>(m, n, k, options & 1, options & 2, options & 4);
      check_bf16_gemm<BFloat16>(m, n, k, options & 1, options & 2, options & 4);
    }
  }
}

// Tiles of rows and columns, on the threads of parallel loops alone: threads of OpenMP wait in busy loops.
TEST(Bf16Gemm, IsDividedAmongTheThreadsOfLoops) {
  if (!multiplies_bf16()) GTEST_SKIP() << "needs AVX-512 BF16 and oneDNN";
  const ThreadCount three(3);
  parallel_for(0, 3, 1, [](int64_t, int64_t) {});
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = threads();
  for (const int options : {0, 1, 2, 3, 4, 5, 6, 7}) {
    check_bf16_gemm<float>(150, 200, 90, options & 1, options & 2, options & 4);
    check_bf16_gemm<BFloat16>(150, 200, 90, options & 1, options & 2, options & 4);
  }
  EXPECT_EQ(threads(), before);
}

// Bit for bit as element by element, special values included.
TEST(Bf16Conversion, EqualsBFloat16) {
  std::vector<float> x = random_floats(1003, 3);
  const float max = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  x.insert(x.end(), {0.0f, -0.0f, 1e-40f, -1e-42f, max, -max, infinity, -infinity, 1.00390625f, 1.01171875f,
                     std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffc12345u)});
  const auto n = static_cast<int64_t>(x.size());
  testing::for_each_isa([&](Isa) {
    std::vector<BFloat16> y(x.size());
    std::vector<float> back(x.size());
    round_to_bf16(x.data(), y.data(), n);
    widen_bf16(y.data(), back.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(y[i].bits, BFloat16(x[i]).bits) << x[i];
      EXPECT_EQ(std::bit_cast<uint32_t>(back[i]), uint32_t{y[i].bits} << 16);
    }
  });
}

TEST(Precision, NamesGoBothWaysAndOthersAreRefused) {
  for (const Precision precision : {Precision::fp32, Precision::half, Precision::int8})
    EXPECT_EQ(precision_from_name(name_of(precision)), precision);
  EXPECT_EQ(precision_from_name("bf16"), Precision::half);
  EXPECT_ANY_THROW(precision_from_name("fp8"));
}

// Such a result needs no multiplication, and every processor gives it.
TEST(Bf16Gemm, OfNoTermsIsTheBias) {
  const std::vector<float> bias{1, 2, 3};
  std::vector<float> wide(2 * 5, 9.0f);
  gemm(false, true, 2, 3, 0, static_cast<const BFloat16*>(nullptr), 0, static_cast<const BFloat16*>(nullptr), 0,
       bias.data(), wide.data(), 5);
  EXPECT_EQ(wide, (std::vector<float>{1, 2, 3, 9, 9, 1, 2, 3, 9, 9}));
  std::vector<BFloat16> narrow(2 * 4, BFloat16(9.0f));
  gemm(false, true, 2, 3, 0, static_cast<const BFloat16*>(nullptr), 0, static_cast<const BFloat16*>(nullptr), 0,
       nullptr, narrow.data(), 4);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(static_cast<float>(narrow[i]), i % 4 == 3 ? 9.0f : 0.0f) << i;
}

TEST(Bf16Gemm, NeedsTheInstructionsOfTheProcessor) {
  testing::for_each_isa([](Isa isa) {
    if (!features_of(isa).has(Feature::avx512_bf16) && !features_of(isa).has(Feature::neon_bf16)) {
      EXPECT_FALSE(multiplies_bf16());
    }
  });
}

TEST(Precision, NamesAreThoseOfTheCommand) {
  EXPECT_STREQ(name_of(Precision::fp32), "fp32");
  EXPECT_STREQ(name_of(Precision::half), "half");
  EXPECT_STREQ(name_of(Precision::int8), "int8");
  EXPECT_STREQ(name_of(Arithmetic::fp32), "fp32");
  EXPECT_STREQ(name_of(Arithmetic::int16), "int16");
  EXPECT_STREQ(name_of(Arithmetic::bf16), "bf16");
  EXPECT_STREQ(name_of(Arithmetic::int8), "int8");
  try {
    precision_from_name("fp8");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "precision: expected fp32, half or int8, got 'fp8'");
  }
}

}  // namespace
}  // namespace vitrail::kernels
