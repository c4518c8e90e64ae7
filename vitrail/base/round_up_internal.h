// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail {

// The smallest multiple of `step` that is at least n ≥ 0.
inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

}  // namespace vitrail
