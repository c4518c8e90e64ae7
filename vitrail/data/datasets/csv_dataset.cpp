// SPDX-License-Identifier: Apache-2.0
// A dataset listed in a CSV file with the columns file,class_index or file,label, or with several labels per image.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/csv_labels_internal.h"
#include "vitrail/data/datasets/csv_layout_internal.h"
#include "vitrail/data/datasets/csv_names_internal.h"
#include "vitrail/data/datasets/csv_splits_internal.h"
#include "vitrail/data/datasets/dataset_formats_internal.h"
#include "vitrail/data/datasets/natural_order_internal.h"
#include "vitrail/data/datasets/split_names_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxCsvBytes = 1'000'000'000;  // some 15 million rows
constexpr int64_t kMaxClasses = 1'000'000;      // a list of names is made, and a model's head, for all below an index

class CsvDataset : public Dataset {
 public:
  CsvDataset(const fs::path& csv, const DatasetOptions& options)
      : where_(csv.string()), folder_(csv.parent_path()), limit_(class_limit(options)), decode_(options.decode) {
    const std::string text = utf8_text(read_text_file(csv, kMaxCsvBytes), where_);
    // Only a model's class names tell that "tench, Tinca tinca" is one label.
    const bool unknown = options.multi_label == false && options.labels.empty();
    layout_ = csv_layout(where_, text, unknown ? std::nullopt : options.multi_label, options.labels);
    if (!layout_.notice.empty()) warn(where_ + ": " + layout_.notice);
    if (options.split != kNoSplit) {
      splits_ = read_csv_splits(where_, text, layout_);
      split_ = choose_split(csv, options);
    }
    const CsvLabels labels = csv_labels(where_, text, layout_, options);
    layout_.has_indices = layout_.has_indices && labels.column == layout_.label;
    layout_.label = labels.column;
    if (!layout_.has_indices) numbers_ = numbered_classes(options.labels);
    class_names_ = labels.class_names.empty() ? options.labels : labels.class_names;
    CsvReader reader(where_, text);
    if (layout_.has_header) reader.next();
    while (const auto row = reader.next()) {
      if (split_.empty() || splits_.of(*row) == split_) add(*row);
    }
    if (rows_.empty()) throw Error(where_, "rows of file,class_index", "none");
    if (!layout_.indicators.empty()) {
      resolve(layout_.classes, options);
    } else if (by_name_) {
      std::vector<std::string> classes = names_;
      std::sort(classes.begin(), classes.end(), natural_less);
      classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
      resolve(classes, options);
    }
    if (is_multi_label()) {
      join_rows();
    } else {
      warn_of_contradictions();
    }
  }

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::string path(int64_t i) const override { return (folder_ / rows_.at(i).file).string(); }
  int64_t label(int64_t i) const override {
    if (is_multi_label()) throw Error(path(i), "one label per image", "a list of several labels");
    return rows_.at(i).labels.front();
  }
  bool is_multi_label() const override { return layout_.is_multi_label(); }
  std::vector<int64_t> labels(int64_t i) const override { return rows_.at(i).labels; }
  image::Image image(int64_t i) const override { return image::read_image(path(i), decode_); }
  int64_t content_size(int64_t i) const override { return file_size(path(i)); }
  uint64_t content_hash(int64_t i) const override { return hash_of_file(path(i)); }
  std::optional<int64_t> modified_at(int64_t i) const override { return modification_time(path(i)); }

 private:
  // The split to read; empty for all rows.
  std::string choose_split(const fs::path& csv, const DatasetOptions& options) const {
    for (const std::string& warning : splits_.warnings) warn(where_ + ": " + warning);
    if (!splits_.known.empty())
      return choose_standard_split(csv, options, {splits_.known.begin(), splits_.known.end()});
    require_no_split(csv, options);
    return "";
  }

  // A list may have a row for each label of an image.
  void join_rows() {
    std::map<std::string, size_t> positions;
    std::vector<Row> joined;
    for (Row& row : rows_) {
      const auto [position, is_new] = positions.try_emplace(row.file, joined.size());
      if (is_new) {
        joined.push_back(std::move(row));
        continue;
      }
      std::vector<int64_t>& labels = joined[position->second].labels;
      labels.insert(labels.end(), row.labels.begin(), row.labels.end());
      std::sort(labels.begin(), labels.end());
      labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    }
    rows_ = std::move(joined);
  }

