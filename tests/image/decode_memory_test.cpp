// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/decode_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/memory_limit.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

constexpr int64_t kSide = 1000;
constexpr int64_t kReserved = 6 * kSide * kSide;  // see reserve_pixels

Image decode_grey_square() {
  static const std::string file = "P5 1000 1000 255\n" + std::string(kSide * kSide, 'x');
  return decode(std::as_bytes(std::span(file)), {.mode = ColorMode::grey}, "square");
}

class DecodeMemory : public ::testing::Test {
 protected:
  ~DecodeMemory() override { set_decode_memory(default_); }

  const int64_t default_ = decode_memory();
};

// Whether a second thread's image is decoded within the time while the first thread still holds its own.
bool second_image_is_decoded_beside_the_first(std::chrono::milliseconds time = std::chrono::milliseconds(200)) {
  std::atomic<bool> second_begins = false, second_is_done = false;
  bool beside = false;
  std::thread second;
  {
    const DecodeMemoryScope scope;
    decode_grey_square();
    second = std::thread([&] {
      const DecodeMemoryScope second_scope;
      second_begins = true;
      decode_grey_square();
      second_is_done = true;
    });
    const auto end = std::chrono::steady_clock::now() + time;
    while (!second_is_done && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    beside = second_is_done;
  }
  second.join();
  return second_begins && beside;
}

TEST_F(DecodeMemory, ConcurrentImagesWaitUntilTheirMemoryFits) {
  set_decode_memory(2 * kReserved - 1);
  EXPECT_FALSE(second_image_is_decoded_beside_the_first());
}

TEST_F(DecodeMemory, ConcurrentImagesBelowTheLimitDoNotWait) {
  for (const int64_t limit : {2 * kReserved, std::numeric_limits<int64_t>::max()}) {
    set_decode_memory(limit);
    EXPECT_TRUE(second_image_is_decoded_beside_the_first(std::chrono::minutes(1))) << limit;
  }
}

TEST_F(DecodeMemory, AnImageLargerThanTheLimitIsDecodedAlone) {
  set_decode_memory(1);
  EXPECT_FALSE(second_image_is_decoded_beside_the_first());
  const DecodeMemoryScope scope;
  EXPECT_EQ(decode_grey_square().width, kSide);
}

TEST_F(DecodeMemory, SmallImagesDoNotWaitForLargeOnes) {
  static const std::string file = "P5 8000 1000 255\n" + std::string(8 * kSide * kSide, 'x');
  set_decode_memory(32 * kReserved);
  std::vector<std::thread> large;
  std::atomic<int> waiting = 0;
  {
    const DecodeMemoryScope scope;
    reserve_pixels("large", 32 * kSide, kSide, 0);  // all of it
    for (int i = 0; i < 2; ++i) {
      large.emplace_back([&] {
        const DecodeMemoryScope next;
        ++waiting;
        decode(std::as_bytes(std::span(file)), {.mode = ColorMode::grey}, "large");
        --waiting;
      });
    }
    while (waiting < 2) std::this_thread::yield();
    std::vector<std::thread> small;
    for (int i = 0; i < 5; ++i) {
      small.emplace_back([&] {
        const DecodeMemoryScope next;
        decode_grey_square();
      });
    }
    for (std::thread& thread : small) thread.join();
    EXPECT_EQ(waiting, 2) << "images of more than a 32nd wait";
  }
  for (std::thread& thread : large) thread.join();
}

TEST_F(DecodeMemory, AScopeReplacesTheMemoryOfItsLastImage) {
  set_decode_memory(kReserved);
  const DecodeMemoryScope scope;
  decode_grey_square();
  EXPECT_EQ(decode_grey_square().width, kSide);  // would wait for ever
}

TEST_F(DecodeMemory, OfManyConcurrentImagesAllAreDecoded) {
  set_decode_memory(2 * kReserved);
  std::atomic<int> decoded = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const DecodeMemoryScope scope;
        if (decode_grey_square().width == kSide) ++decoded;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(decoded, 40);
}

TEST_F(DecodeMemory, OutsideOfAScopeNothingIsReserved) {
  set_decode_memory(kReserved);
  const DecodeMemoryScope scope;
  decode_grey_square();
  std::thread([] { decode_grey_square(); }).join();  // would wait for ever
}

TEST_F(DecodeMemory, LimitsBelowOneByteAreRefused) { EXPECT_THROW(set_decode_memory(0), Error); }

TEST_F(DecodeMemory, ASecondScopeOfAThreadIsRefused) {
  const DecodeMemoryScope scope;
  EXPECT_THROW(DecodeMemoryScope{}, Error);
}

TEST_F(DecodeMemory, IsAGibibyteOrHalfOfTheMemoryLimitUntilItIsSet) {
  EXPECT_EQ(default_, std::min(int64_t{1} << 30, memory_limit() / 2));
  set_decode_memory(12'345);
  EXPECT_EQ(decode_memory(), 12'345);
  set_decode_memory(1);
  EXPECT_EQ(decode_memory(), 1);
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_ERROR(testing::error_of([&] { set_decode_memory(bytes); }), "decode memory", std::to_string(bytes));
  }
  EXPECT_EQ(decode_memory(), 1) << "the limit stays";
}

TEST_F(DecodeMemory, AnImageOfMoreThanThreeQuartersOfTheMemoryLimitIsRefused) {
  constexpr int64_t kLimit = int64_t{300} << 20;
  EXPECT_NO_THROW(check_image_memory("a.png", kLimit / 4 * 3, kLimit));
  EXPECT_ERROR(testing::error_of([] { check_image_memory("a.png", kLimit / 4 * 3 + 1, kLimit); }), "a.png", "226 MiB");
}

TEST_F(DecodeMemory, ScopesFollowEachOtherOnAThread) {
  for (int round = 0; round < 2; ++round) {
    const DecodeMemoryScope scope;
    EXPECT_ERROR(testing::error_of([] { const DecodeMemoryScope second; }), "DecodeMemoryScope", "a second one");
    std::thread([] { const DecodeMemoryScope other_thread; }).join();
  }
}

}  // namespace
}  // namespace vitrail::image
