// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/folder_walk_internal.h"

#include <algorithm>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

class Walk {
 public:
  Walk(const fs::path& root, int64_t max_entries) : root_(root), max_entries_(max_entries) {}

  FolderListing listing;

  void enter(const fs::path& folder, const std::string& prefix) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (!error && std::find(ancestors_.begin(), ancestors_.end(), real) != ancestors_.end())
      return;  // a link to an ancestor
    fs::directory_iterator entries(folder, error);
    if (error) return fail(folder, prefix, error);
    ancestors_.push_back(real);
    for (; entries != fs::directory_iterator(); entries.increment(error)) add(*entries, prefix);
    ancestors_.pop_back();
    if (error) fail(folder, prefix, error);
  }

 private:
  void add(const fs::directory_entry& entry, const std::string& prefix) {
    if (++entries_ > max_entries_)
      throw Error(root_.string(), str("a folder with at most ", max_entries_, " files and folders"), "more");
    const std::string name = entry.path().filename().string();
    if (is_ignored_name(name)) return;
    std::error_code dangling;
    if (entry.is_directory(dangling)) {
      listing.folders.push_back(prefix + name);
      enter(entry.path(), prefix + name + "/");
    } else if (entry.is_other(dangling)) {  // reading a pipe, a socket or a device might wait for ever
      listing.others.push_back(prefix + name);
    } else {
      add_file(listing, prefix + name);
    }
  }

  // prefix: the relative path with '/' behind it; empty for the root.
  void fail(const fs::path& folder, const std::string& prefix, std::error_code error) {
    const std::string message = str(folder.string(), ": cannot be read: ", error.message());
    if (prefix.empty()) throw Error(message);
    listing.unreadable.push_back({prefix.substr(0, prefix.size() - 1), message});
  }

  fs::path root_;
  int64_t max_entries_, entries_ = 0;
  std::vector<fs::path> ancestors_;  // from the root to the current folder
};

}  // namespace

FolderListing walk_folder(const fs::path& folder, int64_t max_entries) {
  Walk walk(folder, max_entries);
  walk.enter(folder, "");
  sort_listing(walk.listing);
  return std::move(walk.listing);
}

void require_all_read(const FolderListing& listing) {
  if (!listing.unreadable.empty()) throw Error(listing.unreadable.front().error);
}

void add_file(FolderListing& listing, std::string path) {
  (image::is_image_path(path) ? listing.images : listing.others).push_back(std::move(path));
}

void add_entry(FolderListing& listing, std::set<std::string>& folders, std::string path) {
  if (("/" + path + "/").find("/../") != path.npos) return listing.outside.push_back(std::move(path));
  const bool is_folder = path.ends_with('/');
  if (is_folder) path.pop_back();
  for (size_t begin = 0, end = 0; end != path.npos; begin = end + 1) {
    end = path.find('/', begin);
    if (is_ignored_name(path.substr(begin, end - begin))) return;
    const std::string folder = path.substr(0, end);
    if ((end != path.npos || is_folder) && folders.insert(folder).second) listing.folders.push_back(folder);
  }
  if (!is_folder) add_file(listing, std::move(path));
}

void sort_listing(FolderListing& listing) {
  for (auto* list : {&listing.images, &listing.others, &listing.folders}) std::sort(list->begin(), list->end());
  std::ranges::sort(listing.unreadable, {}, &UnreadableFolder::path);
}

void report_archive(const FolderListing& listing, const std::string& where) {
  if (listing.symbolic_links > 0) warn(str(where, ": ", listing.symbolic_links, " symbolic links left out"));
  if (listing.repeated > 0)
    warn(str(where, ": ", counted(listing.repeated, "file"), " left out, whose path comes again in the archive"));
  if (!listing.outside.empty()) {
    warn(str(where, ": ", counted(listing.outside.size(), "file"),
             " left out, with a path out of the archive: ", quoted_list(listing.outside)));
  }
  if (listing.trailing > 0)
    warn(str(where, ": ", listing.trailing, " bytes after the end of the archive are not read"));
}

}  // namespace vitrail::data
