// SPDX-License-Identifier: Apache-2.0
#pragma once
// The option parser's messages in the form of all errors: where, what was expected, what was given.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vitrail::app {

// "; did you mean json" for a misspelled name, or nothing.
std::string suggestion(const std::string& name, const std::vector<std::string>& candidates);

// "--format: expected text, json or csv, got 'jso'; did you mean json" for "--format: jso not in {text,json,csv}".
// Messages that are not the parser's own are returned as they are.
std::string parser_message(const CLI::App& program, const CLI::ParseError& error);

}  // namespace vitrail::app
