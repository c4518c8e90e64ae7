// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages for arguments that the command line does not accept.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vitrail::app {

// The message of a failed parse.  For an unknown command or option it names the ones that are spelled alike.
std::string usage_error(const CLI::App& program, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error);

// Throws CLI::ValidationError if an argument of the command, or of its subcommand, is empty: it is the value of a shell
// variable that is not set, and would stand for the current folder or for a default.
void refuse_empty_arguments(const CLI::App& command);

}  // namespace vitrail::app
