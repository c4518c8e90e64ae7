// SPDX-License-Identifier: Apache-2.0
#pragma once
// The instruction set that the kernels run with.  It is chosen once, at run time, from what the processor offers.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace vitrail::kernels {

// What VITRAIL_CPU can name.  The order of the enumerators means nothing: ask features_of() what one can do.
enum class Isa : uint8_t {
  scalar,
  sse4,
  avx2,
  avx512,
  avx512_vnni,
  avx512_bf16,
  avx512_amx,
  neon,
  neon_dotprod,
  neon_i8mm,
  neon_bf16
};

// Groups of instructions that a kernel can require.
enum class Feature : uint32_t {
  sse4 = 1 << 0,
  avx2 = 1 << 1,    // with FMA and BMI2
  avx512 = 1 << 2,  // F, BW, CD, DQ and VL
  avx512_vnni = 1 << 3,
  avx512_bf16 = 1 << 4,
  amx = 1 << 5,   // with int8 and bf16
  neon = 1 << 6,  // 64-bit ARM's Advanced SIMD
  neon_dotprod = 1 << 7,
  neon_i8mm = 1 << 8,
  neon_bf16 = 1 << 9,
};

class FeatureSet {
 public:
  constexpr FeatureSet(std::initializer_list<Feature> features) {
    for (const Feature feature : features) bits_ |= static_cast<uint32_t>(feature);
  }
  constexpr bool has(Feature feature) const { return (bits_ & static_cast<uint32_t>(feature)) != 0; }

 private:
  uint32_t bits_ = 0;
};

FeatureSet features_of(Isa isa);
const char* name_of(Isa isa);

// The instruction sets that this machine can run: scalar first, the default last.
std::vector<Isa> available_isas();

// The instruction set that kernels run with: the one that VITRAIL_CPU names, or else the default; force_isa() overrides
// both.  Throws Error if VITRAIL_CPU names an instruction set that is unknown or that this machine cannot run.
Isa active_isa();
FeatureSet active_features();  // features_of(active_isa())

// Whether VITRAIL_CPU or force_isa() asked for the active instruction set.  Another library that the kernels call must
// then keep to it (oneDNN: from its first use on); otherwise that library may use its own default.
bool isa_is_requested();

// Selects an instruction set from now on.  Not for use while kernels run.  Throws Error if this machine cannot run it.
// A PackedLinear keeps the instruction set under which it was packed, and oneDNN the one at its first use.
void force_isa(Isa isa);

// The version of a kernel that a call runs now, as that kernel reports it: "scalar", or Highway's name of the target
// ("SSE4", "AVX2", "AVX3" for AVX-512, "NEON").
std::string dispatched_target();

}  // namespace vitrail::kernels
