// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/pair_set.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/json_lines_internal.h"
#include "vitrail/data/datasets/list_columns_internal.h"
#include "vitrail/data/datasets/shards_internal.h"
#include "vitrail/data/datasets/splits_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxListBytes = 1'000'000'000;  // some ten million rows
constexpr const char* kCaption = ".txt";         // the extension of a caption beside an image

bool is_list_name(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".csv" || extension == ".tsv" || extension == ".jsonl";
}

// Calls on_row(row) for the rows of a list until it returns false.
void for_each_row(const fs::path& list, const std::function<bool(const CsvRow&)>& on_row) {
  const std::string text = utf8_text(read_text_file(list, kMaxListBytes), list.string());
  CsvReader csv(list.string(), text);
  JsonLinesReader json(list.string(), text);
  const bool is_json = list.extension() == ".jsonl";
  for (auto row = is_json ? json.next() : csv.next(); row; row = is_json ? json.next() : csv.next()) {
    if (!on_row(*row)) return;
  }
}

std::optional<CsvRow> first_row(const fs::path& list) {
  std::optional<CsvRow> first;
  for_each_row(list, [&](const CsvRow& row) {
    first = row;
    return false;
  });
  return first;
}

std::string without_blanks(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? "" : std::string(text.substr(first, text.find_last_not_of(kBlanks) + 1 - first));
}

// Collects pairs; the captions of an image come together.
class Pairs {
 public:
  explicit Pairs(std::string where) : where_(std::move(where)) { rows_.where = where_; }

  void add(const std::string& image, int64_t archive, const std::string& text, const std::string& where) {
    if (!is_utf8(text)) throw Error(where, "a caption in UTF-8", "\"" + escape_non_utf8(text.substr(0, 80)) + "\"");
    const std::string caption = without_blanks(text);
    if (caption.empty()) throw Error(where, "a caption", "none");
    const auto [place, is_new] = places_.try_emplace({archive, image}, captions_.size());
    if (is_new) {
      rows_.items.push_back({.path = image, .entry = archive, .labels = {std::ssize(rows_.items)}});
      captions_.emplace_back();
    }
    std::vector<std::string>& captions = captions_[place->second];
    if (std::ranges::find(captions, caption) == captions.end()) {
      captions.push_back(caption);
    } else {
      ++repeated_;
    }
  }

  PairSet finish(ImageSourcePtr images, const image::DecodeOptions& decode) {
    if (captions_.empty()) throw Error(where_, "pairs of an image and a caption", "none");
    if (repeated_ > 0)
      warn(str(where_, ": ", counted(repeated_, "caption"), " left out that an image has more than once"));
    rows_.images = std::move(images);
    return {open_rows(std::move(rows_), decode), std::move(captions_)};
  }

 private:
  std::string where_;
  Rows rows_;
  std::vector<std::vector<std::string>> captions_;
  std::map<std::pair<int64_t, std::string>, size_t> places_;
  int64_t repeated_ = 0;
};

// The split of a row: train, val or test.
std::string split_of_row(const std::string& field, const std::string& where) {
  const std::string_view split = canonical_split(field);
  if (!split.empty()) return std::string(split);
  throw Error(where, "the split train, val or test (--columns split=. if the column is of others)", "'" + field + "'");
}

PairSet open_list(const fs::path& list, const PairSetOptions& options) {
  Pairs pairs(list.string());
  std::optional<CaptionColumns> columns;
  std::set<std::string> splits;
  for_each_row(list, [&](const CsvRow& row) {
    const std::string where = str(list.string(), ":", row.line);
    if (!columns) {
      columns = find_caption_columns(list.string(), row.fields, options.columns);
      if (columns->has_header) return true;
    }
    const auto field = [&](size_t column) { return column < row.fields.size() ? row.fields[column] : std::string(); };
    if (field(columns->file).empty()) throw Error(where, "the file of an image", "none");
    if (columns->split) {
      const std::string split = split_of_row(field(*columns->split), where);
      splits.insert(split);
      if (!options.split.empty() && split != options.split) return true;
    }
    pairs.add(field(columns->file), 0, field(columns->caption), where);
    return true;
  });
  if (!splits.empty() && !options.split.empty() && !splits.contains(options.split))
    throw Error(list.string(), "rows of the split " + options.split, "the splits " + join(splits));
  return pairs.finish(images_below(list.parent_path()), options.decode);
}

