// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/amx_permission_internal.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vitrail::kernels {

bool processor_has_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;  // CPUID leaf 7, EDX
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kTile) != 0 && (edx & kInt8) != 0 &&
         (edx & kBf16) != 0;
}

bool may_use_amx_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

}  // namespace vitrail::kernels
#else
namespace vitrail::kernels {

bool processor_has_amx() { return false; }
bool may_use_amx_tiles() { return false; }

}  // namespace vitrail::kernels
#endif
