// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/aligned_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace vitrail {

void* allocate_aligned(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kLinePair;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it the pages are small
#endif
  return memory;
}

}  // namespace vitrail
