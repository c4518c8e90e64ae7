// SPDX-License-Identifier: Apache-2.0
#pragma once
// Roofline model (Williams et al. 2009): a lower bound for the time of a kernel, from peak rates measured on this
// machine.
#include <cstdint>

namespace vitrail::benchmarks {

// The multiply-adds of a kernel: fp32, half (bf16 instructions, or fp32 where the processor has none) or int8.
enum class Arithmetic { fp32, half, int8 };

// Operations per second of multiply-adds on registers, with the widest vectors of the active instruction set (isa.h).
// A multiply-add counts as two operations.  Measured once per process.
double peak_rate(Arithmetic arithmetic, int threads);

// Bytes per second of a copy, reads and writes together.  Source and destination have `bytes` in total, so that a small
// copy runs in a cache.  Measured once per process.
double copy_bandwidth(int64_t bytes, int threads);

// Lower bounds of the time, in seconds.
struct Bound {
  double compute, memory;
  double seconds() const { return compute > memory ? compute : memory; }
  const char* name() const { return compute > memory ? "compute" : "memory"; }
};
Bound roofline_bound(double operations, double bytes, int threads, Arithmetic arithmetic = Arithmetic::fp32);

}  // namespace vitrail::benchmarks
