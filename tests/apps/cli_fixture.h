// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the command line's tests run on: a small model fixture and a few pictures made here.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace vitrail::testing {

inline std::string small_model() { return fixture("models/timm_token").string(); }  // 32×32, 10 classes

// A folder with n pictures a.png, b.png, … that differ.
std::filesystem::path picture_folder(int n);

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> objects;
  for (const std::string& line : lines_of(text)) objects.push_back(nlohmann::json::parse(line));
  return objects;
}

}  // namespace vitrail::testing
