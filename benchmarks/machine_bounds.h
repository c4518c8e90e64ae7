// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this machine can do at most, measured once in each run: a kernel's time is a share of its bound.
#include <cstdint>

namespace vitrail::benchmarks {

// Operations a second of multiply-adds that touch no memory, a multiply-add counting two: fp32 by the widest vectors
// that the kernels may use here (isa.h), bf16 (where it is multiplied, else fp32), or the bytes of int8 products.
enum class Arithmetic { fp32, bf16, bytes };
double peak_rate(Arithmetic arithmetic, int threads);

// Bytes a second, read and written together, of a copy whose two halves have `bytes` in all: what fits into a cache is
// found there.
double copy_rate(int64_t bytes, int threads);

// The least time for so many operations on so many bytes: the longer of the two, in seconds.
struct Bound {
  double compute, memory;
  double seconds() const { return compute > memory ? compute : memory; }
  const char* name() const { return compute > memory ? "compute" : "memory"; }
};
Bound bound_of(double operations, double bytes, int threads, Arithmetic arithmetic = Arithmetic::fp32);

}  // namespace vitrail::benchmarks
