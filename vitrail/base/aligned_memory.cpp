// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/aligned_memory_internal.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "vitrail/base/round_up_internal.h"

namespace vitrail {

void* allocate_aligned(size_t bytes) {
  const size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kCacheLinePairBytes;
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), alignment);
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= kHugePageBytes) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: a failure leaves small pages
#endif
  return memory;
}

}  // namespace vitrail
