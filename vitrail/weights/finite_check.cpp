// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/finite_check_internal.h"

#include <algorithm>

namespace vitrail::weights {
namespace {

// NaN and infinity have all exponent bits set.  Only then does adding the lowest exponent bit to the masked exponent
// carry into the sign bit.
template <class Bits>
bool any_non_finite(const Bits* bits, int64_t count, Bits exponent, Bits unit) {
  Bits seen = 0;
  for (int64_t i = 0; i < count; ++i) seen |= static_cast<Bits>((bits[i] & exponent) + unit);
  return seen >> (sizeof(Bits) * 8 - 1) != 0;
}

// Works in chunks, so that only one chunk is read twice to find the index.
template <class Bits>
std::optional<int64_t> search(const std::byte* data, int64_t count, Bits exponent, Bits unit) {
  constexpr int64_t kChunk = 1 << 16;
  const Bits* bits = reinterpret_cast<const Bits*>(data);
  for (int64_t first = 0; first < count; first += kChunk) {
    const int64_t length = std::min(kChunk, count - first);
    if (!any_non_finite(bits + first, length, exponent, unit)) continue;
    int64_t at = first;
    while (!any_non_finite(bits + at, 1, exponent, unit)) ++at;
    return at;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> first_non_finite(const Tensor& tensor) {
  const int64_t count = tensor.numel();
  if (count == 0) return std::nullopt;
  switch (tensor.dtype()) {
    case DType::f64:
      return search<uint64_t>(tensor.raw(), count, 0x7ff0'0000'0000'0000u, 0x0010'0000'0000'0000u);
    case DType::f32:
      return search<uint32_t>(tensor.raw(), count, 0x7f80'0000u, 0x0080'0000u);
    case DType::bf16:
      return search<uint16_t>(tensor.raw(), count, 0x7f80u, 0x0080u);
    case DType::f16:
      return search<uint16_t>(tensor.raw(), count, 0x7c00u, 0x0400u);
    case DType::i64:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace vitrail::weights
