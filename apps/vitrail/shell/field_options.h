// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a command from the fields of a struct.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"

namespace vitrail::app {

// Sets a field from the texts of its option.
using SetField = std::function<void(const std::string& option, const std::vector<std::string>& texts)>;

void add_field_options(CLI::App& command, const std::function<void(Fields&)>& describe, const SetField& set,
                       const std::vector<std::string>& only, const std::function<void(CLI::Option&)>& each);

// Adds an option for each field of `values`, or for those named in `only`, in the order of the description; `each` may
// change it.  `values` outlives the command.
template <class S>
void add_field_options(CLI::App& command, void (*describe)(Fields&, S&), S& values,
                       const std::vector<std::string>& only = {}, const std::function<void(CLI::Option&)>& each = {}) {
  add_field_options(
      command, [describe, &values](Fields& fields) { describe(fields, values); },
      [describe, &values](const std::string& option, const std::vector<std::string>& texts) {
        set_field(describe, values, option, texts);
      },
      only, each);
}

}  // namespace vitrail::app
