// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/output_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "vitrail/base/final_target_internal.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

// The first bytes of what commands write, at `offset`.
struct FileFormat {
  Kind kind;
  std::string_view start;
  size_t offset = 0;
};
constexpr FileFormat kFormats[] = {{Kind::array, "\x93NUMPY"},
                                   {Kind::archive, "PK"},
                                   {Kind::feature_table, "path,f0"},
                                   {Kind::predictions, "file,label,prediction"},
                                   {Kind::predictions, "file,labels,predictions"},
                                   {Kind::mask_table, "id,area,"},
                                   {Kind::png, "\x89PNG"},
                                   {Kind::page, "<!doctype html"},
                                   {Kind::json, "{"},
                                   {Kind::weights, "{", 8},
                                   {Kind::onnx, "\x08"},
                                   {Kind::index, "IxFI"},
                                   {Kind::index, "IxSQ"}};

std::optional<std::pair<uint64_t, uint64_t>> identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return std::pair{static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)};
}

bool is_device(const std::string& path) {
  if (path.starts_with("/dev/") || path.starts_with("/proc/self/fd/")) return true;  // also where it leads to a file
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

// The folder of inputs that a path is in; empty if it is in none.
std::string folder_around(const std::string& path, const std::vector<std::string>& inputs) {
  const fs::path inner = canonical_output(path);
  for (const std::string& input : inputs) {
    std::error_code error;
    const fs::path folder = fs::is_directory(input, error) ? fs::canonical(input, error) : fs::path();
    if (folder.empty() || error) continue;
    if (std::mismatch(folder.begin(), folder.end(), inner.begin(), inner.end()).first == folder.end()) return input;
  }
  return "";
}

// The start of a file, which is longer than a record.
std::string start_of(const std::string& path) {
  constexpr std::streamsize kMaxBytes = 4'000'000;
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxBytes, '\0');
  in.read(text.data(), kMaxBytes);
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

bool has_keys(const std::string& json, std::initializer_list<const char*> keys) {
  const nlohmann::json object = nlohmann::json::parse(json, nullptr, false);
  return std::ranges::all_of(keys, [&](const char* key) { return object.is_object() && object.contains(key); });
}

bool has_content(const std::string& path) {
  std::error_code error;
  return fs::file_size(path, error) > 0 && !error;
}

bool is_own(const OutputFile& output) {
  const auto exists = [](const std::string& path) {
    std::error_code error;
    return fs::exists(path, error);
  };
  if (std::ranges::any_of(output.owners, exists)) return true;
  if (output.kind == Kind::paths) return false;
  const std::string text = start_of(output.path);
  if (text.empty()) return !exists(output.path);  // another run may be replacing it
  if (output.kind == Kind::task_file) return !output.start.empty() && text.starts_with(output.start);
  if (output.kind == Kind::record) return has_keys(text, {"model", "tokens", "layers", "probe"});
  if (output.kind == Kind::shard_records)
    return has_keys(text.substr(0, text.find('\n')), {"key", "file", "sha256", "status"});
  return std::ranges::any_of(kFormats, [&](const FileFormat& format) {
    return format.kind == output.kind && text.size() > format.offset &&
           text.compare(format.offset, format.start.size(), format.start) == 0;
  });
}

bool replaces_foreign_file(const OutputFile& output) {
  return replaces_file(output.path) && has_content(output.path) && !is_own(output);
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

void add_force_to(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "Replace files that the command did not write");
}

void check_output(const OutputFile& output, const FileSet& inputs, bool force) {
  if (inputs.contains(output.path))
    throw CLI::ValidationError(output.option, "expected another file than the input " + output.path);
  if (!force && replaces_foreign_file(output))
    throw CLI::ValidationError(
        output.option, "expected no file, one that the command wrote, or --force, got another file, " + output.path);
}

void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs, bool force) {
  const FileSet files(inputs);
  std::map<fs::path, std::string> options;
  for (const OutputFile& output : outputs) {
    const auto& [option, path, kind, owners, start] = output;
    if (path.empty()) continue;
    if (path == "-") throw CLI::ValidationError(option, "expected a file, got -: standard output has other results");
    check_output(output, files, force || is_device(path));
    if (is_device(path)) continue;
    const auto [other, is_new] = options.emplace(canonical_output(path), option);
    if (!is_new)
      throw CLI::ValidationError(option, "expected another file than that of " + other->second + ", " + path);
    if (const std::string folder = folder_around(path, inputs); !folder.empty() && replaces_foreign_file(output))
      throw CLI::ValidationError(option, "expected another file than one in the input " + folder + ", " + path);
  }
}

void check_output_folder(const std::string& folder, const std::vector<std::string>& inputs, const std::string& option) {
  if (const std::string around = folder_around(folder, inputs); !around.empty())
    throw CLI::ValidationError(option, "expected a folder outside of the input " + around + ", got " + folder);
}

bool replaces_file(const std::string& output) {
  std::error_code unknown;
  return fs::is_regular_file(output, unknown);
}

}  // namespace vitrail::app
