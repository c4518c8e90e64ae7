#pragma once
// The one wrapper around oneDNN (2.6 and 3.x).  Built without it (VITRAIL_ONEDNN off), available() is false and
// cap_isa() does nothing; the rest throws std::logic_error.
#include <cstdint>

#include "vitrail/kernels/isa.h"

namespace vitrail::kernels::onednn {

bool available();

// Limits oneDNN to an instruction set; scalar, which bypasses oneDNN, limits it to the lowest.  False when oneDNN has
// run before and keeps what it had.  True without oneDNN.
bool cap_isa(Isa isa);

// The best instruction set that oneDNN's products may use, rounded down to one of ours.
Isa effective_isa();

// c [m, n] = op(a) op(b) (+ c when accumulate), row-major.
void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
           const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc);

}  // namespace vitrail::kernels::onednn
