// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "vitrail/kernels/isa/thread_scratch_internal.h"

namespace vitrail::kernels {
namespace {

TEST(ThreadScratch, HoldsWhatIsAskedForAndIsAligned) {
  for (const int64_t floats : {1, 100, 5000, 100'000, 7, 3'000'000, 100'001, 3'000'001}) {
    float* const memory = thread_scratch(floats);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u) << floats;
    std::fill_n(memory, floats, 1.0f);
    EXPECT_EQ(std::count(memory, memory + floats, 1.0f), floats);
  }
}

TEST(ThreadScratch, IsTheSameMemoryUntilItMustGrow) {
  std::thread([] {
    float* const first = thread_scratch(1000);
    EXPECT_EQ(thread_scratch(1000), first);
    EXPECT_EQ(thread_scratch(10), first);
    EXPECT_EQ(thread_scratch(1000), first) << "a smaller request does not shrink it";
  }).join();
}

TEST(ThreadScratch, IsThatOfTheThread) {
  float* const own = thread_scratch(1000);
  float* other = nullptr;
  std::thread([&] { other = thread_scratch(1000); }).join();
  EXPECT_NE(own, other);
}

TEST(ThreadScratch, KeepsWhatWasWrittenUntilItMustGrow) {
  std::thread([] {
    float* const memory = thread_scratch(1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 128, 0u);
    std::fill_n(memory, 1000, 3.0f);
    for (const int64_t floats : {1000, 999, 1, 0, 1000}) {
      float* const again = thread_scratch(floats);
      EXPECT_EQ(std::count(again, again + 1000, 3.0f), 1000) << floats;
    }
  }).join();
}

}  // namespace
}  // namespace vitrail::kernels
