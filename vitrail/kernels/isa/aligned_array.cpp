// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/aligned_array_internal.h"

#include <mutex>

#include "vitrail/base/round_up_internal.h"

namespace vitrail::kernels {
namespace {

constexpr size_t kBlockBytes = 4 * kHugePageBytes;
// malloc packs smaller allocations well; larger ones would leave too much of a block unused.
constexpr size_t kMinSharedBytes = 64 << 10, kMaxSharedBytes = kBlockBytes / 4;

std::shared_ptr<void> allocate_alone(size_t bytes) { return {allocate_aligned(bytes), std::free}; }

}  // namespace

std::shared_ptr<void> allocate_in_shared_block(size_t bytes) {
  if (bytes < kMinSharedBytes || bytes > kMaxSharedBytes) return allocate_alone(bytes);
  static std::mutex mutex;
  static std::weak_ptr<void> current;
  static size_t used = 0;
  const size_t rounded = round_up(bytes, kCacheLinePairBytes);
  const std::lock_guard lock(mutex);
  std::shared_ptr<void> block = current.lock();
  if (!block || used + rounded > kBlockBytes) {
    current = block = allocate_alone(kBlockBytes);
    used = 0;
  }
  void* const part = static_cast<std::byte*>(block.get()) + used;
  used += rounded;
  return {block, part};
}

}  // namespace vitrail::kernels
