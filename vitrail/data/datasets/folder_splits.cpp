// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/folder_splits_internal.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {
namespace {

using Tops = std::map<std::string, TopFolder>;
using Names = std::vector<std::string>;

bool is_class(const std::string& name, const DatasetOptions& options) {
  return names_a_class(name, options.labels, options.wordnet_ids, class_limit(options));
}

bool is_split_name(const std::string& name) { return !canonical_split(name).empty(); }

Names folders_of_class_folders(const Tops& tops) {
  Names names;
  for (const auto& [name, top] : tops) {
    if (top.may_be_split()) names.push_back(name);
  }
  return names;
}

// What there is instead of images: "none (9 files left out: 9 .heic)", or why a folder cannot be read.
std::string instead_of_images(const Subfolder& split) {
  for (const UnreadableFolder& folder : split.listing.unreadable) {
    if ((folder.path + "/").starts_with(split.prefix)) return folder.error;
  }
  const auto others = split.select(split.listing.others);
  return others.empty() ? "none" : "none (" + left_out_text({others.begin(), others.end()}) + ")";
}

// Top folders that cannot be read, and those named as splits that have folders or files, but no images.
std::map<std::string, std::string> unusable_splits(const Subfolder& folder, const Tops& tops) {
  std::set<std::string> names;
  for (const UnreadableFolder& unreadable : folder.listing.unreadable) {
    if (unreadable.path.starts_with(folder.prefix) && folder.is_top(unreadable.path))
      names.insert(folder.first(unreadable.path));
  }
  for (const auto* paths : {&folder.listing.folders, &folder.listing.others}) {
    for (const std::string& path : folder.select(*paths)) {
      if (!folder.is_top(path) && is_split_name(folder.first(path))) names.insert(folder.first(path));
    }
  }
  std::map<std::string, std::string> unusable;
  for (const std::string& name : names) {
    if (!tops.contains(name)) unusable[name] = instead_of_images(folder.enter(name));
  }
  return unusable;
}

// Throws an Error that lists the top folders, each with what it is.
[[noreturn]] void refuse_mixture(const Tops& tops, const std::string& where) {
  Names splits, others;
  for (const auto& [name, top] : tops) {
    const bool is_named = is_split_name(name);
    (is_named ? splits : others).push_back(name + (is_named && top.has_images ? " (with images directly in it)" : ""));
  }
  throw Error(where, "either splits of class folders or class folders",
              "folders that are named as splits: " + join(splits) +
                  (others.empty() ? "" : ", beside other folders: " + join(others)) +
                  "; name the split to read, or \".\" if all of them are classes");
}

// Refuses top folders such as seg_train and seg_test, or fold1 and fold2, which would be taken as two classes.  A name
// that contains a split's may be a class all the same: where no second one does, the class folders below must tell.
void refuse_resembled_splits(const Tops& tops, const Subfolder& folder, const DatasetOptions& options) {
  Names names;
  std::set<std::string_view> splits;
  bool has_split = false, has_images = false;
  for (const auto& [name, top] : tops) {
    has_images = has_images || top.has_images;
    const std::string_view split = resembled_split(name);
    if (split.empty() || is_class(name, options)) continue;
    names.push_back(name), splits.insert(split);
    has_split = has_split || top.may_be_split();
  }
  if (!has_split || (splits.size() < 2 && has_images)) return;
  throw Error(folder.where, "splits called train, val or test above the class folders, or class folders",
              "folders that look like splits: " + join(names) +
                  "; name the split to read, or \".\" if all folders are classes");
}

// Refuses CLASS/train/… and CLASS/test/…, where the splits would be mixed.
void refuse_splits_below(const Subfolder& folder) {
  std::set<std::string> names;
  std::set<std::string_view> splits;
  for (const std::string& path : folder.select(folder.listing.images)) {
    const Subfolder top = folder.enter(folder.first(path));
    if (folder.is_top(path) || top.is_top(path)) continue;
    const std::string name = top.first(path);
    if (is_split_name(name)) names.insert(name), splits.insert(canonical_split(name));
  }
  if (splits.size() < 2) return;
  throw Error(
      folder.where, "splits above the class folders",
      "splits in them: " + join(names) + "; move them up, or name the split \".\" to take their images together");
}

// Whether the single top folder is around the class folders.
bool is_wrapper(const std::string& name, const Subfolder& folder, const DatasetOptions& options) {
  if (!is_class(name, options)) return true;
  if (options.split == kNoSplit) return false;
  const Subfolder inside = folder.enter(name);
  std::set<std::string> below;
  for (const std::string& path : inside.select(folder.listing.images)) below.insert(inside.first(path));
  below.erase(name);  // an archive of "cat" unpacked into "cat"
  if (std::ranges::none_of(below, [&](const std::string& other) { return is_class(other, options); })) return false;
  throw Error(folder.where, "class folders, or one folder around them that has no class's name",
              str("'", name, "', which has the folders ", quoted_list({below.begin(), below.end()}),
                  "; open it instead, or name the split \".\" if it is a class"));
}

}  // namespace

