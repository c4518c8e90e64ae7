// SPDX-License-Identifier: Apache-2.0
// The process-wide warning callback, and the text of Error.
#include "vitrail/base/callbacks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

TEST(Warnings, ReachTheInstalledCallbackAndAreDroppedWithoutOne) {
  std::vector<std::string> received;
  WarningCallback previous = set_warning_callback([&](const std::string& message) { received.push_back(message); });
  warn("one");
  set_warning_callback(nullptr);
  warn("two");
  set_warning_callback(std::move(previous));
  EXPECT_EQ(received, std::vector<std::string>{"one"});
}

TEST(Warnings, CallbackMayItselfWarnOrReplaceItself) {
  int received = 0;
  WarningCallback previous = set_warning_callback([&](const std::string&) {
    set_warning_callback([&](const std::string&) { received += 10; });
    ++received;
    warn("from inside");
  });
  warn("first");
  set_warning_callback(std::move(previous));
  EXPECT_EQ(received, 11);
}

TEST(Warnings, ConcurrentWarningsAllArrive) {
  std::atomic<int> received{0};
  WarningCallback previous = set_warning_callback([&](const std::string&) { ++received; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) warn(str("warning ", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_warning_callback(std::move(previous));
  EXPECT_EQ(received, 400);
}

TEST(Error, NamesThePlaceTheExpectedAndTheGivenValue) {
  EXPECT_STREQ(Error("patch_embed", "an image of 224×224", str(225, "×", 224)).what(),
               "patch_embed: expected an image of 224×224, got 225×224");
}

TEST(Warnings, TheCallbackBeforeIsReturned) {
  std::string received;
  WarningCallback original = set_warning_callback([&](const std::string& message) { received += "one " + message; });
  WarningCallback one = set_warning_callback([&](const std::string& message) { received += "two " + message; });
  ASSERT_TRUE(one);
  one("a;");
  warn("b;");
  const WarningCallback two = set_warning_callback(nullptr);
  warn("c;");
  EXPECT_FALSE(set_warning_callback(two)) << "there was none";
  warn("d;");
  set_warning_callback(std::move(original));
  EXPECT_EQ(received, "one a;two b;two d;");
}

}  // namespace
}  // namespace vitrail
