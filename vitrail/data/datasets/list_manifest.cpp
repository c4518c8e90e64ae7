// SPDX-License-Identifier: Apache-2.0
// A set listed in a CSV file or in lines of JSON: a row for each image, or for each label of one.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/json_lines_internal.h"
#include "vitrail/data/datasets/list_columns_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"
#include "vitrail/data/datasets/natural_order_internal.h"
#include "vitrail/data/datasets/splits_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMaxCsvBytes = 1'000'000'000;  // some 15 million rows
constexpr char kIndicated = '\n';               // between the names of columns of 0 and 1, which may have a '|'

struct ListRow {
  size_t line;
  std::string file, label, split;
};

using NextRow = std::function<std::optional<CsvRow>()>;

// Reads the rows of a list.
class ListReader {
 public:
  ListReader(std::string where, fs::path folder, const NextRow& next, const Columns& options)
      : where_(std::move(where)), folder_(std::move(folder)) {
    const auto first = next();
    if (!first) throw Error(where_, "rows of a file and a label", "none");
    const auto second = next();
    header_ = first->fields;
    columns = find_list_columns(where_, header_, second ? second->fields : Names(), options);
    unused_.resize(header_.size());
    if (!columns.has_header) add(*first);
    if (second) add(*second);
    while (const auto row = next()) add(*row);
    if (rows.empty()) throw Error(where_, "rows of a file and a label", "none");
    if (options.split.empty() && !columns.split) refuse_unused_splits();
  }

  ListColumns columns;
  std::vector<ListRow> rows;

 private:
  void add(const CsvRow& row) {
    const std::string row_where = str(where_, ":", row.line);
    require_named_fields(row, row_where);
    if (row.fields.size() <= std::max(columns.file, columns.labels.back()))
      throw Error(row_where, "a file and a label", counted(row.fields.size(), "field"));
    ListRow result{row.line, file_name(row.fields[columns.file]), row.fields[columns.labels.front()], ""};
    if (result.file.empty()) throw Error(row_where, "a file", "an empty field");
    if (!columns.classes.empty()) result.label = indicated(row, row_where);
    if (columns.split && *columns.split < row.fields.size()) result.split = split_in(row.fields[*columns.split]);
    rows.push_back(std::move(result));
    for (size_t i = 0; i < std::min(row.fields.size(), unused_.size()); ++i) unused_[i].add(row.fields[i]);
  }

  // A field without a name was split off another one, as by the comma in the unquoted label "crane, bird".
  void require_named_fields(const CsvRow& row, const std::string& row_where) const {
    for (size_t i = header_.size(); i < row.fields.size(); ++i) {
      if (row.fields[i].empty()) continue;
      throw Error(row_where,
                  str(counted(header_.size(), "field"), ", as in the ", columns.has_header ? "header" : "first row",
                      " (a field with the separator is written in quotes, several labels as \"cat|dog\")"),
                  counted(row.fields.size(), "field"));
    }
  }

  // A path that a Windows program wrote has backslashes, which a name may have here too.
  std::string file_name(std::string field) const {
    if (field.find('\\') != field.npos && data::file_size(folder_ / field) < 0)
      std::replace(field.begin(), field.end(), '\\', '/');
    return field;
  }

  std::string indicated(const CsvRow& row, const std::string& row_where) const {
    std::string label;
    for (size_t c = 0; c < columns.labels.size(); ++c) {
      const std::string& field = row.fields[columns.labels[c]];
      const std::optional<bool> present = list_indicator(field);
      if (!present) throw Error(row_where, "0 or 1 for the class " + columns.classes[c], "'" + field + "'");
      if (*present) label += columns.classes[c] + kIndicated;
    }
    return label;
  }

  std::string split_in(const std::string& field) const {
    if (const std::string_view name = canonical_split(field); !name.empty()) return std::string(name);
    const auto is_set = columns.flag.empty() ? std::nullopt : list_indicator(field);
    if (!is_set) return field;
    return std::string(*is_set ? columns.flag : columns.flag == "train" ? "test" : "train");
  }

