// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs for the tests of the program: a small model and a few generated images.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace vitrail::testing {

inline std::string small_model() { return fixture("models/timm_token").string(); }  // 32×32
inline constexpr int kSmallModelClasses = 10;

// A new folder with n different images a.png, b.png, …
std::filesystem::path image_folder(int n);

// A copy of a model's fixture with another config.json.
inline std::filesystem::path with_config(const std::string& name, const std::function<void(nlohmann::json&)>& change) {
  const std::filesystem::path folder = scratch_folder();
  std::filesystem::copy(fixture("models/" + name), folder, std::filesystem::copy_options::recursive);
  std::ifstream in(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  change(config);
  std::ofstream(folder / "config.json", std::ios::trunc) << config;
  return folder;
}

// A number as printf formats it.
inline std::string formatted(const char* format, double value) {
  char text[128];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> objects;
  for (const std::string& line : lines_of(text)) objects.push_back(nlohmann::json::parse(line));
  return objects;
}

}  // namespace vitrail::testing
