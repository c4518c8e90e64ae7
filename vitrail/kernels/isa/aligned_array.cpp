// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/isa/aligned_array_internal.h"

#include <mutex>

namespace vitrail::kernels {
namespace {

constexpr size_t kBlock = 4 * kHugePageBytes;
// Smaller ones malloc has room for; larger ones would leave too much of a block unused.
constexpr size_t kSmallest = 64 << 10, kLargest = kBlock / 4;

std::shared_ptr<void> block_of(size_t bytes) { return {allocate_aligned(bytes), std::free}; }

}  // namespace

std::shared_ptr<void> share_block(size_t bytes) {
  if (bytes < kSmallest || bytes > kLargest) return block_of(bytes);
  static std::mutex mutex;
  static std::weak_ptr<void> last;
  static size_t used = 0;
  const size_t rounded = (bytes + kCacheLinePairBytes - 1) / kCacheLinePairBytes * kCacheLinePairBytes;
  const std::lock_guard lock(mutex);
  std::shared_ptr<void> block = last.lock();
  if (!block || used + rounded > kBlock) {
    last = block = block_of(kBlock);
    used = 0;
  }
  void* const part = static_cast<std::byte*>(block.get()) + used;
  used += rounded;
  return {block, part};
}

}  // namespace vitrail::kernels