Subfolder::Paths Subfolder::select(Paths paths) const {
  if (prefix.empty()) return paths;
  std::string end = prefix;
  ++end.back();  // the character after '/'
  const auto first = std::ranges::lower_bound(paths, prefix);
  return {first, std::lower_bound(first, paths.end(), end)};
}

std::string Subfolder::first(const std::string& path) const {
  return path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
}

std::map<std::string, TopFolder> top_folders(const Subfolder& folder) {
  Tops tops;
  for (const std::string& path : folder.select(folder.listing.images)) {
    const size_t slash = path.find('/', folder.prefix.size());
    if (slash == path.npos) continue;
    TopFolder& top = tops[folder.first(path)];
    (path.find('/', slash + 1) == path.npos ? top.has_images : top.has_class_folders) = true;
  }
  return tops;
}

void skip_wrappers(Subfolder& folder, const DatasetOptions& options, const std::string& split) {
  const auto may_be_another_split = [&](const std::string& name) {
    const std::string_view canonical = canonical_split(name);
    const bool may_be_split = name == options.split || !canonical.empty();
    return may_be_split && name != split && (canonical.empty() || canonical != canonical_split(split));
  };
  for (Tops tops = top_folders(folder); tops.size() == 1; tops = top_folders(folder)) {
    const auto& [name, top] = *tops.begin();
    if (!top.may_be_split() || may_be_another_split(name) || !is_wrapper(name, folder, options)) return;
    if (options.split != kNoSplit) report_unusable({.where = folder.where, .unusable = unusable_splits(folder, tops)});
    folder.prefix += name + "/";
  }
}

Splits splits_of(const Subfolder& folder, const DatasetOptions& options) {
  const Tops tops = top_folders(folder);
  Splits splits{folder.where, folders_of_class_folders(tops), unusable_splits(folder, tops)};
  if (options.split.empty()) std::erase_if(splits.existing, [](const auto& name) { return !is_split_name(name); });
  return splits;
}

void report_unusable(const Splits& splits) {
  for (const auto& [name, content] : splits.unusable) {
    if (is_split_name(name)) warn(str(splits.where, ": images that can be read in the split ", name, ": ", content));
  }
}

std::string choose_split(const Subfolder& folder, const DatasetOptions& options) {
  if (options.split == kNoSplit) return "";
  const Splits splits = splits_of(folder, options);
  if (!options.split.empty()) return choose_split(splits, options);
  const Tops tops = top_folders(folder);
  if (std::ranges::none_of(tops, [](const auto& top) { return is_split_name(top.first); })) {
    refuse_resembled_splits(tops, folder, options);
    refuse_splits_below(folder);
    return "";
  }
  if (std::ranges::all_of(tops, [&](const auto& top) { return is_class(top.first, options); })) return "";
  if (splits.existing.size() < tops.size()) refuse_mixture(tops, folder.where);
  return choose_split(splits, options);
}

}  // namespace vitrail::data
