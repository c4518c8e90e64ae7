// SPDX-License-Identifier: Apache-2.0
// Columns of class indices and of class names in one list, which may contradict each other.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/csv_internal.h"
#include "vitrail/data/datasets/csv_layout_internal.h"
#include "vitrail/data/datasets/csv_names_internal.h"
#include "vitrail/data/datasets/unicode_names_internal.h"

namespace vitrail::data {
namespace {

struct NamedIndex {
  std::string name;
  size_t line;  // the first row that has the index
};

// A column of several labels may be beside that of one.
bool may_have_other_labels(const std::string& column) { return comparison_key(column) == "labels"; }

// The name of each class index; none if the first row has other values.  Throws Error if an index has two names.
std::map<int64_t, NamedIndex> names_of_indices(const std::string& where, std::string_view text,
                                               const CsvLayout& layout) {
  std::map<int64_t, NamedIndex> names;
  CsvReader reader(where, text);
  const auto header = reader.next();
  while (const auto row = reader.next()) {
    if (row->fields.size() <= std::max(layout.label, *layout.names)) continue;
    const std::string& name = row->fields[*layout.names];
    const std::optional<int64_t> index = csv_integer(row->fields[layout.label]);
    if (names.empty() && (!index || name.empty() || csv_number(name))) return {};
    if (!index) continue;
    const auto [other, is_new] = names.try_emplace(*index, NamedIndex{name, row->line});
    if (!is_new && other->second.name != name) {
      if (may_have_other_labels(header->fields.at(*layout.names))) return {};
      throw Error(str(where, ":", row->line),
                  str("'", other->second.name, "' for the class ", *index, ", as in line ", other->second.line),
                  "'" + name + "'");
    }
  }
  return names;
}

// Beside a column of class indices, that of names counts if each name is that of one class of the model.
size_t label_column_of_model(const std::string& where, const std::map<int64_t, NamedIndex>& indices,
                             const CsvLayout& layout, const std::vector<std::string>& labels,
                             const std::vector<std::string>& wordnet_ids) {
  std::vector<std::string> names;
  std::vector<std::pair<size_t, int64_t>> rows;  // line and index of each name
  for (const auto& [index, named] : indices) {
    names.push_back(named.name);
    rows.emplace_back(named.line, index);
  }
  if (names.empty() || (labels.empty() && wordnet_ids.empty())) return layout.label;
  const auto classes = fitting_classes(names, labels, wordnet_ids);
  if (std::ranges::all_of(classes, [](const auto& fits) { return fits.size() == 1; })) return *layout.names;
  if (std::ranges::all_of(classes, [](const auto& fits) { return fits.empty(); })) {
    warn(where + ": class indices are used, because no class name is a label of the model: " + quoted_list(names));
    return layout.label;
  }
  std::map<size_t, size_t> contradictions;  // positions in names by line
  for (size_t i = 0; i < names.size(); ++i) {
    const bool agrees = std::ranges::find(classes[i], rows[i].second) != classes[i].end();
    if (!agrees && !classes[i].empty()) contradictions[rows[i].first] = i;
  }
  if (contradictions.empty()) return layout.label;
  const auto [line, i] = *contradictions.begin();
  throw Error(str(where, ":", line), str("the class index ", classes[i].front(), " of '", names[i], "'"),
              str(rows[i].second));
}

// The classes of a list without a model: its indices from 0 with their names, or its names where other indices begin or
// lack, which would be classes without images.
CsvLabels own_classes(const std::map<int64_t, NamedIndex>& indices, const CsvLayout& layout) {
  CsvLabels result{.column = layout.label};
  const auto is_no_name = [](const auto& entry) { return entry.second.name.empty() || csv_number(entry.second.name); };
  if (indices.empty() || indices.begin()->first < 0 || std::ranges::any_of(indices, is_no_name)) return result;
  std::vector<std::string> names;
  for (const auto& [index, named] : indices) names.push_back(composed(named.name));
  if (indices.begin()->first == 0 && indices.rbegin()->first == static_cast<int64_t>(names.size()) - 1) {
    result.class_names = std::move(names);
  } else if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) {
    result.column = *layout.names;
  }
  return result;
}

}  // namespace

CsvLabels csv_labels(const std::string& where, std::string_view text, const CsvLayout& layout,
                     const DatasetOptions& options) {
  if (!layout.names || layout.is_multi_label()) return {.column = layout.label};
  const std::vector<std::string>&labels = options.labels, &wordnet_ids = options.wordnet_ids;
  const std::map<int64_t, NamedIndex> indices = names_of_indices(where, text, layout);
  if (labels.empty() && wordnet_ids.empty() && options.num_classes == 0) return own_classes(indices, layout);
  return {.column = label_column_of_model(where, indices, layout, labels, wordnet_ids)};
}

}  // namespace vitrail::data
