// SPDX-License-Identifier: Apache-2.0
#pragma once
// Microkernels of bf16 in plain C++, for processors without the instructions.
#include "vitrail/base/dtype.h"
#include "vitrail/kernels/gemm/amx_microkernel-inl.h"

namespace vitrail::kernels::testing {

// vdpbf16ps in plain C++.
inline void emulated_bf16(const DotMicrokernelArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t c = 0; c < kAvx512Columns; ++c) {
      float& sum = static_cast<float*>(args.accumulators)[r * args.ld_accumulators + c];
      if (!args.accumulate) sum = 0;
      for (int64_t g = 0; g < args.k_groups; ++g) {
        const auto* const x = reinterpret_cast<const BFloat16*>(args.x + r * args.ldx + g);
        const auto* const w = reinterpret_cast<const BFloat16*>(args.panel + g * kAvx512Columns + c);
        for (int i = 0; i < 2; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(w[i]);
      }
    }
  }
}

inline void emulated_amx(const DotMicrokernelArgs& args) { amx_dot<Bf16Tiles<EmulatedTiles>>(args, emulated_bf16); }

}  // namespace vitrail::kernels::testing