  // A column of another name may have the splits all the same: without them, test images would be trained on.
  struct UnusedColumn {
    bool has_names = true, has_flags = true;
    void add(const std::string& field) {
      has_names = has_names && !canonical_split(field).empty();
      has_flags = has_flags && list_indicator(field).has_value();
    }
  };
  void refuse_unused_splits() const {
    for (size_t i = 0; i < unused_.size(); ++i) {
      const std::string name = columns.has_header ? header_[i] : std::to_string(i + 1);
      const bool is_used = i == columns.file || std::ranges::find(columns.labels, i) != columns.labels.end();
      const bool is_flag = unused_[i].has_flags && !canonical_split(name).empty();
      if (is_used || (!unused_[i].has_names && !is_flag)) continue;
      throw Error(where_,
                  "a column of splits called split, subset, partition, set, dataset or phase (or --columns split=NAME; "
                  "split=. if there is none)",
                  "splits in the column '" + name + "'");
    }
  }

  std::string where_;
  fs::path folder_;
  Names header_;
  std::vector<UnusedColumn> unused_;
};

// Turns the labels of rows into classes.
class Labeller {
 public:
  Labeller(const std::string& where, const ListColumns& columns, bool has_comma_fields, const DatasetOptions& options)
      : where_(where), columns_(columns), has_comma_fields_(has_comma_fields), options_(options) {}

  // `list`: all rows; `rows`: those of a split.
  std::vector<Row> label(const std::vector<const ListRow*>& rows, const std::vector<ListRow>& list) {
    separator_ = separator_of(rows);
    are_indices_ = columns_.are_indices && has_indices(list);
    std::vector<Row> result;
    for (const ListRow* row : rows) {
      result.push_back({.path = row->file});
      for (const std::string& text : texts_of(*row)) {
        if (has_comma_fields_ && text.find(',') != text.npos && list_integer(text)) refuse(text, *row);
        if (text.empty()) throw Error(where_of(*row), "a label", "an empty field");
        result.back().labels.push_back(columns_.are_indices ? number_of(text, *row) : position_of(text, *row));
      }
    }
    class_names = options_.labels;
    if (!are_indices_) match(result);
    for (Row& row : result) {
      std::ranges::sort(row.labels);
      row.labels.erase(std::unique(row.labels.begin(), row.labels.end()), row.labels.end());
    }
    return result;
  }

  bool is_multi_label() const { return separator_ != '\0'; }
  Names class_names;

 private:
  char separator_of(const std::vector<const ListRow*>& rows) const {
    if (!columns_.classes.empty()) return kIndicated;
    // A model's class names tell that "tench, Tinca tinca" is one label.
    const bool is_one = options_.multi_label == false && !options_.labels.empty();
    const std::string separators = is_one ? columns_.separators.substr(0, 1) : columns_.separators;
    if (are_lists(rows)) return ',';
    for (const char separator : separators) {
      const auto has_it = [&](const ListRow* row) { return row->label.find(separator) != std::string::npos; };
      if (std::ranges::any_of(rows, has_it)) return separator;
    }
    return options_.multi_label == true ? '|' : '\0';
  }

  // Brackets around a plain name may be a part of it, unless all labels have them.
  bool are_lists(const std::vector<const ListRow*>& rows) const {
    const auto is_quoted = [](const ListRow* row) {
      return row->label.starts_with("['") || row->label.starts_with("[\"");
    };
    const auto is_other = [](const ListRow* row) { return !row->label.empty() && !is_list(row->label); };
    const auto other = std::ranges::find_if(rows, is_other), quoted = std::ranges::find_if(rows, is_quoted);
    if (other == rows.end()) return std::ranges::any_of(rows, [](const ListRow* row) { return !row->label.empty(); });
    if (quoted == rows.end()) return false;
    throw Error(where_, "lists of labels in all rows or in none", quoted_list({(*quoted)->label, (*other)->label}));
  }

  Names texts_of(const ListRow& row) const {
    return separator_ != '\0' ? labels_in(row.label, separator_) : Names{row.label};
  }

  // Between commas no spreadsheet writes 3.0 as 3,0.
  [[noreturn]] void refuse(const std::string& text, const ListRow& row) const {
    throw Error(where_of(row), "one class (several are written as \"3|0\", or told by --columns separator=blank)",
                "'" + text + "'");
  }

  std::string where_of(const ListRow& row) const { return str(where_, ":", row.line); }

