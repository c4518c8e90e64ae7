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

// Forces an instruction set from now on, before the first product has run (oneDNN takes its cap only once).
void force_isa(Isa isa);

std::vector<Isa> available_isas();  // those this machine can run, scalar first

}  // namespace vitrail::kernels
