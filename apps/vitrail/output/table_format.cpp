// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/table_format.h"

#include <unistd.h>

#include <algorithm>

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/field_options.h"

namespace vitrail::app {
namespace {

std::string text_of(const nlohmann::ordered_json& value, int decimals) {
  if (value.is_string()) return escaped(value.get<std::string>());
  return value.is_number_float() ? fmt::format("{:.{}f}", value.get<double>(), decimals) : value.dump();
}

}  // namespace

void TableFormat::add_to(CLI::App& command) {
  add_field_options(command, [this](Fields& f) {
    f.choice({"format", "Output format: table or json (default: table on a terminal, else json)"}, name_,
             {"table", "json"});
  });
}

bool TableFormat::is_table() const { return name_.empty() ? ::isatty(STDOUT_FILENO) != 0 : name_ == "table"; }

void print_result(const nlohmann::ordered_json& object, const TableFormat& format) {
  constexpr int kDecimals = 4;
  if (!format.is_table()) return print_json(object);
  size_t width = 0;
  for (const auto& [key, value] : object.items()) width = std::max(width, key.size());
  for (const auto& [key, value] : object.items()) {
    std::string title = key;
    std::replace(title.begin(), title.end(), '_', ' ');
    print_output("{:<{}}  {}\n", title, width, text_of(value, kDecimals));
  }
}

void RowPrinter::print(const nlohmann::ordered_json& row, const std::string& about) {
  constexpr size_t kMinWidth = 9, kTextWidth = 15;
  if (!format_.is_table()) return print_json(row);
  std::string header, line;
  for (const Column& column : columns_) {
    const std::string text = text_of(row.at(column.key), column.decimals);
    if (column.key == columns_.back().key) {
      header += std::string("  ") + column.title;
      line += "  " + text;
    } else {
      const size_t min = row.at(column.key).is_string() ? kTextWidth : kMinWidth;
      const size_t width = std::max(min, std::string(column.title).size() + 2);
      header += fmt::format("{:>{}}", column.title, width);
      line += fmt::format("{:>{}}", text, width);
    }
  }
  if (about != about_) print_output("{}\n{}\n", escaped(about), header);
  about_ = about;
  print_output("{}\n", line);
}

}  // namespace vitrail::app
