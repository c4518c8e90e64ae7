// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/cache.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/hub/blob_digest_internal.h"
#include "vitrail/hub/download_internal.h"
#include "vitrail/hub/download_lock_internal.h"
#include "vitrail/hub/file_list_internal.h"
#include "vitrail/hub/settings_internal.h"
#include "vitrail/hub/snapshot_internal.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  std::ranges::sort(entries);
  return entries;
}

// All files below a folder; links are not followed to folders.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (!fs::is_directory(fs::symlink_status(entry->path(), unknown))) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

int64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// The file itself, with all links resolved; the path if it leads nowhere.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

// The blob in this repository that a snapshot's file links to; empty for a file of its own.
fs::path blob_of(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::read_symlink(file, error);
  return error ? fs::path() : file.parent_path() / target;
}

std::map<std::string, std::vector<std::string>> refs_by_commit(const fs::path& folder) {
  std::map<std::string, std::vector<std::string>> refs;
  constexpr size_t kMaxBytes = 256;
  for (const fs::path& file : files_below(folder / "refs")) {
    std::error_code unknown;
    if (!fs::is_regular_file(file, unknown)) continue;  // a pipe would be waited for
    std::string commit;
    try {
      commit = read_text_file(file, kMaxBytes);
    } catch (const Error&) {  // not readable: names no commit
      continue;
    }
    refs[commit.substr(0, commit.find_last_not_of(" \r\n") + 1)].push_back(
        file.lexically_relative(folder / "refs").string());
  }
  return refs;
}

CachedModel read_model(const std::string& repository, const fs::path& folder) {
  CachedModel model{repository, folder, {}, 0, 0};
  auto refs = refs_by_commit(folder);
  std::set<fs::path> counted;
  for (const fs::path& snapshot : entries_of(folder / "snapshots")) {
    CachedRevision revision{snapshot.filename(), refs[snapshot.filename()], 0, 0};
    for (const fs::path& file : files_below(snapshot)) {
      ++revision.files;
      revision.bytes += size_of(file);
      if (const fs::path content = resolved(file); counted.insert(content).second) model.bytes += size_of(content);
    }
    model.revisions.push_back(std::move(revision));
  }
  for (const fs::path& blob : entries_of(folder / "blobs")) {
    if (is_partial_name(blob.filename()))
      model.partial_bytes += size_of(blob);
    else if (counted.insert(resolved(blob)).second)
      model.bytes += size_of(blob);
  }
  return model;
}

// Nothing, or why the file is not what its name says.
std::string damage_of(const fs::path& file, const std::string& name) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return "is no file";
  std::ifstream in(file, std::ios::binary);
  if (!in) return "cannot be read";
  const auto digest = digest_of_blob(name, size_of(file));
  std::array<char, 1 << 16> buffer{};
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0)
    digest->update(buffer.data(), static_cast<size_t>(in.gcount()));
  if (in.bad()) return "cannot be read";
  const std::string got = digest->hex();
  return got == name ? "" : "its content has the digest " + got + " instead of " + name;
}

bool names_a_digest(const std::string& name) { return is_hex(name, 40) || is_hex(name, 64); }

void require_unused(const CachedModel& model) {
  const fs::path locks = model.folder.parent_path() / ".locks" / model.folder.filename();
  for (const fs::path& lock : entries_of(locks)) {
    if (is_locked(lock))
      throw Error(model.repository, "a model that no process downloads", "one that a process downloads now");
  }
}

// Deletes paths that a model's folder owns, and adds up what becomes free.
class Deletion {
 public:
  Deletion(const Layout& layout, bool dry_run) : layout_(layout), dry_run_(dry_run) {}
  void add(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::exists(status)) return;
    if (!layout_.owns(path)) return keep(path.parent_path());
    if (fs::is_directory(status)) {
      for (const fs::path& file : files_below(path)) count(file);
    } else {
      count(path);
    }
    if (!dry_run_) layout_.remove_own(path);
  }
  // The bytes that become free.  Warns of what stays.
  int64_t finish() const {
    if (!kept_.empty()) warn(join(kept_) + ": stays, because a link leads there");
    return bytes_;
  }

 private:
  // A link takes no space, and the store that a blob may link to stays for other repositories.
  void count(const fs::path& file) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(file, error);
    if (fs::is_regular_file(status)) bytes_ += size_of(file);
    if (fs::is_symlink(status) && fs::is_directory(file, error)) keep(file);
  }
  void keep(const fs::path& folder) { kept_.insert(resolved(folder).string()); }

  const Layout& layout_;
  bool dry_run_;
  int64_t bytes_ = 0;
  std::set<std::string> kept_;
};

