// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/output_checks.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <optional>

#include "vitrail/base/final_target_internal.h"
#include "vitrail/base/output_guard_internal.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

std::optional<std::pair<uint64_t, uint64_t>> identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return std::pair{static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)};
}

bool is_device(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

// The same for all paths of a file, also before it exists.
fs::path canonical_output(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(final_target(path), error);
  if (error) return path;
  const fs::path canonical = fs::weakly_canonical(absolute, error);
  return error ? absolute : canonical;
}

}  // namespace

FileSet::FileSet(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) add(path);
}

void FileSet::add(const std::string& path) {
  if (const auto identity = identity_of(path == "-" ? "/dev/stdin" : path)) files_.insert(*identity);
}

bool FileSet::contains(const std::string& path) const {
  const auto identity = identity_of(path);
  return identity && files_.contains(*identity);
}

void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs) {
  const FileSet files(inputs);
  std::vector<std::string> guarded;
  std::map<fs::path, std::string> options;
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
    if (path == "-") throw CLI::ValidationError(option, "expected a file, got -: standard output has other results");
    if (files.contains(path)) throw CLI::ValidationError(option, "expected another file than the input " + path);
    if (is_device(path)) continue;
    guarded.push_back(path);
    const auto [other, is_new] = options.emplace(canonical_output(path), option);
    if (!is_new)
      throw CLI::ValidationError(option, "expected another file than that of " + other->second + ", " + path);
  }
  guard_outputs(guarded);
}

bool replaces_file(const std::string& output) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(output, unknown);
}

}  // namespace vitrail::app
