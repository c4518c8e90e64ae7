// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dot-product microkernels: rows of x by one packed panel of a weight, in int8, int16 or bf16.  Operands are packed in
// 32-bit K groups, that is consecutive values along K: int8×4 (x unsigned, weights signed, as vpdpbusd and vpmaddubsw
// want it), int16×2 or bf16×2.
#include <cstdint>

namespace vitrail::kernels {

constexpr int64_t kAvx512Columns = 32;  // columns of a panel for the AVX-512 microkernels

// How a panel of a weight is packed: [k_groups / interleaved_groups][columns][interleaved_groups].
struct PanelLayout {
  int64_t columns;
  int64_t interleaved_groups = 1;  // adjacent K groups of a column; k_groups is a multiple of it
};

// The part of a packed weight that the next call multiplies by.  A microkernel may prefetch it: a weight that exceeds
// the second-level cache is then read while the processor computes.
struct NextPanel {
  const void* data = nullptr;
  int64_t bytes = 0;  // 0: nothing is prefetched
};

struct DotMicrokernelArgs {
  const int32_t* x;  // [rows][k_groups], row stride ldx; with transposed_x [k_groups][rows], stride ldx of a K group
  int64_t ldx;
  const int32_t* panel;  // in the microkernel's PanelLayout, 64-byte aligned
  int64_t k_groups, rows;
  void* accumulators;  // [rows], row stride ld_accumulators: int32_t, or float for bf16; each row is 64-byte aligned
  int64_t ld_accumulators;
  int64_t columns = kAvx512Columns;  // used ones: int16 and bf16 do half of the work if the panel's left half has them
  bool accumulate = false;           // adds to the accumulators instead of overwriting them
  bool transposed_x = false;         // bf16 only
  NextPanel next = {};
};

using DotMicrokernel = void (*)(const DotMicrokernelArgs&);

// int8 under the instruction set that is active now; not for scalar.  int8_microkernel() adds pairs in 16 bits with
// saturation (vpmaddubsw): no pair of adjacent weights may exceed kSaturationLimit (weight_quantization_internal.h).
// widening_int8_microkernel() adds in 32 bits only: slower, and exact for all weights.
DotMicrokernel int8_microkernel();
DotMicrokernel widening_int8_microkernel();
int64_t int8_panel_columns();  // for both, and for vnni_microkernel() with AVX-512

// The AVX-512 extensions: int8 and int16 need Isa::avx512_vnni, bf16 needs Isa::avx512_bf16.
DotMicrokernel vnni_microkernel();
DotMicrokernel int16_microkernel();
DotMicrokernel bf16_microkernel();

// On AMX's tile registers, for Isa::avx512_amx.
DotMicrokernel amx_int8_microkernel();
DotMicrokernel amx_bf16_microkernel();  // without transposed_x

// The extensions of 64-bit ARM, for the instruction sets of these names.  The first has panels of int8_panel_columns().
constexpr PanelLayout kNeonMatrixPanel{.columns = 8, .interleaved_groups = 2};
DotMicrokernel neon_dotprod_microkernel();
DotMicrokernel neon_i8mm_microkernel();  // kNeonMatrixPanel
DotMicrokernel neon_bf16_microkernel();  // kNeonMatrixPanel; without transposed_x

// Floats of memory in which attention in bf16 packs the transpose of rows with so many columns (head_packing-inl.h).
inline int64_t packing_floats(int64_t columns) { return columns + kAvx512Columns * ((columns + 1) / 2); }

}  // namespace vitrail::kernels
