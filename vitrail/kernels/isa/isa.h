// SPDX-License-Identifier: Apache-2.0
#pragma once
// The instruction set that kernels run with: chosen once, at run time, from what the processor has.
#include <string>
#include <vector>

namespace vitrail::kernels {

// Each includes the ones before it.  avx512: F, BW, CD, DQ, VL.  avx512_vnni and avx512_bf16 add their extension.
enum class Isa { scalar, sse4, avx2, avx512, avx512_vnni, avx512_bf16 };

const char* name_of(Isa isa);

// What runs: the best that the machine has, or what VITRAIL_CPU names, or force_isa()'s last choice.  scalar also
// bypasses oneDNN; the others cap oneDNN too.  Throws Error when VITRAIL_CPU names nothing known or nothing the machine
// has.
Isa active_isa();

// Forces an instruction set from now on; one that the machine has not is an Error.  Not for use while kernels run.
// oneDNN takes a cap only before its first product: true when it took this one, false when it keeps the one it had.
// A PackedLinear keeps the instruction set that it was packed under.
bool force_isa(Isa isa);

// What a kernel called now was compiled for, as it says itself: "scalar", or Highway's name ("SSE4", "AVX2", "AVX3").
std::string dispatched_target();

std::vector<Isa> available_isas();  // those this machine can run, scalar first

}  // namespace vitrail::kernels
