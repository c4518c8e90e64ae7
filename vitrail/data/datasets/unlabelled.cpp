// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/unlabelled.h"

#include <algorithm>
#include <set>
#include <utility>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/shards_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

// A labelled set without its labels.
class WithoutLabels : public Dataset {
 public:
  explicit WithoutLabels(std::unique_ptr<Dataset> images) : images_(std::move(images)) { split_ = images_->split(); }
  int64_t size() const override { return images_->size(); }
  std::string path(int64_t i) const override { return images_->path(i); }
  int64_t label(int64_t i) const override { return i; }
  image::Image image(int64_t i) const override { return images_->image(i); }
  int64_t content_size(int64_t i) const override { return images_->content_size(i); }
  uint64_t content_hash(int64_t i) const override { return images_->content_hash(i); }
  std::optional<int64_t> modified_at(int64_t i) const override { return images_->modified_at(i); }

 private:
  std::unique_ptr<Dataset> images_;
};

void add_row(Rows& rows, std::string path, int64_t entry = 0) {
  rows.items.push_back({.path = std::move(path), .entry = entry, .labels = {std::ssize(rows.items)}});
}

void warn_of_others(const std::vector<std::string>& others, const std::string& where) {
  if (!others.empty()) warn(where + ": " + left_out_text(others));
}

Rows rows_of(ImageFiles files) {
  require_all_read(files.listing);
  report_archive(files.listing, files.where);
  if (!files.listing.images.empty()) warn_of_others(files.listing.others, files.where);  // else they may be a set
  Rows rows{.where = files.where, .images = std::move(files.images)};
  for (std::string& path : files.listing.images) add_row(rows, std::move(path));
  return rows;
}

Rows rows_of_shards(const fs::path& folder, const std::vector<std::string>& names) {
  Rows rows{.where = folder.string()};
  auto shards = std::make_shared<Shards>();
  for (size_t i = 0; i < names.size(); ++i) {
    ImageFiles shard = tar_files(folder / names[i]);
    report_archive(shard.listing, shard.where);
    for (std::string& path : shard.listing.images) add_row(rows, std::move(path), static_cast<int64_t>(i));
    shards->add(std::move(shard.images));
  }
  rows.images = std::move(shards);
  return rows;
}

Rows rows_of_list(const fs::path& list) {
  const MappedFile file(list);
  const auto* const begin = reinterpret_cast<const char*>(file.bytes().data());
  const std::string_view text(begin, file.bytes().size());
  Rows rows{.where = list.string(), .images = images_below(list.parent_path())};
  std::set<std::string> seen;
  int64_t repeated = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (seen.insert(line).second) {
      add_row(rows, std::move(line));
    } else {
      ++repeated;
    }
  }
  if (repeated > 0) warn(str(list.string(), ": ", counted(repeated, "line"), " left out, whose path comes again"));
  return rows;
}

}  // namespace

std::unique_ptr<Dataset> open_unlabelled(const fs::path& path, const image::DecodeOptions& decode) {
  const PathKind kind = look_up(path);
  const std::string name = path.filename().string();
  Rows rows;
  if (kind == PathKind::missing) throw Error(path.string(), "images", "nothing at this path");
  if (kind == PathKind::folder) {
    FolderListing listing = walk_folder(path);
    const std::vector<std::string> shards = shards_of(listing);
    rows = shards.empty() ? rows_of({path.string(), std::move(listing), images_below(path)})
                          : rows_of_shards(path, shards);
  } else if (name.ends_with(".zip")) {
    rows = rows_of(zip_files(path));
  } else if (is_tar_name(name)) {
    rows = rows_of(tar_files(path));
  } else if (name.ends_with(".txt")) {
    rows = rows_of_list(path);
  }
  if (!rows.items.empty()) return open_rows(std::move(rows), decode);
  if (rows.images && kind != PathKind::folder && !is_tar_name(name)) throw Error(path.string(), "images", "none");
  DatasetOptions options{.default_splits = {"train"}, .decode = decode};
  return std::make_unique<WithoutLabels>(open_dataset(path, options));
}

int64_t unlabelled_holdout(int64_t images) { return std::min<int64_t>(images / 10, 2000); }

}  // namespace vitrail::data
