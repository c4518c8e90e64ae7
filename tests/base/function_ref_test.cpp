// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/function_ref.h"

#include <gtest/gtest.h>

#include <string>

namespace vitrail {
namespace {

std::string called(FunctionRef<void(const std::string&, int)> function, const std::string& text, int number) {
  function(text, number);
  return text;
}

TEST(FunctionRef, CallsItsTargetWithTheArgumentsInTheirOrder) {
  std::string seen;
  const auto note = [&](const std::string& text, int number) { seen += text + std::to_string(number) + ";"; };
  const FunctionRef<void(const std::string&, int)> reference = note;
  reference("a", 1);
  reference("b", 2);
  const FunctionRef<void(const std::string&, int)> copy = reference;
  copy("c", 3);
  called([&](const std::string& text, int number) { seen += "other " + text + std::to_string(number); }, "d", 4);
  EXPECT_EQ(seen, "a1;b2;c3;other d4");
}

TEST(FunctionRef, RefersToTheCallableItselfAndIgnoresItsResult) {
  struct Counter {
    int* count;
    int operator()(int by, int times) const { return *count += by * 10 + times; }
  };
  int count = 0;
  const Counter counter{&count};
  const FunctionRef<void(int, int)> reference = counter;
  reference(2, 1);
  reference(3, 4);
  EXPECT_EQ(count, 55);
}

}  // namespace
}  // namespace vitrail
