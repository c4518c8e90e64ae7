// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/isa.h"

#include <atomic>
#include <mutex>

#include "vitrail/base/env_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/kernels/isa/amx_permission_internal.h"
#include "vitrail/kernels/isa/arm_extensions_internal.h"

namespace vitrail::kernels {
namespace {

struct IsaInfo {
  const char* name;  // null past the last instruction set
  FeatureSet features;
};

// The last one that a machine can run is its default.
constexpr IsaInfo info_of(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return {"scalar", {}};
    case Isa::sse4:
      return {"sse4", {Feature::sse4}};
    case Isa::avx2:
      return {"avx2", {Feature::sse4, Feature::avx2}};
    case Isa::avx512:
      return {"avx512", {Feature::sse4, Feature::avx2, Feature::avx512}};
    case Isa::avx512_vnni:
      return {"avx512_vnni", {Feature::sse4, Feature::avx2, Feature::avx512, Feature::avx512_vnni}};
    case Isa::avx512_bf16:
      return {"avx512_bf16",
              {Feature::sse4, Feature::avx2, Feature::avx512, Feature::avx512_vnni, Feature::avx512_bf16}};
    case Isa::avx512_amx:
      return {
          "avx512_amx",
          {Feature::sse4, Feature::avx2, Feature::avx512, Feature::avx512_vnni, Feature::avx512_bf16, Feature::amx}};
    case Isa::neon:
      return {"neon", {Feature::neon}};
    case Isa::neon_dotprod:
      return {"neon_dotprod", {Feature::neon, Feature::neon_dotprod}};
    case Isa::neon_i8mm:
      return {"neon_i8mm", {Feature::neon, Feature::neon_dotprod, Feature::neon_i8mm}};
    case Isa::neon_bf16:
      return {"neon_bf16", {Feature::neon, Feature::neon_dotprod, Feature::neon_i8mm, Feature::neon_bf16}};
  }
  return {nullptr, {}};
}

// Whether the processor has, and the operating system saves the registers of, all extensions that Highway compiles the
// target with (hwy/ops/set_macros-inl.h).  F16C is not asked for: each processor with AVX2 has it, and not every
// compiler knows its name here.
#if defined(__x86_64__)
bool machine_has(Feature feature) {
  switch (feature) {
    case Feature::sse4:
      return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
             __builtin_cpu_supports("aes");
    case Feature::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
             __builtin_cpu_supports("bmi2");
    case Feature::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd");
    case Feature::avx512_vnni:
      return __builtin_cpu_supports("avx512vnni");
    case Feature::avx512_bf16:
      return __builtin_cpu_supports("avx512bf16");
    case Feature::amx:
      return processor_has_amx() && may_use_amx_tiles();
    case Feature::neon:
    case Feature::neon_dotprod:
    case Feature::neon_i8mm:
    case Feature::neon_bf16:
      return false;
  }
  return false;
}
#elif defined(__aarch64__)
bool machine_has(Feature feature) {
  switch (feature) {
    case Feature::neon:
      return true;  // a part of the architecture
    case Feature::neon_dotprod:
      return processor_has_dot_product();
    case Feature::neon_i8mm:
      return processor_has_i8mm();
    case Feature::neon_bf16:
      return processor_has_arm_bf16();
    case Feature::sse4:
    case Feature::avx2:
    case Feature::avx512:
    case Feature::avx512_vnni:
    case Feature::avx512_bf16:
    case Feature::amx:
      return false;
  }
  return false;
}
#else
bool machine_has(Feature) { return false; }
#endif

bool machine_has(FeatureSet features) {
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    const auto feature = static_cast<Feature>(bit);
    if (features.has(feature) && !machine_has(feature)) return false;
  }
  return true;
}

// The available instruction set of this name; throws Error if there is none.
Isa checked(const std::string& where, const std::string& name) {
  const std::vector<Isa> here = available_isas();
  for (const Isa isa : here) {
    if (name == name_of(isa)) return isa;
  }
  if (name == name_of(Isa::avx512_amx) && processor_has_amx() && !may_use_amx_tiles()) {
    throw Error(where, "a system that lets programs use AMX's tile registers (Linux 5.16 or later)",
                "'" + name + "' on a system that refuses");
  }
  throw Error(where,
              "an instruction set of this machine (" + join(here, ", ", [](Isa isa) { return name_of(isa); }) + ")",
              "'" + name + "'");
}

std::atomic<int> selected{-1};  // an Isa; −1 before the first selection
std::atomic<bool> requested{false};
std::mutex selecting;

void select(Isa isa, bool by_request) {
  requested.store(by_request, std::memory_order_relaxed);
  selected.store(static_cast<int>(isa), std::memory_order_release);
}

}  // namespace

const char* name_of(Isa isa) { return info_of(isa).name; }
FeatureSet features_of(Isa isa) { return info_of(isa).features; }
FeatureSet active_features() { return features_of(active_isa()); }

std::vector<Isa> available_isas() {
  std::vector<Isa> list;
  for (int i = 0; info_of(static_cast<Isa>(i)).name; ++i) {
    if (machine_has(features_of(static_cast<Isa>(i)))) list.push_back(static_cast<Isa>(i));
  }
  return list;
}

Isa active_isa() {
  const int known = selected.load(std::memory_order_acquire);
  if (known >= 0) return static_cast<Isa>(known);
  const std::lock_guard lock(selecting);
  if (selected.load(std::memory_order_acquire) < 0) {
    const auto name = environment("VITRAIL_CPU");
    select(name ? checked("VITRAIL_CPU", *name) : available_isas().back(), name.has_value());
  }
  return static_cast<Isa>(selected.load(std::memory_order_acquire));
}

bool isa_is_requested() {
  active_isa();  // reads VITRAIL_CPU if nothing has yet
  return requested.load(std::memory_order_relaxed);
}

void force_isa(Isa isa) {
  checked("instruction set", name_of(isa));
  const std::lock_guard lock(selecting);
  select(isa, true);
}

}  // namespace vitrail::kernels