  // Whether the numbers of a column of indices are those of a model's classes, or all from 0 on.  Others are names,
  // such as ids, which a model that was trained on them has as its class names.
  bool has_indices(const std::vector<ListRow>& list) const {
    std::set<int64_t> numbers, names;
    for (const ListRow& row : list) {
      for (const std::string& text : texts_of(row)) {
        if (const int64_t number = list_integer(text).value_or(-1); number >= 0) numbers.insert(number);
      }
    }
    if (class_limit(options_) == INT64_MAX) return numbers.empty() || *numbers.rbegin() + 1 == std::ssize(numbers);
    for (const std::string& label : options_.labels) names.insert(list_integer(label).value_or(-1));
    return names.contains(-1) || !std::ranges::includes(names, numbers);
  }

  // A number in a column of indices: an index, or the position of a name.
  int64_t number_of(const std::string& text, const ListRow& row) {
    const std::optional<int64_t> number = list_integer(text);
    const int64_t limit = class_limit(options_);
    if (!number) throw Error(where_of(row), "a class index", "'" + text + "'");
    if (*number < 0) throw Error(where_of(row), "a class index of at least 0", text);
    if (!are_indices_) return position_of(std::to_string(*number), row);
    if (*number >= limit) throw Error(where_of(row), str("a class index below the model's ", limit, " classes"), text);
    return *number;
  }

  // Spreadsheets write the name "3" as "3.0".
  static std::string key_of(const std::string& text) {
    const std::optional<int64_t> number = list_integer(text);
    const bool has_digits_alone = text.find_first_not_of("0123456789") == text.npos;
    return number && !has_digits_alone ? std::to_string(*number) : composed(text);
  }

  int64_t position_of(const std::string& text, const ListRow& row) {
    if (is_no_label(text)) refuse(text, row);
    return static_cast<int64_t>(positions_.try_emplace(key_of(text), positions_.size()).first->second);
  }

  // Class names are those of the model, or their natural order defines the classes; columns have an order of their own.
  void match(std::vector<Row>& rows) {
    Names names = columns_.classes;
    if (names.empty()) {
      for (const auto& [name, position] : positions_) names.push_back(name);
    }
    const int64_t limit = class_limit(options_);
    ClassMatch match = match_classes(where_, names, options_.labels, options_.wordnet_ids, limit);
    if (match.rule == ClassMatch::Rule::none && limit != INT64_MAX)
      throw Error(where_, "class indices, or class names of the model", quoted_list(names));
    if (match.rule == ClassMatch::Rule::none) {
      for (size_t i = 0; i < names.size(); ++i) match.indices.push_back(static_cast<int64_t>(i));
      class_names = names;
      tell_blanks(names);
    }
    std::vector<int64_t> classes(positions_.size());
    for (size_t i = 0; i < names.size(); ++i) {
      const auto position = positions_.find(key_of(names[i]));
      if (position != positions_.end()) classes[position->second] = match.indices[i];
    }
    for (Row& row : rows) {
      for (int64_t& label : row.labels) label = classes[static_cast<size_t>(label)];
    }
  }

  // In a column of several labels, blanks may have been meant to separate them.
  void tell_blanks(const Names& names) const {
    const auto has_blank = [](const std::string& name) { return name.find(' ') != name.npos; };
    const auto name = std::ranges::find_if(names, has_blank);
    if (columns_.separators.size() < 2 || separator_ != '\0' || name == names.end()) return;
    warn(str(where_, ": '", *name, "' is one class; several labels are written as \"cat|dog\", or told by --columns ",
             "separator=blank"));
  }

  const std::string& where_;
  const ListColumns& columns_;
  bool has_comma_fields_;
  const DatasetOptions& options_;
  char separator_ = '\0';
  bool are_indices_ = false;
  std::map<std::string, size_t, NaturalLess> positions_;  // each name's index in the order in which they were found
};

// A list may have a row for each label of an image.
void join_rows(std::vector<Row>& rows) {
  std::map<std::string, size_t> positions;
  std::vector<Row> joined;
  for (Row& row : rows) {
    const auto [position, is_new] = positions.try_emplace(row.path, joined.size());
    if (is_new) {
      joined.push_back(std::move(row));
      continue;
    }
    std::vector<int64_t> both;
    std::ranges::set_union(joined[position->second].labels, row.labels, std::back_inserter(both));
    joined[position->second].labels = std::move(both);
  }
  rows = std::move(joined);
}

