// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/labelled_sets.h"

#include "vitrail/base/error.h"

namespace vitrail::app {

CLI::Option* add_columns(CLI::App& command, std::string& columns) {
  const auto problem_of = [](const std::string& text) {
    try {
      data::parse_columns(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  return command
      .add_option(
          "--columns", columns,
          "Columns of a list by name or number: file=C,label=C,split=C; also separator=blank, comma or semicolon")
      ->check(problem_of);
}

}  // namespace vitrail::app
