// SPDX-License-Identifier: Apache-2.0
// Which targets Highway compiles the kernels for, and the include that repeats a file for each of them.  A kernel's
// .cpp sets HWY_TARGET_INCLUDE to its own name and then includes this file; it has no include guard for that reason.
//
// SSE4, AVX2 and AVX-512 (Highway's AVX3) are what isa.h can choose from.  SSSE3 and the smaller extensions of AVX-512
// would add compile time and no float instruction.  Highway adds a baseline of its own, which never runs: a machine
// without SSE4 gets the scalar references.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif

#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"
#include "vitrail/kernels/isa/dispatch_internal.h"