  // An image in rows of different classes is a mistake, or has several labels that the columns do not tell.
  void warn_of_contradictions() const {
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows_[a].file < rows_[b].file; });
    std::set<std::string> files;
    for (size_t i = 1; i < order.size(); ++i) {
      const Row &row = rows_[order[i]], &other = rows_[order[i - 1]];
      if (row.file == other.file && row.labels != other.labels) files.insert(row.file);
    }
    if (files.empty()) return;
    warn(str(where_, ": ", files.size(), files.size() == 1 ? " image is" : " images are",
             " in rows of different classes, such as ", *files.begin(), "; write several labels as \"cat|dog\""));
  }

  struct Row {
    std::string file;
    std::vector<int64_t> labels;  // until they are resolved: positions in names_, or columns of layout_.classes
  };

  // A path that a Windows program wrote has backslashes, which a name may have here too.
  std::string file_name(std::string field) const {
    if (field.find('\\') != field.npos && data::file_size(folder_ / field) < 0)
      std::replace(field.begin(), field.end(), '\\', '/');
    return field;
  }

  void add(const CsvRow& row) {
    const std::string row_where = str(where_, ":", row.line);
    const size_t last = layout_.indicators.empty() ? layout_.label : layout_.indicators.back();
    if (row.fields.size() <= std::max(layout_.file, last))
      throw Error(row_where, "file,class_index", counted(row.fields.size(), "field"));
    Row result{file_name(row.fields[layout_.file]), {}};
    if (result.file.empty()) throw Error(row_where, "a file", "an empty field");
    const std::string& field = row.fields[layout_.label];
    if (!layout_.indicators.empty()) {
      add_indicators(row, row_where, result.labels);
    } else if (layout_.separator == '\0') {
      add_label(field, row_where, result.labels);
    } else {
      const auto parts = layout_.has_lists ? csv_list_items(field) : csv_label_parts(field, layout_.separator);
      for (const std::string& part : parts) add_label(part, row_where, result.labels);
    }
    std::sort(result.labels.begin(), result.labels.end());
    rows_.push_back(std::move(result));
  }

  void add_indicators(const CsvRow& row, const std::string& row_where, std::vector<int64_t>& labels) const {
    for (size_t c = 0; c < layout_.indicators.size(); ++c) {
      const std::string& field = row.fields[layout_.indicators[c]];
      const std::optional<bool> present = csv_indicator(field);
      if (!present) throw Error(row_where, "0 or 1 for the class " + layout_.classes[c], "'" + field + "'");
      if (*present) labels.push_back(static_cast<int64_t>(c));
    }
  }

  void add_label(const std::string& text, const std::string& row_where, std::vector<int64_t>& labels) {
    const bool is_name = !csv_number(text);
    // Between commas no spreadsheet writes 3.0 so.
    if (!is_name && layout_.field_separator == ',' && text.find(',') != text.npos)
      throw Error(row_where, "one class index (several are written as \"3|0\")", "'" + text + "'");
    if (is_first_label_) by_name_ = is_name;
    is_first_label_ = false;
    if (is_name && by_name_ && !text.empty()) {
      labels.push_back(static_cast<int64_t>(names_.size()));
      names_.push_back(composed(text));
      return;
    }
    if (by_name_) throw Error(row_where, "a class name, as in the rows before", "'" + text + "'");
    const std::optional<int64_t> label = csv_integer(text);
    if (!label) throw Error(row_where, "a class index", "'" + text + "'");
    if (!layout_.has_indices) require_one_spelling(*label, text, row_where);
    if (!numbers_.empty()) return add_number(*label, text, row_where, labels);
    if (*label < 0) throw Error(row_where, "a class index of at least 0", text);
    if (*label >= kMaxClasses)
      throw Error(row_where, str("a class index below ", kMaxClasses), text + " (is it an id of the image?)");
    if (*label >= limit_) throw Error(row_where, str("a class index below the model's ", limit_, " classes"), text);
    if (std::find(labels.begin(), labels.end(), *label) == labels.end()) labels.push_back(*label);
  }

  // "007" and "7" are two names or one number.  A column called class_index has numbers alone.
  void require_one_spelling(int64_t value, const std::string& text, const std::string& row_where) {
    const auto [other, is_new] = spellings_.try_emplace(value, csv_digits(text));
    if (is_new || other->second == csv_digits(text)) return;
    throw Error(row_where, str("the number ", value, " in one way, '", other->second, "' as in the rows before"),
                "'" + text + "'");
  }

  // A label of a model whose labels are numbers.
  void add_number(int64_t value, const std::string& text, const std::string& row_where, std::vector<int64_t>& labels) {
    const auto found = numbers_.find(value);
    if (found == numbers_.end()) throw Error(row_where, "a label of the model: " + quoted_list(class_names_), text);
    if (std::find(labels.begin(), labels.end(), found->second) == labels.end()) labels.push_back(found->second);
  }

  // Turns the class names of all rows into labels: those of the model, or in the order of `classes` if there is none.
  void resolve(const std::vector<std::string>& classes, const DatasetOptions& options) {
    ClassMatch match = match_classes(where_, classes, options.labels, options.wordnet_ids);
    if (match.rule == ClassMatch::Rule::none) {
      if (limit_ != INT64_MAX) throw Error(where_, "class indices, or class names of the model", quoted_list(classes));
      for (size_t i = 0; i < classes.size(); ++i) match.indices.push_back(static_cast<int64_t>(i));
      class_names_ = classes;
    }
    for (Row& row : rows_) {
      for (int64_t& label : row.labels) {
        auto position = static_cast<size_t>(label);
        if (layout_.indicators.empty())
          position = std::lower_bound(classes.begin(), classes.end(), names_[position], natural_less) - classes.begin();
        label = match.indices[position];
      }
      std::sort(row.labels.begin(), row.labels.end());
      row.labels.erase(std::unique(row.labels.begin(), row.labels.end()), row.labels.end());
    }
    names_.clear();
  }

  std::string where_;
  fs::path folder_;
  int64_t limit_;
  image::DecodeOptions decode_;
  CsvLayout layout_;
  CsvSplits splits_;
  std::vector<Row> rows_;
  std::map<int64_t, std::string> spellings_;      // digits by value
  std::map<int64_t, int64_t> numbers_;            // classes by label, if the model's labels are numbers
  bool is_first_label_ = true, by_name_ = false;  // by_name_: the first label is a class name instead of an index
  std::vector<std::string> names_;                // names of all labels, until they are resolved
};

}  // namespace

std::unique_ptr<Dataset> open_csv(const fs::path& csv, const DatasetOptions& options) {
  return std::make_unique<CsvDataset>(csv, options);
}

std::vector<std::string> csv_splits(const fs::path& csv) {
  const std::string text = utf8_text(read_text_file(csv, kMaxCsvBytes), csv.string());
  const CsvSplits splits = read_csv_splits(csv.string(), text, csv_layout(csv.string(), text, std::nullopt));
  return {splits.known.begin(), splits.known.end()};
}

}  // namespace vitrail::data
