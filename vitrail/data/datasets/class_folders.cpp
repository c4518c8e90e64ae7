// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/class_folders_internal.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"
#include "vitrail/data/datasets/natural_order_internal.h"
#include "vitrail/data/datasets/split_choice_internal.h"
#include "vitrail/data/datasets/split_names_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace {

using Paths = std::vector<std::string>;

struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};

// Class folders by name.
struct Groups {
  std::map<std::string, Paths, NaturalLess> images;  // folders with images
  Paths unsupported;                                 // folders that have images, but only of kinds that are not read
  Paths unreadable;                                  // folders that cannot be read
  Paths empty;                                       // all other folders
  Paths omissions;                                   // per folder of `unsupported`: "b (8 files left out: 8 .svg)"
};

std::string top_folder(std::string_view path) { return std::string(path.substr(0, path.find('/'))); }

// Keeps the contents of the folder `top`, with paths relative to it.
void descend(FolderListing& listing, const std::string& top, std::string& prefix) {
  for (Paths* paths : {&listing.images, &listing.others, &listing.folders}) {
    std::erase_if(*paths, [&](const std::string& path) { return !path.starts_with(top + "/"); });
    for (std::string& path : *paths) path.erase(0, top.size() + 1);
  }
  std::erase_if(listing.unreadable, [&](const UnreadableFolder& f) { return !f.path.starts_with(top + "/"); });
  for (UnreadableFolder& folder : listing.unreadable) folder.path.erase(0, top.size() + 1);
  prefix += top + "/";
}

// Enters a single folder around the class or split folders, as archives of a folder have it.  Says which splits beside
// it are lost because they have no images.  `split`: the split that the listing is of, whose name such a folder may
// have.
void skip_wrappers(FolderListing& listing, const ClassFolderOptions& options, std::string& prefix,
                   const std::string& split = "") {
  const auto may_be_another_split = [&](const std::string& name) {
    const std::string_view canonical = canonical_split(name);
    const bool is_split_name = name == options.split || !canonical.empty();
    return is_split_name && name != split && (canonical.empty() || canonical != canonical_split(split));
  };
  for (auto tops = top_folders(listing); tops.size() == 1; tops = top_folders(listing)) {
    const auto& [name, top] = *tops.begin();
    if (!top.may_be_split() || may_be_another_split(name)) return;
    if (options.split == kNoSplit ? names_a_class(name, options) : !is_wrapper(name, listing, options)) return;
    if (options.split != kNoSplit) warn_of_splits_without_images(listing, options.where);
    descend(listing, std::string(name), prefix);
  }
}

bool is_unreadable(const FolderListing& listing, const std::string& path) {
  return std::ranges::find(listing.unreadable, path, &UnreadableFolder::path) != listing.unreadable.end();
}

Groups group_by_folder(const FolderListing& listing) {
  Groups groups;
  std::map<std::string, Paths> others;
  for (const std::string& path : listing.images) {
    if (path.find('/') != path.npos) groups.images[top_folder(path)].push_back(path);
  }
  for (const std::string& path : listing.others) {
    if (path.find('/') != path.npos) others[top_folder(path)].push_back(path);
  }
  for (const std::string& path : listing.folders) {
    if (path.find('/') != path.npos || groups.images.contains(path)) continue;
    Paths& files = others[path];
    const bool is_unsupported = std::any_of(files.begin(), files.end(), is_unsupported_image);
    Paths& of_kind = is_unsupported                 ? groups.unsupported
                     : is_unreadable(listing, path) ? groups.unreadable
                                                    : groups.empty;
    of_kind.push_back(path);
    if (is_unsupported) groups.omissions.push_back(path + " (" + left_out_text(files) + ")");
  }
  return groups;
}

bool is_top(const std::string& path) { return path.find('/') == path.npos; }

// Another split would be read instead of one that cannot be.
void require_readable_split(const FolderListing& listing, const ClassFolderOptions& options) {
  const Paths wanted = options.split.empty() ? options.default_splits : Paths{options.split};
  for (const UnreadableFolder& folder : listing.unreadable) {
    const std::string_view split = canonical_split(folder.path);
    const auto names_it = [&](const std::string& name) {
      return name == folder.path || (!split.empty() && canonical_split(name) == split);
    };
    if (is_top(folder.path) && std::ranges::any_of(wanted, names_it)) throw Error(folder.error);
  }
}

void require_images(const FolderListing& listing, const Groups& groups, const std::string& where) {
  if (!groups.images.empty()) return;
  require_all_read(listing);
  std::string got = counted(listing.images.size(), "image") + " outside them";
  if (listing.images.empty())
    got = groups.empty.empty() && groups.unsupported.empty() ? "none" : "folders without images";
  if (!listing.others.empty()) got += " (" + left_out_text(listing.others) + ")";
  throw Error(where, "class folders with images in them", got);
}

// A folder that cannot be read costs its images alone, unless it may be one of the classes that the folders define.
void report_unreadable(const FolderListing& listing, bool defines_classes, const std::string& where) {
  Paths names;
  for (const UnreadableFolder& folder : listing.unreadable) {
    if (defines_classes && is_top(folder.path)) throw Error(folder.error);
    names.push_back(folder.path);
  }
  if (names.empty()) return;
  warn(str(where, ": left out ", counted(names.size(), "folder"), " that cannot be read: ", quoted_list(names)));
}

