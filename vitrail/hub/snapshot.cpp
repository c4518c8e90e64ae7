// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "vitrail/base/error.h"
#include "vitrail/hub/snapshot_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

bool has_size(const fs::path& path, int64_t size) {
  std::error_code error;
  return fs::is_regular_file(path, error) && static_cast<int64_t>(fs::file_size(path, error)) == size && !error;
}

// From snapshots/COMMIT/FOLDER/FILE: as many steps up as the file is deep.
fs::path link_target(const std::string& path, const std::string& etag) {
  fs::path target = fs::path("..") / "..";
  for (const char c : path) target = c == '/' ? ".." / target : target;
  return target / "blobs" / etag;
}

}  // namespace

bool has_blob(const Layout& layout, const HubFile& file) {
  const fs::path blob = layout.blobs() / file.etag();
  std::error_code error;
  if (!fs::exists(fs::symlink_status(blob, error))) return false;
  if (has_size(blob, file.size)) return true;
  layout.remove_own(blob);  // cut short
  return false;
}

bool is_in_snapshot(const Layout& layout, const std::string& commit, const std::string& path, const HubFile& file) {
  return has_size(layout.snapshot(commit) / path, file.size);
}

void add_to_snapshot(const Layout& layout, const std::string& commit, const std::string& path, const HubFile& file,
                     bool symlinks) {
  if (is_in_snapshot(layout, commit, path, file)) return;
  const fs::path target = layout.snapshot(commit) / path, blob = layout.blobs() / file.etag();
  create_folders(target.parent_path());
  layout.remove_own(target);  // a link to a blob that is gone, or a file that was cut short
  std::error_code error;
  if (symlinks && ::symlink(link_target(path, file.etag()).c_str(), target.c_str()) == 0) return;
  if (layout.owns(blob))
    fs::rename(blob, target, error);
  else
    fs::copy_file(blob, target, error);
  if (error) throw Error(str(target.string(), ": cannot be written: ", error.message()));
}

}  // namespace vitrail::hub
