// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

namespace vitrail {

// n / divisor, rounded up, for n ≥ 0.
template <class Integer>
constexpr Integer ceil_div(Integer n, std::type_identity_t<Integer> divisor) {
  return (n + divisor - 1) / divisor;
}

// The smallest multiple of `step` that is at least n ≥ 0.
template <class Integer>
constexpr Integer round_up(Integer n, std::type_identity_t<Integer> step) {
  return ceil_div(n, step) * step;
}

}  // namespace vitrail
