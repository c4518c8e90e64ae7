// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/isa.h"

#include <array>
#include <atomic>
#include <mutex>

#include "vitrail/base/env.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/gemm/onednn_internal.h"

namespace vitrail::kernels {
namespace {

constexpr std::array kNames{"scalar", "sse4", "avx2", "avx512", "avx512_vnni", "avx512_bf16"};

std::atomic<int> chosen{-1};
std::mutex choosing;

// What the processor has and the system keeps, of the extensions that Highway compiles each target with
// (hwy/ops/set_macros-inl.h), but for F16C, which every processor with AVX2 has and not every compiler can ask for.
#if defined(__x86_64__)
bool available(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return true;
    case Isa::sse4:
      return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
             __builtin_cpu_supports("aes");
    case Isa::avx2:
      return available(Isa::sse4) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    case Isa::avx512:
      return available(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512cd");
    case Isa::avx512_vnni:
      return available(Isa::avx512) && __builtin_cpu_supports("avx512vnni");
    case Isa::avx512_bf16:
      return available(Isa::avx512_vnni) && __builtin_cpu_supports("avx512bf16");
  }
  return false;
}
#else
bool available(Isa isa) { return isa == Isa::scalar; }
#endif

void select(Isa isa) { chosen.store(static_cast<int>(isa), std::memory_order_release); }

std::string listed(const std::vector<Isa>& isas) {
  std::string list;
  for (Isa isa : isas) list += (list.empty() ? "" : ", ") + std::string(name_of(isa));
  return list;
}

Isa checked(const std::string& where, const std::string& name) {
  const std::vector<Isa> here = available_isas();
  for (Isa isa : here) {
    if (name == name_of(isa)) return isa;
  }
  throw Error(where, "an instruction set of this machine (" + listed(here) + ")", "'" + name + "'");
}

}  // namespace

const char* name_of(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

std::vector<Isa> available_isas() {
  std::vector<Isa> list;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (available(static_cast<Isa>(i))) list.push_back(static_cast<Isa>(i));
  }
  return list;
}

Isa active_isa() {
  const int known = chosen.load(std::memory_order_acquire);
  if (known >= 0) return static_cast<Isa>(known);
  std::lock_guard lock(choosing);
  if (chosen.load(std::memory_order_acquire) < 0) {
    const auto name = environment("VITRAIL_CPU");
    const Isa isa = name ? checked("VITRAIL_CPU", *name) : available_isas().back();
    if (name) onednn::cap_isa(isa);  // without a name oneDNN keeps its own best choice
    select(isa);
  }
  return static_cast<Isa>(chosen.load(std::memory_order_acquire));
}

bool force_isa(Isa isa) {
  checked("instruction set", name_of(isa));
  std::lock_guard lock(choosing);
  select(isa);
  return onednn::cap_isa(isa);
}

}  // namespace vitrail::kernels
