// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating-point types are tested exhaustively against their definition; also names and sizes of all dtypes.
#include "vitrail/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr DType kAll[] = {DType::f64, DType::f32, DType::bf16, DType::f16,    DType::i64,
                          DType::i32, DType::i8,  DType::u8,   DType::boolean};

// The value of a binary format with a sign bit, `kExponent` exponent bits and `kMantissa` mantissa bits.
template <int kExponent, int kMantissa>
double by_definition(uint16_t bits) {
  const int bias = (1 << (kExponent - 1)) - 1;
  const int exponent = (bits >> kMantissa) & ((1 << kExponent) - 1);
  const int mantissa = bits & ((1 << kMantissa) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << kExponent) - 1) return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - kMantissa);
  return sign * std::ldexp(mantissa + (1 << kMantissa), exponent - bias - kMantissa);
}

template <class T, int kExponent, int kMantissa>
void expect_every_value_converts_to_float_and_back() {
  for (int i = 0; i < 65536; ++i) {
    T value;
    value.bits = static_cast<uint16_t>(i);
    const double expected = by_definition<kExponent, kMantissa>(value.bits);
    const float read = static_cast<float>(value);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(read)) << std::hex << i;
      EXPECT_TRUE(std::isnan(static_cast<float>(T(read)))) << std::hex << i;
    } else {
      ASSERT_EQ(static_cast<double>(read), expected) << std::hex << i;
      ASSERT_EQ(std::signbit(read), std::signbit(expected)) << std::hex << i;
    }
    if (!std::isnan(expected)) {
      ASSERT_EQ(T(read).bits, i) << std::hex << i;
    } else {
      EXPECT_EQ(std::signbit(read), (i & 0x8000) != 0) << std::hex << i;
    }
  }
}

// Between each value and the next larger magnitude, the midpoint rounds to the even value and its float neighbours to
// the nearer value.  Above the largest finite value, the next value of an unbounded format takes the role of infinity.
template <class T, int kExponent, int kMantissa>
void expect_rounding_to_nearest_even() {
  const int infinity = ((1 << kExponent) - 1) << kMantissa;
  const double beyond = std::ldexp(1.0, 1 << (kExponent - 1));
  for (const int sign : {0, 0x8000}) {
    for (int low = 0; low < infinity; ++low) {
      const double a = by_definition<kExponent, kMantissa>(static_cast<uint16_t>(low));
      const double b =
          low + 1 == infinity ? beyond : by_definition<kExponent, kMantissa>(static_cast<uint16_t>(low + 1));
      const float middle = static_cast<float>((a + b) / 2);  // exact: a float has more mantissa bits
      const float s = sign ? -1.0f : 1.0f;
      const int even = low % 2 == 0 ? low : low + 1;
      ASSERT_EQ(T(s * middle).bits, even | sign) << "midpoint above " << std::hex << low;
      ASSERT_EQ(T(s * std::nextafter(middle, 0.0f)).bits, low | sign) << "below the midpoint above " << std::hex << low;
      const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
      ASSERT_EQ(T(s * above).bits, (low + 1) | sign) << "above the midpoint above " << std::hex << low;
    }
  }
}

TEST(Float16, EveryValueConvertsToFloatAndBack) { expect_every_value_converts_to_float_and_back<Float16, 5, 10>(); }

TEST(Float16, RoundsToNearestEvenBetweenAllNeighbours) { expect_rounding_to_nearest_even<Float16, 5, 10>(); }

TEST(BFloat16, EveryValueConvertsToFloatAndBack) { expect_every_value_converts_to_float_and_back<BFloat16, 8, 7>(); }

TEST(BFloat16, RoundsToNearestEvenBetweenAllNeighbours) { expect_rounding_to_nearest_even<BFloat16, 8, 7>(); }

TEST(Float16, ExtremesOverflowToInfinityAndUnderflowToZero) {
  EXPECT_EQ(Float16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(Float16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Float16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_EQ(Float16(-std::numeric_limits<float>::min()).bits, 0x8000);
}

TEST(HalfTypes, NanWithOnlyLowPayloadBitsStaysNan) {
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(nan))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan))));
}

