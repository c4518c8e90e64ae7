// SPDX-License-Identifier: Apache-2.0
#include "tests/support/paths.h"

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "vitrail/base/env_internal.h"

namespace vitrail::testing {
namespace fs = std::filesystem;
namespace {

// A process that is killed leaves its folder, and its number is given again: a number alone makes no new folder.
fs::path new_folder() {
  std::string path = fs::temp_directory_path() / "vitrail_test_XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path);
  fs::permissions(path, fs::perms(0755));  // some tests read it as another user
  return path;
}

struct Scratch {
  fs::path root = new_folder();
  int count = 0;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
};

}  // namespace

fs::path source(const std::string& relative) {
  const fs::path path = fs::path(VITRAIL_SOURCE_DIR) / relative;
  if (!fs::exists(path)) throw std::runtime_error("missing: " + path.string());
  return path;
}

fs::path fixture(const std::string& relative) { return source("tests/fixtures/" + relative); }

fs::path program() { return VITRAIL_PROGRAM; }

std::optional<fs::path> assets() {
  const fs::path path = environment("VITRAIL_ASSETS").value_or(VITRAIL_SOURCE_DIR "/../shared/assets");
  if (!fs::exists(path / "weights")) return std::nullopt;
  return path;
}

fs::path scratch_folder() {
  static Scratch scratch;
  const fs::path folder = scratch.root / std::to_string(scratch.count++);
  fs::create_directories(folder);
  return folder;
}

}  // namespace vitrail::testing
