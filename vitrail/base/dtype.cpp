// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/dtype.h"

#include "vitrail/base/enum_name_internal.h"
#include "vitrail/base/error.h"

namespace vitrail {
namespace {

struct DTypeInfo {
  const char* name;
  size_t size;
  bool floating;
};

constexpr DTypeInfo info(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {"f64", 8, true};
    case DType::f32:
      return {"f32", 4, true};
    case DType::bf16:
      return {"bf16", 2, true};
    case DType::f16:
      return {"f16", 2, true};
    case DType::i64:
      return {"i64", 8, false};
    case DType::i32:
      return {"i32", 4, false};
    case DType::i8:
      return {"i8", 1, false};
    case DType::u8:
      return {"u8", 1, false};
    case DType::boolean:
      return {"bool", 1, false};
  }
  return {nullptr, 0, false};
}

}  // namespace

size_t size_of(DType dtype) { return info(dtype).size; }
const char* name_of(DType dtype) { return info(dtype).name; }
bool is_floating(DType dtype) { return info(dtype).floating; }

DType dtype_from_name(std::string_view name) {
  if (const auto found = enum_from_name<DType>(name)) return *found;
  if (name == "fp64") return DType::f64;
  if (name == "fp32") return DType::f32;
  if (name == "fp16") return DType::f16;
  throw Error("dtype", "f64, f32, bf16, f16, i64, i32, i8, u8 or bool", "'" + std::string(name) + "'");
}

Float16::Float16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  } else if (magnitude >= 0x477ff000u) {  // values from 65520 round to infinity
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (magnitude >= 0x38800000u) {  // normal: 2^-14 and above
    const uint32_t rebiased = magnitude - 0x38000000u;
    bits = static_cast<uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
  } else {
    // Subnormal: adding 0.5 aligns the mantissa so that the float adder rounds to a multiple of 2^-24.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - std::bit_cast<uint32_t>(0.5f)));
  }
}

Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // zero and subnormals: mantissa · 2^-24
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

}  // namespace vitrail
