// SPDX-License-Identifier: Apache-2.0
// Compiles the including file once per target.  A kernel's .cpp defines HWY_TARGET_INCLUDE as its own path and then
// includes this file, which has no include guard for that reason.
//
// SSE4, AVX2, AVX-512 (Highway's AVX3) and NEON are the targets of dispatch_internal.h.  SSSE3 and AVX-512's smaller
// extensions would add compile time and no useful instruction.  On x86 Highway also compiles its own baseline, which
// never runs: a machine without SSE4 runs the scalar references.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"
#include "vitrail/kernels/isa/dispatch_internal.h"

// HWY_ATTR for a lambda that runs once per vector.  GCC compiles some of those as functions of their own, which pass
// vectors in memory.
#define VITRAIL_INLINE_ATTR HWY_ATTR __attribute__((always_inline))