std::string caption_beside(const std::string& image) { return image.substr(0, image.rfind('.')) + kCaption; }

bool is_file_of(const FolderListing& listing, const std::string& name) {
  return std::ranges::binary_search(listing.others, name);
}

void add_pairs(const ImageFiles& files, int64_t archive, Pairs& pairs) {
  require_all_read(files.listing);
  report_archive(files.listing, files.where);
  for (const std::string& image : files.listing.images) {
    const std::string caption = caption_beside(image), where = (fs::path(files.where) / image).string();
    if (!is_file_of(files.listing, caption)) throw Error(where, "a caption in " + caption, "no such file");
    pairs.add(image, archive, files.text(caption), (fs::path(files.where) / caption).string());
  }
}

ImageFiles folder_files(const fs::path& folder) {
  return {folder.string(), walk_folder(folder), images_below(folder),
          [folder](const std::string& name) { return read_text_file(folder / name); }};
}

PairSet open_shards(const fs::path& folder, const std::vector<std::string>& names, const image::DecodeOptions& decode) {
  Pairs pairs(folder.string());
  auto shards = std::make_shared<Shards>();
  for (size_t i = 0; i < names.size(); ++i) {
    ImageFiles shard = tar_files(folder / names[i]);
    add_pairs(shard, static_cast<int64_t>(i), pairs);
    shards->add(std::move(shard.images));
  }
  return pairs.finish(std::move(shards), decode);
}

// Without subfolders, which may have millions of files.
FolderListing files_directly_in(const fs::path& folder) {
  FolderListing listing;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (!entry->is_directory(unreadable)) add_file(listing, entry->path().filename().string());
  }
  sort_listing(listing);
  return listing;
}

// Whether the first image has a caption beside it.
bool has_captions(const FolderListing& listing) {
  return !listing.images.empty() && is_file_of(listing, caption_beside(listing.images.front()));
}

}  // namespace

PairSet open_pair_set(const fs::path& path, const PairSetOptions& options) {
  const PathKind kind = look_up(path);
  if (kind == PathKind::missing) throw Error(path.string(), "pairs of images and captions", "nothing at this path");
  if (kind != PathKind::folder && is_list_name(path)) return open_list(path, options);
  if (options.columns != Columns())
    throw Error("columns", "a list, which has columns", "another set: " + path.string());
  if (!options.split.empty()) throw Error(path.string(), "a list with a column of splits", "no list");
  if (kind != PathKind::folder && !is_tar_name(path.filename().string()))
    throw Error(path.string(), "a .csv, .tsv or .jsonl of pairs, a .tar or a folder", "another file");
  ImageFiles files = kind == PathKind::folder ? folder_files(path) : tar_files(path);
  const std::vector<std::string> shards =
      kind == PathKind::folder ? shards_of(files.listing) : std::vector<std::string>();
  if (!shards.empty()) return open_shards(path, shards, options.decode);
  Pairs pairs(path.string());
  add_pairs(files, 0, pairs);
  return pairs.finish(std::move(files.images), options.decode);
}

bool is_pair_set(const fs::path& path) {
  const PathKind kind = look_up(path);
  if (kind == PathKind::missing) return false;
  if (kind == PathKind::folder) {
    const FolderListing listing = files_directly_in(path);
    const std::vector<std::string> shards = shards_of(listing);
    return shards.empty() ? has_captions(listing) : has_captions(tar_files(path / shards.front()).listing);
  }
  if (is_tar_name(path.filename().string())) return has_captions(tar_files(path).listing);
  if (!is_list_name(path)) return false;
  const auto header = first_row(path);
  return header && names_images_and_captions(header->fields);
}

std::vector<std::string> pair_set_splits(const fs::path& path, const Columns& columns) {
  if (look_up(path) == PathKind::folder || !is_list_name(path)) return {};
  std::optional<size_t> column;
  std::set<std::string> splits;
  bool is_header = true;
  for_each_row(path, [&](const CsvRow& row) {
    if (is_header) column = find_split_column(path.string(), row.fields, columns);
    if (!is_header && *column < row.fields.size())
      splits.insert(split_of_row(row.fields[*column], str(path.string(), ":", row.line)));
    is_header = false;
    return column.has_value();
  });
  return {splits.begin(), splits.end()};
}

}  // namespace vitrail::data
