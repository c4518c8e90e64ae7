#pragma once
// What the tests of datasets share.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace vitrail::data {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// Puts a small picture at each of these places below `root`.
inline void place_images(const fs::path& root, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    fs::create_directories((root / place).parent_path());
    fs::copy_file(testing::fixture("data/red.png"), root / place);
  }
}

// The message of the Error that `action` throws; a failed test and "" when it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// Collects the library's warnings for its life.
class Warnings {
 public:
  Warnings() : before_(set_warning_callback([this](const std::string& message) { messages.push_back(message); })) {}
  ~Warnings() { set_warning_callback(before_); }
  std::vector<std::string> messages;

 private:
  WarningCallback before_;
};

}  // namespace vitrail::data