// An image in rows of different classes is a mistake, or has several labels that the columns do not tell.
void warn_of_contradictions(const std::vector<Row>& rows, const std::string& where) {
  std::map<std::string_view, int64_t> labels;
  std::set<std::string_view> files;
  for (const Row& row : rows) {
    if (labels.try_emplace(row.path, row.labels.front()).first->second != row.labels.front()) files.insert(row.path);
  }
  if (files.empty()) return;
  warn(str(where, ": ", files.size(), files.size() == 1 ? " image is" : " images are",
           " in rows of different classes, such as ", *files.begin(), "; write several labels as \"cat|dog\""));
}

bool is_json_lines(const fs::path& list) { return comparison_key(list.extension().string()) == ".jsonl"; }

std::string text_of(const fs::path& list) { return utf8_text(read_text_file(list, kMaxCsvBytes), list.string()); }

class ListManifest : public Manifest {
 public:
  ListManifest(const fs::path& list, const std::string& text, const Columns& options)
      : where_(list.string()), images_(images_below(list.parent_path())) {
    CsvReader csv(where_, text);
    JsonLinesReader json(where_, text);
    const bool is_json = is_json_lines(list);
    has_comma_fields_ = !is_json && csv.separator() == ',';
    ListReader reader(
        where_, list.parent_path(), [&] { return is_json ? json.next() : csv.next(); }, options);
    columns_ = std::move(reader.columns);
    rows_ = std::move(reader.rows);
    has_splits_ = columns_.split.has_value();
    if (!has_splits_ && options.split.empty() && list.stem() == "metadata") take_splits_of_folders();
  }

  Names splits() const override {
    Names names = existing();
    require_known(names);
    return names;
  }

 private:
  Rows rows(const DatasetOptions& options) const override {
    Rows result{.where = where_, .images = images_};
    if (options.split != kNoSplit) {
      const Names names = existing();
      result.split = choose_split({.where = where_, .existing = names}, options);
      if (canonical_split(result.split) == result.split) require_known(names);
    }
    std::vector<const ListRow*> chosen;
    for (const ListRow& row : rows_) {
      if (result.split.empty() || row.split == result.split) chosen.push_back(&row);
    }
    Labeller labeller(where_, columns_, has_comma_fields_, options);
    result.items = labeller.label(chosen, rows_);
    result.class_names = std::move(labeller.class_names);
    result.is_multi_label = labeller.is_multi_label();
    if (result.is_multi_label) {
      join_rows(result.items);
    } else {
      warn_of_contradictions(result.items, where_);
    }
    return result;
  }

  // A metadata file beside the folders of splits, as Hugging Face's imagefolder has it.
  void take_splits_of_folders() {
    const auto folder_of = [](const ListRow& row) { return row.file.substr(0, row.file.find('/')); };
    has_splits_ =
        std::ranges::all_of(rows_, [&](const ListRow& row) { return !canonical_split(folder_of(row)).empty(); });
    if (!has_splits_) return;
    for (ListRow& row : rows_) row.split = canonical_split(folder_of(row));
  }

  // The splits of the rows.
  Names existing() const {
    std::set<std::string> names;
    for (const ListRow& row : rows_) {
      if (has_splits_) names.insert(row.split);
    }
    return {names.begin(), names.end()};
  }

  // Rows without a split would be lost.
  void require_known(const Names& names) const {
    const auto is_unknown = [](const std::string& name) { return canonical_split(name).empty(); };
    if (std::ranges::none_of(names, is_unknown)) return;
    const auto row = std::ranges::find_if(rows_, [&](const ListRow& other) { return is_unknown(other.split); });
    throw Error(
        str(where_, ":", row->line),
        "the split train, val or test (the split \".\" is all rows; --columns split=. if the column is of others)",
        "'" + row->split + "'");
  }

  std::string where_;
  ImageSourcePtr images_;
  ListColumns columns_;
  std::vector<ListRow> rows_;
  bool has_comma_fields_ = true, has_splits_ = false;
};

}  // namespace

ManifestPtr read_list(const fs::path& list, const Columns& columns) {
  return std::make_shared<ListManifest>(list, text_of(list), columns);
}

ManifestPtr read_metadata_list(const fs::path& list, const Columns& columns) {
  const std::string text = text_of(list);
  const auto header =
      is_json_lines(list) ? JsonLinesReader(list.string(), text).next() : CsvReader(list.string(), text).next();
  const bool is_list = columns != Columns() || (header && names_images_and_labels(header->fields));
  return is_list ? std::make_shared<ListManifest>(list, text, columns) : nullptr;
}

}  // namespace vitrail::data
