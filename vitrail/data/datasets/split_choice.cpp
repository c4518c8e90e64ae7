// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/split_choice_internal.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/data/datasets/split_names_internal.h"

namespace vitrail::data {
namespace {

using Tops = std::map<std::string, TopFolder>;

std::vector<std::string> possible_splits(const Tops& tops) {
  std::vector<std::string> names;
  for (const auto& [name, top] : tops) {
    if (top.may_be_split()) names.push_back(name);
  }
  return names;
}

// The folders with images in a top folder.
std::vector<std::string> folders_below(const FolderListing& listing, const std::string& top) {
  std::set<std::string> names;
  for (const std::string& path : listing.images) {
    if (!path.starts_with(top + "/")) continue;
    const size_t end = path.find('/', top.size() + 1);
    if (end != path.npos) names.insert(path.substr(top.size() + 1, end - top.size() - 1));
  }
  return {names.begin(), names.end()};
}

// The top folders that are named as splits and have folders or files, but no images.
std::set<std::string> splits_without_images(const FolderListing& listing, const Tops& tops) {
  std::set<std::string> names;
  for (const auto* paths : {&listing.folders, &listing.others}) {
    for (const std::string& path : *paths) {
      const size_t slash = path.find('/');
      if (slash == path.npos) continue;
      const std::string top = path.substr(0, slash);
      if (!canonical_split(top).empty() && !tops.contains(top)) names.insert(top);
    }
  }
  return names;
}

// What there is instead of images: "none (9 files left out: 9 .heic)", or why a folder cannot be read.
std::string instead_of_images(const FolderListing& listing, const std::string& split) {
  const std::string begin = split + "/";
  for (const UnreadableFolder& folder : listing.unreadable) {
    if (folder.path.starts_with(begin)) return folder.error;
  }
  std::vector<std::string> files;
  for (const std::string& path : listing.others) {
    if (path.starts_with(begin)) files.push_back(path);
  }
  return files.empty() ? "none" : "none (" + left_out_text(files) + ")";
}

// Another split would be read instead of one without images.
void require_images_of(const std::string& wanted, const FolderListing& listing, const Tops& tops,
                       const std::string& where) {
  const std::string_view canonical = canonical_split(wanted);
  for (const std::string& split : splits_without_images(listing, tops)) {
    if (canonical_split(split) == canonical)
      throw Error(where, "images that can be read in the split " + split, instead_of_images(listing, split));
  }
}

// The one of `splits` that `wanted` means.  Empty if there is none.
std::string find_split(const std::vector<std::string>& splits, const std::string& wanted, const std::string& where) {
  const std::string_view canonical = canonical_split(wanted);
  std::vector<std::string> found;
  for (const std::string& split : splits) {
    if (!canonical.empty() && canonical_split(split) == canonical) found.push_back(split);
  }
  if (found.size() > 1) throw Error(where, "one split " + wanted + " (or its exact name)", join(found));
  return found.empty() ? "" : found.front();
}

std::string named_split(const FolderListing& listing, const Tops& tops, const ClassFolderOptions& options) {
  const std::vector<std::string> splits = possible_splits(tops);
  if (std::find(splits.begin(), splits.end(), options.split) != splits.end()) return options.split;
  require_images_of(options.split, listing, tops, options.where);
  const std::string found = find_split(splits, options.split, options.where);
  if (!found.empty()) return found;
  throw Error(options.where, "a split " + options.split,
              splits.empty() ? "a dataset without splits" : "these splits: " + join(splits));
}

// Throws an Error that lists the top folders, each with what it is.
[[noreturn]] void refuse_mixture(const Tops& tops, const std::string& where) {
  std::vector<std::string> splits, others;
  for (const auto& [name, top] : tops) {
    const bool is_named = !canonical_split(name).empty();
    (is_named ? splits : others).push_back(name + (is_named && top.has_images ? " (with images directly in it)" : ""));
  }
  throw Error(where, "either splits of class folders or class folders",
              "folders that are named as splits: " + join(splits) +
                  (others.empty() ? "" : ", beside other folders: " + join(others)) +
                  "; name the split to read, or \".\" if all of them are classes");
}

// Refuses top folders such as seg_train and seg_test, or fold1 and fold2, which would be taken as two classes.  A name
// that contains a split's may be a class all the same: where no second one does, the class folders below must tell.
void refuse_resembled_splits(const Tops& tops, const ClassFolderOptions& options) {
  std::vector<std::string> names;
  std::set<std::string_view> splits;
  bool has_split = false, has_images = false;
  for (const auto& [name, top] : tops) {
    const std::string_view split = is_fold_name(name) ? std::string_view(name) : resembled_split(name);
    has_images = has_images || top.has_images;
    if (split.empty() || names_a_class(name, options)) continue;
    names.push_back(name), splits.insert(split);
    has_split = has_split || top.may_be_split();
  }
  if (!has_split || (splits.size() < 2 && has_images)) return;
  throw Error(options.where, "splits called train, val or test above the class folders, or class folders",
              "folders that look like splits: " + join(names) +
                  "; name the split to read, or \".\" if all folders are classes");
}

// Refuses CLASS/train/… and CLASS/test/…, where the splits would be mixed.
void refuse_splits_below(const FolderListing& listing, const std::string& where) {
  std::set<std::string> names;
  std::set<std::string_view> splits;
  for (const std::string& path : listing.images) {
    const size_t begin = path.find('/') + 1, end = path.find('/', begin);
    if (begin == 0 || end == path.npos) continue;
    const std::string name = path.substr(begin, end - begin);
    const std::string_view split = canonical_split(name);
    if (!split.empty()) names.insert(name), splits.insert(split);
  }
  if (splits.size() < 2) return;
  throw Error(
      where, "splits above the class folders",
      "splits in them: " + join(names) + "; move them up, or name the split \".\" to take their images together");
}

std::string default_split(const FolderListing& listing, const Tops& tops, const ClassFolderOptions& options) {
  const std::vector<std::string> splits = possible_splits(tops);
  for (const std::string& wanted : options.default_splits) {
    require_images_of(wanted, listing, tops, options.where);
    const std::string found = find_split(splits, wanted, options.where);
    if (!found.empty()) return found;
  }
  throw Error(options.where, "a split " + join(options.default_splits, " or ") + ", or the name of another one",
              "these splits: " + join(splits));
}

}  // namespace

std::map<std::string, TopFolder> top_folders(const FolderListing& listing) {
  Tops tops;
  for (const std::string& path : listing.images) {
    const size_t slash = path.find('/');
    if (slash == path.npos) continue;
    TopFolder& top = tops[path.substr(0, slash)];
    (path.find('/', slash + 1) == path.npos ? top.has_images : top.has_class_folders) = true;
  }
  return tops;
}

bool is_wrapper(const std::string& name, const FolderListing& listing, const ClassFolderOptions& options) {
  using Rule = ClassMatch::Rule;
  const auto rules_of = [&](const std::vector<std::string>& names) {
    return matching_rules(names, options.labels, options.wordnet_ids, options.num_classes);
  };
  const Rule rule = rules_of({name}).front();
  if (rule == Rule::none) return true;
  std::vector<std::string> below = folders_below(listing, name);
  std::erase(below, name);  // an archive of "cat" unpacked into "cat"
  const std::vector<Rule> rules = rules_of(below);
  const auto is_majority = [&](Rule wanted) { return 2 * std::ranges::count(rules, wanted) > std::ssize(rules); };
  if (rule == Rule::indices && is_majority(Rule::labels)) return true;
  if (!is_majority(rule)) return false;
  throw Error(options.where, "class folders, or one folder around them that has no class's name",
              str("'", name, "', which has the folders ", quoted_list(below), "; open it instead, or name the split ",
                  "\".\" if it is a class"));
}

bool names_a_class(const std::string& name, const ClassFolderOptions& options) {
  return matching_rules({name}, options.labels, options.wordnet_ids, options.num_classes).front() !=
         ClassMatch::Rule::none;
}

void warn_of_splits_without_images(const FolderListing& listing, const std::string& where) {
  for (const std::string& split : splits_without_images(listing, top_folders(listing)))
    warn(str(where, ": images that can be read in the split ", split, ": ", instead_of_images(listing, split)));
}

std::string choose_split(const FolderListing& listing, const ClassFolderOptions& options) {
  if (options.split == kNoSplit) return "";
  const Tops tops = top_folders(listing);
  if (!options.split.empty()) return named_split(listing, tops, options);
  const auto is_split_name = [](const auto& top) { return !canonical_split(top.first).empty(); };
  const auto is_split = [&](const auto& top) { return is_split_name(top) && top.second.may_be_split(); };
  if (std::none_of(tops.begin(), tops.end(), is_split_name)) {
    refuse_resembled_splits(tops, options);
    refuse_splits_below(listing, options.where);
    return "";
  }
  if (std::all_of(tops.begin(), tops.end(), [&](const auto& top) { return names_a_class(top.first, options); }))
    return "";
  if (!std::all_of(tops.begin(), tops.end(), is_split)) refuse_mixture(tops, options.where);
  return default_split(listing, tops, options);
}

}  // namespace vitrail::data
