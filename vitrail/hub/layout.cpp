// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/hub/blob_digest_internal.h"
#include "vitrail/hub/layout_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "models--", kSeparator = "--";
constexpr size_t kCommitDigits = 40;

}  // namespace

Layout::Layout(const fs::path& cache, const std::string& repository) : cache_(cache) {
  std::string name = repository;
  const size_t slash = name.find('/');
  name.replace(slash, 1, kSeparator);
  folder_ = cache_ / (std::string(kPrefix) + name);
}

fs::path Layout::lock(const std::string& etag) const {
  return cache_ / ".locks" / folder_.filename() / (etag + ".lock");
}

bool Layout::owns(const fs::path& entry) const {
  std::error_code unknown;
  const fs::path root = fs::canonical(cache_, unknown), parent = fs::canonical(entry.parent_path(), unknown);
  if (unknown) return false;
  if (parent == root) return entry.filename() == folder_.filename();
  for (const fs::path& own : {root / folder_.filename(), root / ".locks"}) {
    if (std::ranges::mismatch(own, parent).in1 == own.end()) return true;
  }
  return false;
}

void Layout::remove_own(const fs::path& entry) const {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(entry, error))) return;
  if (!owns(entry))
    throw Error(entry.string(), "a file in the model's own folder", "one behind a link, which is not deleted");
  fs::remove_all(entry, error);
  if (error) throw Error(str(entry.string(), ": cannot be deleted: ", error.message()));
}

std::optional<std::string> Layout::commit_of(const std::string& revision) const {
  if (is_hex(revision, kCommitDigits)) return revision;
  std::error_code unreadable;
  if (!fs::is_regular_file(ref(revision), unreadable)) return std::nullopt;
  constexpr size_t kMaxBytes = 256;
  std::string commit = read_text_file(ref(revision), kMaxBytes);
  commit.erase(std::find_if(commit.begin(), commit.end(), [](char c) { return c <= ' '; }), commit.end());
  if (is_hex(commit, kCommitDigits)) return commit;
  throw Error(ref(revision).string(), "a commit of 40 hexadecimal digits", "other text");
}

std::optional<std::string> repository_of(const std::string& folder_name) {
  if (!folder_name.starts_with(kPrefix)) return std::nullopt;
  std::string name = folder_name.substr(kPrefix.size());
  const size_t separator = name.find(kSeparator);
  if (separator == name.npos) return std::nullopt;
  return name.replace(separator, kSeparator.size(), "/");
}

void create_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(str(folder.string(), ": cannot be created: ", error.message(),
                    ". HF_HUB_CACHE names another folder for the cache"));
  }
}

}  // namespace vitrail::hub
