// SPDX-License-Identifier: Apache-2.0
// A dataset listed in a CSV file with the columns file,class_index or file,label.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/data/class_matching_internal.h"
#include "vitrail/data/content_internal.h"
#include "vitrail/data/csv_internal.h"
#include "vitrail/data/dataset_formats_internal.h"
#include "vitrail/data/natural_order_internal.h"
#include "vitrail/data/unicode_names_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxCsvBytes = 1'000'000'000;  // some 15 million rows

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The positions of the two columns.
struct Columns {
  size_t file = 0, label = 1;
};

// The first field of a header is no image path and the second no integer.  If only one of these holds, the row is data
// and its error is reported.
bool is_header(const std::vector<std::string>& fields) {
  return fields.size() >= 2 && !image::is_image_path(fields[0]) && !integer(fields[1]);
}

// The first column with one of these names, in any case.
std::optional<size_t> find_column(const std::vector<std::string>& header, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (comparison_key(header[i]) == name) return i;
    }
  }
  return std::nullopt;
}

Columns columns_of(const std::vector<std::string>& header) {
  const auto file = find_column(
      header, {"file", "filename", "file name", "filepath", "file path", "path", "image", "image path", "image id"});
  const auto label =
      find_column(header, {"class index", "class id", "label", "class", "class name", "target", "category"});
  return file && label ? Columns{*file, *label} : Columns{};
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

class CsvDataset : public Dataset {
 public:
  CsvDataset(const fs::path& csv, const DatasetOptions& options)
      : where_(csv.string()), folder_(csv.parent_path()), limit_(class_limit(options)), decode_(options.decode) {
    const std::string text = utf8_text(read_text_file(csv, kMaxCsvBytes), where_);
    CsvReader reader(where_, text);
    Columns columns;
    bool first = true;
    while (const auto row = reader.next()) {
      if (first && is_header(row->fields)) {
        columns = columns_of(row->fields);
      } else {
        add(*row, columns);
      }
      first = false;
    }
    if (rows_.empty()) throw Error(where_, "rows of file,class_index", "none");
    class_names_ = options.labels;
    if (!names_.empty()) resolve_names(options);
  }

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::string path(int64_t i) const override { return (folder_ / rows_.at(i).file).string(); }
  int64_t label(int64_t i) const override { return rows_.at(i).label; }
  image::Image image(int64_t i) const override { return image::read_image(path(i), decode_); }
  int64_t content_size(int64_t i) const override { return file_size(path(i)); }
  uint64_t content_hash(int64_t i) const override { return hash_of_file(path(i)); }

 private:
  struct Row {
    std::string file;
    int64_t label;
  };

  void add(const CsvRow& row, Columns columns) {
    const std::string row_where = str(where_, ":", row.line);
    if (row.fields.size() <= std::max(columns.file, columns.label)) {
      throw Error(row_where, "file,class_index", str(row.fields.size(), " field(s)"));
    }
    const std::string& file = row.fields[columns.file];
    const std::string& index = row.fields[columns.label];
    if (file.empty()) throw Error(row_where, "a file", "an empty field");
    const bool is_name = !is_number(index);
    if (rows_.empty()) by_name_ = is_name;
    if (is_name && by_name_ && !index.empty()) {
      rows_.push_back({file, -1});
      names_.push_back(composed(index));
      return;
    }
    if (by_name_) throw Error(row_where, "a class name, as in the rows before", "'" + index + "'");
    const std::optional<int64_t> label = integer(index);
    if (!label) throw Error(row_where, "a class index", "'" + index + "'");
    if (*label < 0) throw Error(row_where, "a class index of at least 0", index);
    if (*label >= limit_) throw Error(row_where, str("a class index below the model's ", limit_, " classes"), index);
    rows_.push_back({file, *label});
  }

  // Turns the class names of all rows into labels: those of the model, or by natural order if there is none.
  void resolve_names(const DatasetOptions& options) {
    std::vector<std::string> classes = names_;
    std::sort(classes.begin(), classes.end(), natural_less);
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    ClassMatch match = match_classes(where_, classes, options.labels, options.wordnet_ids);
    if (match.rule == ClassMatch::Rule::none) {
      if (limit_ != INT64_MAX) {
        throw Error(where_, "class indices, or class names of the model", quoted_list(classes));
      }
      for (size_t i = 0; i < classes.size(); ++i) match.indices.push_back(static_cast<int64_t>(i));
      class_names_ = classes;
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto position = std::lower_bound(classes.begin(), classes.end(), names_[i], natural_less) - classes.begin();
      rows_[i].label = match.indices[static_cast<size_t>(position)];
    }
    names_.clear();
  }

  std::string where_;
  fs::path folder_;
  int64_t limit_;
  image::DecodeOptions decode_;
  std::vector<Row> rows_;
  bool by_name_ = false;            // the first row has a class name instead of an index
  std::vector<std::string> names_;  // per row, until they are resolved
};

}  // namespace

std::unique_ptr<Dataset> open_csv(const fs::path& csv, const DatasetOptions& options) {
  require_no_split(csv, options);
  return std::make_unique<CsvDataset>(csv, options);
}

}  // namespace vitrail::data
