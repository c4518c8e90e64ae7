// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a command from fields.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"

namespace vitrail::app {

// Sets a field from the texts of its option.
using SetField = std::function<void(const std::string& option, const std::vector<std::string>& texts)>;

// Adds an option for each field, or for those named in `only`, in the order of the description; `each` may change it.
void add_field_options(CLI::App& command, const std::function<void(Fields&)>& describe, const SetField& set,
                       const std::vector<std::string>& only, const std::function<void(CLI::Option&)>& each);

// The same for values that the description refers to.  They outlive the command.
void add_field_options(CLI::App& command, const std::function<void(Fields&)>& describe,
                       const std::vector<std::string>& only = {}, const std::function<void(CLI::Option&)>& each = {});

// The same for the fields of a struct.
template <class S>
void add_field_options(CLI::App& command, void (*describe)(Fields&, S&), S& values,
                       const std::vector<std::string>& only = {}, const std::function<void(CLI::Option&)>& each = {}) {
  add_field_options(
      command, [describe, &values](Fields& fields) { describe(fields, values); }, only, each);
}

// For `each`: the line of help says what holds by default.
inline void hide_default(CLI::Option& option) { option.default_str(""); }

}  // namespace vitrail::app
