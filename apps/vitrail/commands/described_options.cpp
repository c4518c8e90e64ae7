// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/commands/described_options.h"

#include <algorithm>

#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/shell/field_options.h"

namespace vitrail::app {

std::vector<const tasks::Task*> rows_named(const std::string& task) {
  std::vector<const tasks::Task*> rows;
  for (const tasks::Task& row : tasks::tasks()) {
    if (row.name == task) rows.push_back(&row);
  }
  return rows;
}

void add_described_options(CLI::App& command, const tasks::Task& row,
                           const std::shared_ptr<DescribedOptions>& options) {
  if (!row.describe) return;
  const auto set = [options, &row](const std::string& option, const std::vector<std::string>& texts) {
    if (std::ranges::find(row.name_lists, option) != row.name_lists.end()) {
      options->name_lists[option] = texts;
      return;
    }
    tasks::RequestOptions given;
    for (const std::string& text : texts) {
      given.add(option, text);
      options->request.add(option, text);
    }
    row.describe(given);
  };
  for (const FieldRow& field : rows_of(row.describe)) {
    if (!command.get_option_no_throw("--" + field.option))
      add_field_options(command, row.describe, set, {field.option}, {});
  }
}

void read_name_lists(DescribedOptions& options) {
  for (const auto& [option, texts] : options.name_lists) {
    for (const std::string& text : texts) {
      for (const std::string& name : labels_of(text)) options.request.add(option, name);
    }
  }
}

void refuse_options_of_other_rows(const tasks::Task& row, DescribedOptions& options, const std::string& family) {
  if (!row.describe) return;
  const std::vector<FieldRow> fields = rows_of(row.describe);
  for (const tasks::Task* other : rows_named(row.name)) {
    if (!other->describe) continue;
    for (const FieldRow& field : rows_of(other->describe)) {
      if (std::ranges::find(fields, field.option, &FieldRow::option) == fields.end() &&
          (!options.request.texts(field.option).empty() || options.name_lists.contains(field.option)))
        throw CLI::ValidationError("--" + field.option, "does not apply to " + family);
    }
  }
}

}  // namespace vitrail::app
