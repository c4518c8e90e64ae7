// SPDX-License-Identifier: Apache-2.0
// Warnings reach the callback of the program around the library.
#include "vitrail/base/callbacks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

TEST(Warnings, GoToTheInstalledCallbackAndAreDroppedWithoutOne) {
  std::vector<std::string> heard;
  WarningCallback before = set_warning_callback([&](const std::string& message) { heard.push_back(message); });
  warn("one");
  set_warning_callback(nullptr);
  warn("two");
  set_warning_callback(std::move(before));
  EXPECT_EQ(heard, std::vector<std::string>{"one"});
}

TEST(Warnings, CallbackMayItselfWarnOrReplaceItself) {
  int heard = 0;
  WarningCallback before = set_warning_callback([&](const std::string&) {
    set_warning_callback([&](const std::string&) { heard += 10; });
    ++heard;
    warn("from inside");
  });
  warn("first");
  set_warning_callback(std::move(before));
  EXPECT_EQ(heard, 11);
}

TEST(Warnings, ConcurrentWarningsAllArrive) {
  std::atomic<int> heard{0};
  WarningCallback before = set_warning_callback([&](const std::string&) { ++heard; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) warn(str("warning ", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_warning_callback(std::move(before));
  EXPECT_EQ(heard, 400);
}

TEST(Error, SaysWhereWhatWasExpectedAndWhatCame) {
  EXPECT_STREQ(Error("patch_embed", "an image of 224×224", str(225, "×", 224)).what(),
               "patch_embed: expected an image of 224×224, got 225×224");
}

}  // namespace
}  // namespace vitrail
