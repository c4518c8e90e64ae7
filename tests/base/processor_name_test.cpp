// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/processor_name_internal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace vitrail {
namespace {

// What is behind the first "KEY…: " of the system's list; empty if it has no such line.
std::string value_in(const std::string& text, const std::string& key) {
  const size_t line = text.starts_with(key) ? 0 : text.find("\n" + key);
  if (line == text.npos) return "";
  const size_t colon = text.find(": ", line), end = text.find('\n', line + 1);
  return colon < end ? text.substr(colon + 2, end - colon - 2) : "";
}

TEST(ProcessorName, IsTheModelsNameOfTheSystemsList) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string model = value_in(text, "model name"), implementer = value_in(text, "CPU implementer"),
                    part = value_in(text, "CPU part");
  if (!model.empty()) {
    EXPECT_EQ(processor_name(), model);
  } else if (!implementer.empty() && !part.empty()) {
    EXPECT_EQ(processor_name(), "ARM, implementer " + implementer + ", part " + part);
  } else {
    EXPECT_EQ(processor_name(), "unknown processor");
  }
}

}  // namespace
}  // namespace vitrail