TEST(DType, NamesConvertToDtypesAndBack) {
  for (const DType dtype : kAll) EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  EXPECT_EQ(dtype_from_name("fp32"), DType::f32);
  EXPECT_EQ(dtype_from_name("fp16"), DType::f16);
  EXPECT_EQ(dtype_from_name("fp64"), DType::f64);
}

TEST(DType, UnknownNameIsAnErrorThatShowsIt) {
  try {
    dtype_from_name("float33");
    FAIL() << "float33 was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'float33'"), std::string::npos) << error.what();
  }
}

TEST(DType, DispatchSizeAndKindAgreeWithTheType) {
  for (const DType dtype : kAll) {
    dispatch_dtype(dtype, [&](auto tag) {
      using T = decltype(tag);
      EXPECT_EQ(DTypeOf<T>::value, dtype);
      EXPECT_EQ(size_of(dtype), sizeof(T));
      EXPECT_EQ(is_floating(dtype), !std::is_integral_v<T>);
    });
  }
}

TEST(ConvertElement, ConvertsThroughFloatAsPyTorchDoes) {
  EXPECT_EQ(convert_element<Float16>(1.5).bits, Float16(1.5f).bits);
  // 1 + 2⁻¹¹ + 2⁻⁴⁰ is above the midpoint of two halves, but as a float it is the midpoint, which rounds to even.
  EXPECT_EQ(convert_element<Float16>(1.0 + 0x1p-11 + 0x1p-40).bits, 0x3c00);
  EXPECT_EQ(convert_element<int32_t>(BFloat16(-3.0f)), -3);
  EXPECT_EQ(convert_element<bool>(Float16(0.5f)), true);
  EXPECT_EQ(convert_element<int64_t>(-2.9), -2);
}

TEST(DType, HasTheseNamesSizesAndKinds) {
  struct Case {
    DType dtype;
    const char* name;
    size_t size;
    bool floating;
  };
  const Case cases[] = {
      {DType::f64, "f64", 8, true}, {DType::f32, "f32", 4, true},  {DType::bf16, "bf16", 2, true},
      {DType::f16, "f16", 2, true}, {DType::i64, "i64", 8, false}, {DType::i32, "i32", 4, false},
      {DType::i8, "i8", 1, false},  {DType::u8, "u8", 1, false},   {DType::boolean, "bool", 1, false}};
  for (const Case& c : cases) {
    EXPECT_STREQ(name_of(c.dtype), c.name);
    EXPECT_EQ(dtype_from_name(c.name), c.dtype) << c.name;
    EXPECT_EQ(size_of(c.dtype), c.size) << c.name;
    EXPECT_EQ(is_floating(c.dtype), c.floating) << c.name;
  }
  const auto beyond = static_cast<DType>(9);
  EXPECT_EQ(name_of(beyond), nullptr);
  for (const char* name : {"", "F32", "boolean", "fp8", "bfp16", "f32 "}) {
    try {
      dtype_from_name(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_ERROR(error.what(), "dtype", "'" + std::string(name) + "'");
    }
  }
}

// The upper bits of the payload are kept, and the quiet bit is set.
TEST(HalfTypes, NansKeepTheirSignAndPayload) {
  const auto nan = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  EXPECT_EQ(Float16(nan(0x7fc12000u)).bits, 0x7e09);
  EXPECT_EQ(Float16(nan(0xff812000u)).bits, 0xfe09);
  EXPECT_EQ(Float16(nan(0x7f800001u)).bits, 0x7e00);
  EXPECT_EQ(BFloat16(nan(0x7fa10001u)).bits, 0x7fe1);
  EXPECT_EQ(BFloat16(nan(0xff80ffffu)).bits, 0xffc0);
  EXPECT_EQ(BFloat16(nan(0x7fffffffu)).bits, 0x7fff);
}

TEST(HalfTypes, AreZeroWithoutAValue) {
  EXPECT_EQ(Float16().bits, 0);
  EXPECT_EQ(BFloat16().bits, 0);
}

}  // namespace
}  // namespace vitrail