// Tells what is not used.  Where the folders define the classes, one whose images are all left out would change them.
void report_omissions(const FolderListing& listing, const Groups& groups, bool defines_classes,
                      const std::string& where) {
  if (!groups.unsupported.empty()) {
    const std::string text = join(groups.omissions);
    if (defines_classes) throw Error(where, "images that can be read in every class folder", "none in " + text);
    warn(where + ": class folders without an image that can be read: " + text);
  }
  if (!listing.others.empty()) warn(where + ": " + left_out_text(listing.others));
  report_unreadable(listing, defines_classes, where);
  Paths names = groups.empty;
  const size_t empty = names.size();
  if (empty > 0) {
    std::ranges::sort(names, NaturalLess());
    warn(str(where, ": ", empty,
             empty == 1 ? " folder without images is no class: " : " folders without images are no classes: ",
             quoted_list(names)));
  }
  const auto outside = std::ranges::count_if(listing.images, is_top);
  if (outside > 0)
    warn(str(where, ": ", counted(outside, "image"), " outside the class folders ", outside == 1 ? "is" : "are",
             " ignored"));
}

// The names in natural order and Unicode's composed form.
Paths composed_names(const Groups& groups, const std::string& where) {
  Paths names;
  std::set<std::string> seen;
  for (const auto& [name, paths] : groups.images) {
    names.push_back(composed(name));
    if (seen.insert(names.back()).second) continue;
    throw Error(where, "class folders with different names", str("two called '", name, "' in two Unicode forms"));
  }
  return names;
}

struct Labels {
  std::vector<int64_t> of_folders;  // per folder with images, in natural order
  Paths class_names;
};

// Numbers the folders in natural order.  Those whose images are left out count if they are needed for a model's number
// of classes.
Labels number_by_order(const Groups& groups, Paths names, const ClassFolderOptions& options) {
  Labels labels;
  const bool defines_classes = options.num_classes == INT64_MAX;
  const auto matches = [&](size_t count) {
    return defines_classes || static_cast<int64_t>(count) == options.num_classes;
  };
  Paths all = names;
  if (!matches(names.size())) {
    for (const Paths* folders : {&groups.unsupported, &groups.unreadable}) {
      for (const std::string& name : *folders) all.push_back(composed(name));
    }
    std::sort(all.begin(), all.end(), NaturalLess());
  }
  if (!matches(all.size())) {
    std::string got = counted(names.size(), "class folder") + ": " + quoted_list(names);
    if (!groups.empty.empty()) got += "; folders without images are no classes: " + quoted_list(groups.empty);
    throw Error(options.where,
                str("folders named after the classes of the model or their indices, or as many folders as its ",
                    options.num_classes, " classes"),
                got);
  }
  for (const std::string& name : names)
    labels.of_folders.push_back(std::find(all.begin(), all.end(), name) - all.begin());
  if (!defines_classes) {
    warn(str(options.where, ": none of the ", names.size(), " class folders names one of the model's ",
             options.num_classes, options.labels.empty() ? " classes" : " labels",
             "; class indices follow the sorted order of the folders"));
  }
  labels.class_names = std::move(all);
  return labels;
}

Labels label_folders(const Groups& groups, const ClassFolderOptions& options) {
  Paths names = composed_names(groups, options.where);
  ClassMatch match = match_classes(options.where, names, options.labels, options.wordnet_ids, options.num_classes);
  if (match.rule == ClassMatch::Rule::none) return number_by_order(groups, std::move(names), options);
  Labels labels{std::move(match.indices), options.labels.empty() ? options.wordnet_ids : options.labels};
  if (labels.class_names.empty()) {
    for (int64_t i = 0; i < options.num_classes; ++i) labels.class_names.push_back(std::to_string(i));
  }
  return labels;
}

}  // namespace

ClassFolders read_class_folders(FolderListing listing, const ClassFolderOptions& options) {
  ClassFolders result;
  std::string prefix;
  skip_wrappers(listing, options, prefix);
  require_readable_split(listing, options);
  const std::string split = choose_split(listing, options);
  if (!split.empty()) {
    result.split = prefix + split;
    descend(listing, split, prefix);
    skip_wrappers(listing, options, prefix, split);
  }
  const Groups groups = group_by_folder(listing);
  require_images(listing, groups, options.where);
  report_omissions(listing, groups, options.num_classes == INT64_MAX, options.where);
  Labels labels = label_folders(groups, options);
  size_t position = 0;
  for (const auto& [name, paths] : groups.images) {
    for (const std::string& path : paths) result.items.push_back({prefix + path, labels.of_folders[position]});
    ++position;
  }
  result.class_names = std::move(labels.class_names);
  return result;
}

std::vector<std::string> splits_in(FolderListing listing, const std::string& where) {
  std::string prefix;
  {
    const WarningPause pause;  // read_class_folders says the same
    skip_wrappers(listing, {}, prefix);
  }
  for (const UnreadableFolder& folder : listing.unreadable) {
    if (is_top(folder.path) && !canonical_split(folder.path).empty()) throw Error(folder.error);
  }
  warn_of_splits_without_images(listing, where);
  std::set<std::string> names;
  for (const auto& [name, top] : top_folders(listing)) {
    if (top.may_be_split() && !canonical_split(name).empty()) names.insert(std::string(canonical_split(name)));
  }
  return {names.begin(), names.end()};
}

}  // namespace vitrail::data