Layout layout_of(const CachedModel& model) { return {model.folder.parent_path(), model.repository}; }

// Deletes the revisions, and the blobs that the others do not link to.
void remove_revisions(const CachedModel& model, const std::set<std::string>& commits, Deletion& deletion) {
  std::set<fs::path> used;
  for (const CachedRevision& revision : model.revisions) {
    const fs::path snapshot = model.folder / "snapshots" / revision.commit;
    if (!commits.contains(revision.commit)) {
      for (const fs::path& file : files_below(snapshot)) used.insert(blob_of(file).filename());
      continue;
    }
    for (const std::string& ref : revision.refs) deletion.add(model.folder / "refs" / ref);
    deletion.add(snapshot);
    deletion.add(model.folder / "trees" / (revision.commit + ".json"));
  }
  for (const fs::path& blob : entries_of(model.folder / "blobs")) {
    if (!is_partial_name(blob.filename()) && !used.contains(blob.filename())) deletion.add(blob);
  }
}

}  // namespace

fs::path cache_folder() { return settings_from_environment().cache; }

std::vector<CachedModel> cached_models() {
  std::vector<CachedModel> models;
  for (const fs::path& folder : entries_of(cache_folder())) {
    if (const auto repository = repository_of(folder.filename())) models.push_back(read_model(*repository, folder));
  }
  return models;
}

std::vector<DamagedFile> verify(const CachedModel& model, const std::function<void(int64_t)>& on_file) {
  std::vector<DamagedFile> damaged;
  const auto check = [&](const fs::path& file, const std::string& name) {
    if (const std::string reason = damage_of(file, name); !reason.empty()) damaged.push_back({file, reason});
    on_file(size_of(file));
  };
  for (const fs::path& blob : entries_of(model.folder / "blobs")) {
    if (names_a_digest(blob.filename())) check(blob, blob.filename());
  }
  for (const CachedRevision& revision : model.revisions) {
    const auto tree = read_tree(layout_of(model), revision.commit);
    const fs::path snapshot = model.folder / "snapshots" / revision.commit;
    for (const fs::path& file : files_below(snapshot)) {
      const std::string path = file.lexically_relative(snapshot).string();
      std::error_code missing;
      if (static_cast<void>(fs::canonical(file, missing)); missing)
        damaged.push_back({file, missing.message()});
      else if (!names_a_digest(blob_of(file).filename()) && tree && tree->contains(path))
        check(file, tree->at(path).etag());  // no link to a blob: the hub's list has the digest
    }
  }
  return damaged;
}

bool remove_damaged(const CachedModel& model, const DamagedFile& file) {
  const Layout layout = layout_of(model);
  if (!layout.owns(file.path)) return false;
  layout.remove_own(file.path);
  return true;
}

int64_t remove(const CachedModel& model, const std::string& revision, bool dry_run) {
  require_unused(model);
  const Layout layout = layout_of(model);
  Deletion deletion(layout, dry_run);
  if (revision.empty()) {
    deletion.add(model.folder);
    deletion.add(model.folder.parent_path() / ".locks" / model.folder.filename());
    return deletion.finish();
  }
  std::set<std::string> commits;
  for (const CachedRevision& cached : model.revisions) {
    if (cached.commit == revision || std::ranges::find(cached.refs, revision) != cached.refs.end())
      commits.insert(cached.commit);
  }
  if (commits.empty()) {
    const auto name_of = [](const CachedRevision& cached) {
      return cached.refs.empty() ? cached.commit : cached.refs.front();
    };
    throw Error(model.repository, "a revision in the cache (" + join(model.revisions, ", ", name_of) + ")", revision);
  }
  remove_revisions(model, commits, deletion);
  return deletion.finish();
}

int64_t prune(const CachedModel& model, bool dry_run) {
  require_unused(model);
  const Layout layout = layout_of(model);
  Deletion deletion(layout, dry_run);
  std::set<std::string> commits;
  for (const CachedRevision& revision : model.revisions) {
    if (revision.refs.empty()) commits.insert(revision.commit);
  }
  remove_revisions(model, commits, deletion);
  for (const fs::path& blob : entries_of(model.folder / "blobs")) {
    if (is_partial_name(blob.filename())) deletion.add(blob);
  }
  return deletion.finish();
}

}  // namespace vitrail::hub
