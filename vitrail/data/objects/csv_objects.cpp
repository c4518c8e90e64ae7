// SPDX-License-Identifier: Apache-2.0
// Sets of objects in CSV files: a row for each object.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/natural_order_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"
#include "vitrail/data/objects/object_reader_internal.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxObjectCsvBytes = 1'000'000'000;

// In the form of comparison_key().
using ColumnNames = std::initializer_list<const char*>;

struct BoxColumns {
  std::optional<size_t> image, label, split, width, height;
  std::array<std::optional<size_t>, 4> box;

  explicit BoxColumns(const std::vector<std::string>& header) {
    const auto find = [&](ColumnNames names) -> std::optional<size_t> {
      for (const char* name : names) {
        const auto found =
            std::ranges::find(header, name, [](const std::string& column) { return comparison_key(column); });
        if (found != header.end()) return found - header.begin();
      }
      return std::nullopt;
    };
    image = find({"image", "filename", "file name", "file", "image path", "path", "image name", "image id"});
    label = find({"label", "class", "class name", "label name", "category", "name"});
    split = find({"split", "subset", "partition", "set", "phase"});
    width = find({"width", "image width"});
    height = find({"height", "image height"});
    box = {find({"x1", "xmin", "x min", "left"}), find({"y1", "ymin", "y min", "top"}),
           find({"x2", "xmax", "x max", "right"}), find({"y2", "ymax", "y max", "bottom"})};
  }

  bool has_boxes() const {
    return std::ranges::all_of(box, [](const auto& column) { return column.has_value(); });
  }
};

std::optional<CsvRow> header_of(const fs::path& file) {
  const std::string text = utf8_text(read_text_file(file, kMaxObjectCsvBytes), file.string());
  return CsvReader(file.string(), text).next();
}

struct BoxRow {
  std::string image{}, label{}, split{};
  LabelledObject object{};
  bool has_object = false;
  int64_t width = 0, height = 0;
};

class BoxTable {
 public:
  explicit BoxTable(const fs::path& file) : where_(file.string()), folder_(file.parent_path()) {
    const std::string text = utf8_text(read_text_file(file, kMaxObjectCsvBytes), where_);
    CsvReader csv(where_, text);
    const auto header = csv.next();
    const BoxColumns columns(header ? header->fields : std::vector<std::string>());
    if (!columns.image || !columns.label || !columns.has_boxes()) {
      throw Error(where_, "the columns image, label, x1, y1, x2 and y2",
                  header ? "these columns: " + join(header->fields) : "an empty file");
    }
    has_splits = columns.split.has_value();
    while (const auto row = csv.next()) add(*row, columns);
  }

  std::vector<BoxRow> rows;
  bool has_splits = false;

 private:
  void add(const CsvRow& row, const BoxColumns& columns) {
    const std::string where = str(where_, ":", row.line);
    const auto field = [&](std::optional<size_t> column) {
      return column && *column < row.fields.size() ? row.fields[*column] : std::string();
    };
    BoxRow result{.image = field(columns.image), .label = field(columns.label), .split = field(columns.split)};
    if (result.image.empty()) throw Error(where, "an image", "an empty field");
    result.image = path_of(result.image);
    result.width = static_cast<int64_t>(number_or_0(field(columns.width), where));
    result.height = static_cast<int64_t>(number_or_0(field(columns.height), where));
    const bool is_empty = std::ranges::all_of(columns.box, [&](const auto& column) { return field(column).empty(); });
    if (!is_empty) {
      if (result.label.empty()) throw Error(where, "a label", "an empty field");
      for (size_t i = 0; i < 4; ++i) result.object.box[i] = number(field(columns.box[i]), where);
      const auto& box = result.object.box;
      result.object.area = (box[2] - box[0]) * (box[3] - box[1]);
      result.has_object = true;
    }
    rows.push_back(std::move(result));
  }

  static double number(const std::string& text, const std::string& where) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || next != end || !std::isfinite(value))
      throw Error(where, "the number of a pixel", "'" + text.substr(0, 60) + "'");
    return value;
  }

  static double number_or_0(const std::string& text, const std::string& where) {
    constexpr double kMaxSide = 1 << 20;
    if (text.empty()) return 0;
    const double value = number(text, where);
    if (value < 0 || value > kMaxSide) throw Error(where, str("0 to ", kMaxSide, " pixels"), text);
    return value;
  }

  // Beside the file, or in a folder images there.
  std::string path_of(const std::string& name) const {
    std::error_code error;
    const fs::path inside = folder_ / "images" / name;
    return (!fs::exists(folder_ / name, error) && fs::exists(inside, error) ? inside : folder_ / name).string();
  }

  std::string where_;
  fs::path folder_;
};

class CsvObjects : public ObjectReader {
 public:
  explicit CsvObjects(const std::vector<SplitFile>& files) : where_(files.front().path.string()) {
    const bool are_splits = !splits_of_files(files).empty();
    if (are_splits) where_ = files.front().path.parent_path().string();
    for (const SplitFile& file : files) {
      BoxTable table(file.path);
      for (BoxRow& row : table.rows) {
        if (are_splits) row.split = file.split;
        rows_.push_back(std::move(row));
      }
      has_splits_ |= are_splits || table.has_splits;
    }
  }

  std::vector<std::string> splits() const override {
    std::set<std::string> names;
    for (const BoxRow& row : rows_) {
      if (has_splits_) names.insert(row.split);
    }
    return {names.begin(), names.end()};
  }

  ObjectSet read(const std::string& split, const ObjectSetOptions& /*options*/) const override {
    ObjectSet set{.form = "CSV", .where = where_};
    std::map<std::string, int64_t, NaturalLess> index_of;  // the classes of all splits, so that these share them
    for (const BoxRow& row : rows_) {
      if (row.has_object) index_of.emplace(row.label, 0);
    }
    for (auto& [name, index] : index_of) {
      index = std::ssize(set.class_names);
      set.class_names.push_back(name);
    }
    std::map<std::string, size_t> positions;
    for (const BoxRow& row : rows_) {
      if (has_splits_ && row.split != split) continue;
      const auto [position, is_new] = positions.emplace(row.image, set.images.size());
      if (is_new) set.images.push_back({.path = row.image, .width = row.width, .height = row.height});
      if (!row.has_object) continue;
      std::vector<LabelledObject>& objects = set.images[position->second].objects;
      objects.push_back(row.object);
      objects.back().index = index_of.at(row.label);
      objects.back().id = std::ssize(objects);
    }
    return set;
  }

 private:
  std::string where_;
  std::vector<BoxRow> rows_;
  bool has_splits_ = false;
};

}  // namespace

ObjectReaderPtr csv_object_reader(const fs::path& path) {
  std::vector<SplitFile> files;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (path.extension() == ".csv") files.push_back({"", path});
  } else {
    files = files_of_split_folders(path, "_annotations.csv");
    for (const fs::path& file : files_with_ending(path, ".csv")) {
      const std::string stem = file.stem().string();
      if (stem == "annotations" || stem == "_annotations" || !canonical_split(stem).empty())
        files.push_back({stem, file});
    }
  }
  // A list of images and their classes has no boxes.
  std::erase_if(files, [](const SplitFile& file) {
    const auto header = header_of(file.path);
    return !header || !BoxColumns(header->fields).has_boxes();
  });
  return files.empty() ? nullptr : std::make_unique<CsvObjects>(files);
}

}  // namespace vitrail::data
