// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types of tensors, and the 16-bit floating-point types bfloat16 and float16, which C++20 lacks.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace vitrail {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, i8, u8, boolean };

size_t size_of(DType dtype);                   // bytes of one element
const char* name_of(DType dtype);              // "f32", …, "bool"
bool is_floating(DType dtype);                 // f64, f32, bf16, f16
DType dtype_from_name(std::string_view name);  // inverse of name_of; also accepts "fp64", "fp32", "fp16"; throws Error

// bfloat16: the upper 16 bits of an IEEE 754 single.  Conversion rounds to nearest even; NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {  // in the header, so that the compiler can vectorise loops over it
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    // The quiet bit keeps a NaN whose payload has bits only in the lower half.
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : rounded);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// IEEE 754 half precision.  Conversion rounds to nearest even, overflows to infinity and keeps subnormals.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

// Maps a C++ type to its DType: DTypeOf<float>::value is DType::f32.
template <DType D>
struct DTypeConstant {
  static constexpr DType value = D;
};
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> : DTypeConstant<DType::f64> {};
template <>
struct DTypeOf<float> : DTypeConstant<DType::f32> {};
template <>
struct DTypeOf<BFloat16> : DTypeConstant<DType::bf16> {};
template <>
struct DTypeOf<Float16> : DTypeConstant<DType::f16> {};
template <>
struct DTypeOf<int64_t> : DTypeConstant<DType::i64> {};
template <>
struct DTypeOf<int32_t> : DTypeConstant<DType::i32> {};
template <>
struct DTypeOf<int8_t> : DTypeConstant<DType::i8> {};
template <>
struct DTypeOf<uint8_t> : DTypeConstant<DType::u8> {};
template <>
struct DTypeOf<bool> : DTypeConstant<DType::boolean> {};

// Calls visitor(T{}) with the C++ type of `dtype`: dispatch_dtype(d, [&](auto tag) { using T = decltype(tag); … }).
template <class Visitor>
decltype(auto) dispatch_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::f64:
      return visitor(double{});
    case DType::f32:
      return visitor(float{});
    case DType::bf16:
      return visitor(BFloat16{});
    case DType::f16:
      return visitor(Float16{});
    case DType::i64:
      return visitor(int64_t{});
    case DType::i32:
      return visitor(int32_t{});
    case DType::i8:
      return visitor(int8_t{});
    case DType::u8:
      return visitor(uint8_t{});
    case DType::boolean:
      break;
  }
  return visitor(bool{});
}

// Converts one element as PyTorch's Tensor.to does: the 16-bit types convert through float.
template <class To, class From>
To convert_element(From value) {
  constexpr bool from_half = std::is_same_v<From, BFloat16> || std::is_same_v<From, Float16>;
  constexpr bool to_half = std::is_same_v<To, BFloat16> || std::is_same_v<To, Float16>;
  if constexpr (from_half) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (to_half) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace vitrail
