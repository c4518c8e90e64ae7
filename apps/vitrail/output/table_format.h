// SPDX-License-Identifier: Apache-2.0
#pragma once
// --format of commands whose results are numbers: a table for people or JSON objects for scripts.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vitrail::app {

class TableFormat {
 public:
  void add_to(CLI::App& command);
  bool is_table() const;  // by default on a terminal
  bool is_json_requested() const { return name_ == "json"; }

 private:
  std::string name_;
};

// Prints an object as JSON, or as lines "recall at 10   0.9983".
void print_result(const nlohmann::ordered_json& object, const TableFormat& format);

// Prints objects of the same keys as JSON, or as the rows of a table whose last column is aligned to the left.
class RowPrinter {
 public:
  struct Column {
    const char* key;
    const char* title;
    int decimals = 0;  // digits after the point of a number
  };
  RowPrinter(const TableFormat& format, std::vector<Column> columns) : format_(format), columns_(std::move(columns)) {}

  // `about`: a line above the header, for what all rows share.
  void print(const nlohmann::ordered_json& row, const std::string& about);

 private:
  TableFormat format_;
  std::vector<Column> columns_;
  std::string about_;  // the line above the rows so far
};

}  // namespace vitrail::app
